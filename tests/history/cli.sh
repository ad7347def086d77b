#!/bin/sh
# `warmlap history` from a shell, and history: as an input of compare and report. Needs no device.
# Usage: cli.sh WARMLAP JSON_CHECK RESULTS FOLDER (made anew)
set -u
warmlap=$1 check=$2 data=$3 dir=$4
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
XDG_DATA_HOME=$dir/data
export XDG_DATA_HOME
cp "$data"/h200-fp32.json "$data"/h200-survey.json "$data"/h200-fp16.json .
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect STATUS COMMAND ARGUMENT...: streams in out and err.
expect() {
  wanted=$1
  shift
  "$warmlap" "$@" > out 2> err
  got=$?
  [ "$got" = "$wanted" ] || { fail "exit $got, expected $wanted: $*"; sed 's/^/  | /' err; }
}

says() { # says FILE TEXT: a fixed string
  grep -qF -- "$2" "$1" || { fail "$1 does not say '$2'"; sed 's/^/  | /' "$1"; }
}

lines() { # lines FILE NUMBER
  [ "$(wc -l < "$1")" = "$2" ] || { fail "$1 has not $2 lines"; sed 's/^/  | /' "$1"; }
}

# ---- usage ---------------------------------------------------------------------------------------
expect 0 history --help
[ "$(awk 'length > 80' out | wc -l)" = 0 ] || fail "help is wider than 80 columns"
expect 0 history show --help
expect 2 history
expect 2 history lsit
says err 'did you mean list'
expect 2 history list --metric fps
says err 'unknown here'
expect 2 history trend --metric speed
says err 'throughput'
expect 2 history list a b
expect 2 history add
expect 2 history export
expect 2 history list since=2026-13
says err 'expected a date'
expect 2 history list
says err 'no history yet'
[ -e "$XDG_DATA_HOME" ] && fail "reading made a folder"

# ---- adding and showing --------------------------------------------------------------------------
expect 0 history add h200-fp32.json h200-survey.json
says out 'added'
[ -s "$XDG_DATA_HOME/warmlap/history.sqlite" ] || fail "not where XDG_DATA_HOME says"
expect 0 history add h200-fp32.json
says out 'was there already'
expect 2 history add h200-fp16.json nosuch.json
says out 'h200-fp16.json  added'
says err 'nosuch.json'
expect 0 history list
lines out 4
expect 0 history list --format json
[ "$("$check" out 0.rows)" = 4 ] 2>/dev/null || grep -q '"rows": 4' out || fail "rows of the first run"
expect 0 history show batch=1,precision=fp32 --device H200 --format csv
lines out 5
expect 0 history show --metric throughput latest
says out '8908 @ 16'
grep -q 'Latency' out && fail "--metric shows other metrics"
# Two cards of one name are two cases; a later run on one of them is followed.
expect 0 history trend batch=1,precision=fp32,route=cuda
says out 'UUID 6b072550'
grep -q 'same' out && fail "another card was taken for the same"
sed 's/"started": "2026-/"started": "2027-/' h200-survey.json > later.json
expect 0 history add later.json --database later.sqlite h200-survey.json
expect 0 history trend batch=1,precision=fp32,route=cuda --database later.sqlite
says out 'same'
grep -q 'Remark' out && fail "an empty column is shown"
says out 'First, best, latest: mean latency in ms.'
expect 0 history trend --metric p50 --database later.sqlite
says out 'First, best, latest: median latency in ms.'
expect 0 history trend --metric throughput --database later.sqlite
says out 'First, best, latest: images per second, batches back to back.'
expect 0 history trend --metric fps --database later.sqlite
says out 'First, best, latest: images per second, batch / mean latency.'
expect 0 history trend --metric fps --format json --database later.sqlite
says out '"verdict": "same"'
says out '"metric": "fps"'
expect 2 history show device=nosuch
says err 'nothing matches'
# One run of two cards, each alone and both at once: four cases of one run each, none of them judged.
expect 0 history add "$data/h200x2-concurrent-cuda.json" --database two.sqlite
expect 0 history trend batch=1,precision=fp32 --database two.sqlite --format csv
lines out 5
[ "$(grep -c '^NVIDIA H200,cuda:[01],cuda,resnet18,224x224,fp32,1,1,' out)" = 4 ] || fail "cases of two cards"
[ "$(grep -c 'one of 2 x NVIDIA H200' out)" = 2 ] || fail "no remark on rows beside others"
grep -q 'same' out && fail "a run was compared with itself"
expect 0 history trend batch=1,precision=fp32 --database two.sqlite
says out 'one of 2 x'
expect 0 history export latest -o copy.json
cmp -s copy.json h200-survey.json || fail "the exported document differs"
expect 2 history export all
says err 'more than one'
# What a command reads is not written over, whatever --force says.
cp two.sqlite before.sqlite
ln -s two.sqlite link.sqlite
for output in two.sqlite ./two.sqlite link.sqlite; do
  expect 2 history list --database two.sqlite -o $output --force
  says err 'is the history'
  expect 2 compare history:all --database two.sqlite -o $output --force
  says err 'is the history'
  expect 2 report history:all --database two.sqlite -o $output --force
