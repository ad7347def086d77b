#!/bin/sh
# `warmlap compare` from a shell: exit statuses, streams, files. Needs no device.
# Usage: cli.sh WARMLAP JSON_CHECK DATA FOLDER (made anew)
set -u
warmlap=$1 check=$2 data=$3 dir=$4
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
cp "$data/h200-cuda.json" "$data/h200-opencl.json" .
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect STATUS ARGUMENT...: runs compare; streams in out and err.
expect() {
  wanted=$1
  shift
  "$warmlap" compare "$@" > out 2> err
  got=$?
  [ "$got" = "$wanted" ] || { fail "exit $got, expected $wanted: $*"; sed 's/^/  | /' err; }
}

says() { # says FILE TEXT: a fixed string
  grep -qF -- "$2" "$1" || { fail "$1 does not say '$2'"; sed 's/^/  | /' "$1"; }
}

value() { # value FILE PATH WANTED
  seen=$("$check" "$1" "$2") || seen="(nothing)"
  [ "$seen" = "$3" ] || fail "$1: $2 is $seen, expected $3"
}

# ---- usage ---------------------------------------------------------------------------------------
expect 0 --help
says out 'Usage:'
[ "$(awk 'length > 80' out | wc -l)" = 0 ] || fail "help is wider than 80 columns"
expect 2
says err 'no file'
expect 2 nosuch.json
says err 'nosuch.json'
expect 2 .
expect 2 h200-cuda.json --formt csv
says err 'did you mean --format'
for bad in '--format cvs' '--by devise' '--sort sped' '--clock both' '--columns sped' \
  '--margin -1' '--margin x' '--margin 1,5' '--fail-if-slower' '--baseline nosuch' \
  '--fail-if-slower 5' '--columns n --format json' '--baseline='; do
  expect 2 h200-cuda.json $bad
  [ -s err ] && [ ! -s out ] || fail "$bad: streams"
done
expect 2 - -
says err 'once'
# The last of two must not win without a word.
expect 2 h200-cuda.json --baseline cuda --fail-if-slower 5 --margin 50
says err 'expected one of them'
expect 2 h200-cuda.json --baseline cuda --margin 50 --fail-if-slower 5
for twice in '--baseline cuda --baseline opencl' '--by api --by file' '--margin 1 --margin 2' \
  '--fail-if-slower 5 --fail-if-slower 50 --baseline cuda' '--sort speed --sort batch' \
  '-o x --output y' '--columns n --columns n' '--format csv --format csv' '--clock row --clock wall'; do
  expect 2 h200-cuda.json $twice
  says err 'given twice'
done
[ ! -e x ] && [ ! -e y ] || fail "a file was written in spite of an error"
expect 0 h200-cuda.json --force --force

# ---- documents -----------------------------------------------------------------------------------
for format in table markdown csv html json latex; do
  expect 0 h200-cuda.json h200-opencl.json --format $format
  [ -s out ] && [ ! -s err ] || fail "$format: streams"
  says out 'NVIDIA H200'
  cp out $format.out
done
says markdown.out '1.67 ± 0.02 times slower than'
says markdown.out 'CUDA against OpenCL'
"$check" json.out || fail "--format json is not one JSON document"
value json.out schema warmlap-compare/1
value json.out rows.# 4
value json.out rows.1.verdict slower
value json.out summary.gate null
[ "$(wc -l < csv.out)" = 5 ] || fail "csv: not a header and four records"
expect 0 h200-cuda.json h200-opencl.json --baseline opencl
says out 'times faster than'
"$warmlap" compare - h200-opencl.json < h200-cuda.json > out 2> err || fail "standard input"
says out '1.67'
LC_ALL=de_DE.UTF-8 "$warmlap" compare h200-cuda.json h200-opencl.json --format csv > out 2> err
cmp -s out csv.out || fail "the locale changes the CSV"