done
cmp -s before.sqlite two.sqlite || fail "the history was changed"

# ---- as an input ---------------------------------------------------------------------------------
expect 0 compare history:batch=1,precision=fp32,route=cuda:0 --format csv
lines out 3
# Queries that overlap give each row once; the baseline's is not its own rival.
expect 0 compare history:batch=1,precision=fp32 history:precision=fp32,route=cuda:0 \
  history:batch=1,precision=fp32 --format csv
mv out both.csv
expect 0 compare history:precision=fp32,route=cuda:0 history:batch=1,precision=fp32 --format csv
[ "$(sort both.csv)" = "$(sort out)" ] || fail "the order of the queries counts"
[ "$(sort -u both.csv | wc -l)" = "$(wc -l < both.csv)" ] || fail "a row is there twice"
expect 0 compare history:batch=1,precision=fp32,route=cuda:0 \
  --baseline history:batch=1,precision=fp32,route=cuda,last=1 --format csv
lines out 3
expect 0 compare h200-survey.json --baseline history:batch=1,precision=fp32,route=cuda,last=1 \
  --fail-if-slower 5 --format csv
expect 2 compare h200-fp32.json --baseline history:all
says err 'expected one'
expect 2 compare history:device=nosuch
says err 'nothing matches'
expect 2 compare history:devcie=x
says err 'did you mean device'
expect 0 report history:all -o report.html
says report.html 'history:'
expect 0 report history:all --baseline history:latest -o again.html
grep -q 'the same run' again.html && fail "the baseline is called a copy of itself"
expect 2 compare history:all --database nosuch.sqlite
says err 'nosuch.sqlite'
cp "$XDG_DATA_HOME/warmlap/history.sqlite" other.sqlite
expect 0 compare history:latest --database other.sqlite

# ---- several writers at once ---------------------------------------------------------------------
for writer in 1 2 3 4; do
  mkdir w$writer
  for n in 1 2 3 4 5 6 7 8; do
    printf '{"schema":"warmlap/1","run_id":"writer-%s-%s","started":"2026-01-01T00:00:00Z","rows":[]}' \
      "$writer" "$n" > w$writer/$n.json
  done
  # The same document from all of them, too.
  printf '{"schema":"warmlap/1","run_id":"writer-all","started":"2026-01-01T00:00:00Z","rows":[]}' > w$writer/all.json
done
for writer in 1 2 3 4; do
  "$warmlap" history add --database many.sqlite w$writer/*.json > w$writer/out 2> w$writer/err &
done
wait
cat w?/err > err
[ -s err ] && { fail "a writer failed"; sed 's/^/  | /' err; }
expect 0 history list --database many.sqlite --format csv
lines out 34
[ "$(cat w?/out | grep -c 'writer-a.*added')" = 1 ] || fail "the document of all was not added once"

# ---- a disk that is full -------------------------------------------------------------------------
mkdir small
if unshare -m sh -c 'mount -t tmpfs -o size=100k none small' 2> /dev/null; then
  unshare -m sh -c "mount -t tmpfs -o size=100k none small
    '$warmlap' history add --database small/h.sqlite h200-survey.json > out 2> err
    [ \$? = 2 ] && '$warmlap' history add --database small/h.sqlite w1/1.json > out2 2> err2" ||
    { fail "a full disk"; sed 's/^/  | /' err err2; }
  says err 'disk is full'
else
  echo "left out: no small file system can be mounted here"
fi

[ "$failures" = 0 ] && echo "all as expected"
exit "$failures"