# ---- files ---------------------------------------------------------------------------------------
echo precious > kept
expect 2 h200-cuda.json -o kept
says err 'exists already'
[ "$(cat kept)" = precious ] || fail "an existing file was changed"
expect 0 h200-cuda.json h200-opencl.json -o kept --force --format json
"$check" kept || fail "-o --force"
[ ! -s out ] || fail "-o writes to standard output"
expect 2 h200-cuda.json -o nosuch/x
expect 2 broken.json -o new
[ ! -e new ] || fail "a failed command leaves a file"
ls ./*.tmp 2> /dev/null && fail "temporary files are left"
cp h200-cuda.json copy.json
expect 0 h200-cuda.json copy.json
says out 'the same run'
ln -s h200-cuda.json link.json
expect 0 h200-opencl.json h200-cuda.json ./link.json --baseline h200-cuda.json
grep -q 'the same run' out && fail "the baseline is called a copy of itself"
expect 0 h200-opencl.json h200-cuda.json link.json --baseline h200-cuda.json --format json
value out files.# 2
printf '{"schema": "warmlap/2", "rows": []}' > newer.json
expect 2 h200-cuda.json newer.json
says err "schema 'warmlap/2' is of a newer warmlap"
printf '{"schema": "warmlap/1", "rows": []}' > empty.json
expect 0 empty.json
says out 'no rows'

# ---- the gate ------------------------------------------------------------------------------------
# The same run, 4 and 8 % slower; python or the like is not needed: the batch of 256 is stretched.
slower() { # slower FACTOR FILE
  awk -v f="$1" '/"samples_s": \[/ { inside = 1 } /\]/ { inside = 0 }
    /"started"/ { sub(/02:47/, "03:47") }
    inside && /[0-9],?$/ { comma = sub(/,$/, ""); printf "%.12g%s\n", $1 * f, comma ? "," : ""; next }
    { print }' h200-cuda.json > "$2"
}
slower 1 again.json
slower 1.04 4.json
slower 1.08 8.json
expect 0 again.json --baseline h200-cuda.json --fail-if-slower 5 --require-verified
says out 'Gate: passed'
expect 0 4.json --baseline h200-cuda.json --fail-if-slower 5
expect 5 8.json --baseline h200-cuda.json --fail-if-slower 5
says err '2 slower by more than 5 %'
says out 'Gate: FAILED'
expect 0 8.json --baseline h200-cuda.json --fail-if-slower 10
expect 5 4.json --baseline h200-cuda.json --fail-if-slower 0
expect 0 h200-cuda.json --baseline 8.json --fail-if-slower 5
expect 0 8.json --baseline h200-cuda.json
mkdir cuda # a folder is no baseline, the selector is
expect 5 h200-cuda.json h200-opencl.json --baseline cuda --fail-if-slower 5
expect 5 8.json --baseline h200-cuda.json --fail-if-slower 5 --format json -o gate.json
value gate.json summary.gate slower
value gate.json rows.1.verdict slower
expect 1 h200-opencl.json --baseline h200-cuda.json --fail-if-slower 5
says err 'nothing was compared'
expect 1 h200-cuda.json --baseline h200-cuda.json --fail-if-slower 5
sed 's/"passed": true/"passed": null/' again.json > unproven.json
expect 4 unproven.json --baseline h200-cuda.json --fail-if-slower 5 --require-verified
expect 4 unproven.json --require-verified
sed 's/"status": "ok"/"status": "failed"/' again.json > failed.json
expect 1 failed.json --baseline h200-cuda.json --fail-if-slower 5

# ---- an output that is an input --------------------------------------------------------------------
cp h200-cuda.json kept.json
ln -s kept.json kept.link
ln kept.json hard.json
for output in kept.json ./kept.json kept.link hard.json; do
  expect 2 kept.json -o $output --force
  says err 'which the command reads'
  expect 2 h200-opencl.json --baseline kept.json -o $output --force
  says err 'the baseline'
done
cmp -s h200-cuda.json kept.json || fail "an input was written over"

# ---- standard output -----------------------------------------------------------------------------
"$warmlap" compare h200-cuda.json >&- 2> err && fail "closed standard output: exit 0"
"$warmlap" compare h200-cuda.json > /dev/full 2> err && fail "full standard output: exit 0"

# ---- what a parent leaves behind -------------------------------------------------------------------
# One that ignores the end of its children: the program's own must not end unseen (SIGCHLD is 17).
mkfifo slow.json
env --ignore-signal=CHLD "$warmlap" compare slow.json > /dev/null 2>&1 & pid=$!
exec 3> slow.json
ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/$pid/status)
exec 3>&-
wait $pid
[ $((0x$ignored >> 16 & 1)) = 0 ] || fail "SIGCHLD stays ignored: $ignored"

[ $failures = 0 ] && echo "all passed" || { echo "$failures failed"; exit 1; }
