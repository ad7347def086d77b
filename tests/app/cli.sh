#!/bin/sh
# The program as a user meets it, on an OpenCL device: exit statuses, what goes to which stream,
# files, signals, odd places and odd terminals.
# Usage: cli.sh WARMLAP JSON_CHECK FOLDER (made anew); 77 when there is no OpenCL device.
set -u
warmlap=$1 check=$2 dir=$3
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
unset LAP_FAULT NO_COLOR
export XDG_CACHE_HOME="$PWD/cache" XDG_DATA_HOME="$PWD/data"
"$warmlap" run --device opencl:99 > none.out 2> none.err
grep -q 'opencl:0:0' none.err || { echo "skipped: no OpenCL device"; exit 77; }

# A small image, so that a row takes about a second; --device is the first OpenCL one.
quick="--device opencl:0:0 --set network:height=32 --set network:width=32 --set verify:mode=quick
  --set verify:images=1"
timing="--set run:modes=latency --set latency:repetitions=2 --set latency:warmup=0"
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect STATUS COMMAND...: runs it; streams in out and err.
expect() {
  wanted=$1
  shift
  "$@" > out 2> err
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
expect 2 "$warmlap"
says err 'Usage:'
expect 0 "$warmlap" --help
expect 0 "$warmlap" --version
says out 'warmlap '
says out jansson
says out opencl
expect 0 "$warmlap" help
says out 'Usage:'
expect 2 "$warmlap" --version extra
says err extra
[ ! -s out ] || fail "--version extra prints a version"
for command in devices run verify spans pitfalls tune weights compare; do
  expect 0 "$warmlap" $command --help
  [ -s out ] && [ ! -s err ] || fail "$command --help"
  says out "Usage: warmlap $command"
  says out 'Exit status: 0 '
  [ "$(awk 'length > 80' out | wc -l)" = 0 ] || fail "$command --help is wider than 80 columns"
done
expect 2 "$warmlap" rnu
says err "did you mean 'run'"
expect 2 "$warmlap" run --devise all
says err 'did you mean --device'
expect 2 "$warmlap" run --set lateny:batch=1
says err 'did you mean [latency]'
expect 2 "$warmlap" run --set latency:bacth=1
says err 'did you mean batch'
expect 2 "$warmlap" weights --exprot x
says err 'did you mean --export'
expect 2 "$warmlap" run nosuch.ini
says err 'nosuch.ini'
printf '[latency]\nbatch = 1\nrepetitions = 0,5\n' > bad.ini
expect 2 "$warmlap" run bad.ini
says err 'bad.ini:3: [latency] repetitions'
expect 2 "$warmlap" run --json - --csv - $quick
expect 2 "$warmlap" run $quick --set network:weights=nosuch.safetensors
says err 'nosuch.safetensors'

for number in 0 -1 1e9 abc 10x 99999999999999999999 ''; do # what is no number is no argument
  expect 2 "$warmlap" run --set latency:repetitions=$number
  expect 2 "$warmlap" spans --repeats "$number"
  [ "$number" = 0 ] || expect 2 "$warmlap" weights --export none.safetensors --seed "$number"
  expect 2 "$warmlap" tune --device opencl:0:0 --seconds "$number"
done
[ ! -e none.safetensors ] || fail "a seed that is no number writes weights"

# ---- selectors -----------------------------------------------------------------------------------
for selector in 99 opencl:99 opencl:-1 opencl:4294967296 opencl:0x opencl: opencl:0:99 name=nosuch \
  uuid=0 pci=x type=gup; do
  "$warmlap" run --device $selector > out 2> err
  got=$?
  [ $got = 2 ] || [ $got = 3 ] || fail "--device $selector: exit $got"
  says err 'opencl:0:0 '
  [ ! -s out ] || fail "--device $selector: writes to standard output"
done
for command in 'run --device' 'run --set run:device=' 'spans --device' 'tune --device'; do
  case $command in
    *=) expect 2 "$warmlap" $command ;;
    *) expect 2 "$warmlap" $command '' ;;
  esac
  says err 'an empty selector chooses nothing'
  says err 'valid forms'
  says err 'opencl:0:0 '
done
expect 2 "$warmlap" spans --device
says err 'needs an argument'
for command in verify spans pitfalls tune; do
  expect 3 "$warmlap" $command --device opencl:99
  says err 'can only be 0'
  says err 'opencl:0:0 '
done
expect 3 "$warmlap" run --device opencl:99
expect 3 env -u OCL_ICD_FILENAMES OCL_ICD_VENDORS=/nonexistent "$warmlap" run --device opencl
says err 'no OpenCL platform'
says err '/nonexistent'
env -u OCL_ICD_FILENAMES OCL_ICD_VENDORS=/nonexistent "$warmlap" devices --json > out 2> err
"$check" out || fail "devices --json without a device is no JSON"

# ---- configuration -------------------------------------------------------------------------------
expect 0 "$warmlap" run --dump-config $quick $timing --set latency:batch=1,8 --layers
cp out dumped.ini
expect 0 "$warmlap" run --dump-config dumped.ini
sed 's/[;#].*//' dumped.ini > first.txt # the origins differ, the values must not
sed 's/[;#].*//' out > second.txt
cmp first.txt second.txt || fail "--dump-config does not load again as itself"
says dumped.ini 'batch = 1,8'

# ---- documents -----------------------------------------------------------------------------------
# From the root, with a locale that writes 0,5: the kernels are inside, numbers stay numbers.
expect 0 sh -c 'cd / && LC_ALL=de_DE.UTF-8 "$@"' - "$warmlap" run $quick $timing --layers \
  --set run:modes=latency,throughput --set throughput:max_batch=2 --set throughput:batches=1 --set throughput:search_cost=0 \
  --json - --csv "$dir/a.csv" --markdown "$dir/a.md"
"$check" out || fail "--json -: standard output is not one JSON document"
"$check" out --keys || fail "--json -: keys"
cp out a.json
value a.json schema warmlap/1
value a.json rows.# 1
value a.json rows.0.status ok
value a.json rows.0.reason null
value a.json rows.0.batch 1
value a.json rows.0.verified.passed true
value a.json rows.0.latency.n 2
value a.json rows.0.latency.samples_s.# 2
value a.json rows.0.throughput.curve.# 2
value a.json config.network.height 32
[ "$(wc -l < a.csv)" = 2 ] || fail "a.csv: not a header and a row"
# Nothing but the document on standard output, whatever the command and the form.
expect 2 "$warmlap" verify $quick --set verify:mode=off
grep -q 'mode = off (--set) would verify nothing; expected full or quick' err ||
  fail "verify with mode = off: not refused"
expect 0 "$warmlap" verify $quick --json -
"$check" out --keys || fail "verify --json -: standard output is not one JSON document"
expect 0 "$warmlap" spans --device opencl:0:0 --size 16x16x16 --repeats 3 --json -
"$check" out || fail "spans --json -: standard output is not one JSON document"
expect 0 "$warmlap" pitfalls --device opencl:0:0 --set network:height=32 --set network:width=32 \
  --set latency:repetitions=2 --set verify:images=1 --json -
"$check" out || fail "pitfalls --json -: standard output is not one JSON document"
expect 0 "$warmlap" run $quick $timing --csv -
[ "$(wc -l < out)" = 2 ] && [ "$(head -c 7 out)" = status, ] || fail "--csv -: not a header and a row"
expect 0 "$warmlap" run $quick $timing --markdown -
[ "$(head -c 2 out)" = '| ' ] || fail "--markdown -: does not begin with the table"
commas=$(head -1 a.csv | tr -cd , | wc -c)
[ "$commas" -gt 20 ] || fail "a.csv: header"
grep -q '|.*---' a.md || fail "a.md is no Markdown table"

# An existing file is refused before any work, and kept; --force replaces it.
echo precious > kept.json
expect 2 "$warmlap" run $quick $timing --json kept.json
says err 'exists already'
[ "$(cat kept.json)" = precious ] || fail "an existing file was changed"
expect 2 "$warmlap" verify $quick --logits kept.json
[ "$(cat kept.json)" = precious ] || fail "an existing file was changed by --logits"
expect 2 "$warmlap" run $quick $timing --json nosuch/x.json
expect 2 "$warmlap" run $quick $timing --json .
# Nor is what the command itself reads, even with --force; and two outputs are two files.
printf '[run]\nseed = 1\n' > own.ini
ln -s own.ini own.link
expect 2 "$warmlap" run $quick $timing ./own.ini --json own.link --force
says err 'the configuration file'
expect 2 "$warmlap" verify $quick ./own.ini --logits own.ini --force
expect 2 "$warmlap" pitfalls $quick ./own.ini --json own.ini --force
[ "$(head -1 own.ini)" = '[run]' ] || fail "a configuration file was overwritten"
expect 2 "$warmlap" run $quick $timing --json twice.json --csv ./twice.json
says err 'one file'
expect 2 "$warmlap" verify $quick --json twice.json --logits ./twice.json
says err 'one file'
ln -s nowhere dangling.json
expect 2 "$warmlap" run $quick $timing --json dangling.json
says err 'symbolic link'
[ ! -s out ] || fail "a link to nothing was found out after the run"
# One file of logits for one row; and a store that is named and missing is an error.
expect 2 "$warmlap" verify $quick --set latency:batch=1,2 --logits rows.npy
says err '2 rows are to be verified'
[ -e rows.npy ] && fail "rows.npy was written"
expect 2 "$warmlap" run $quick $timing --set run:kernels=tuned --store nosuch.txt
says err "there is no 'nosuch.txt'"
# A folder that only looks writable is found out before anything is measured.
[ "$(id -u)" != 0 ] || [ ! -d /proc/self ] || {
  expect 2 "$warmlap" run $quick $timing --json /proc/x.json
  [ ! -s out ] || fail "/proc/x.json: found out after the run"
}
# A document whose name was taken meanwhile is kept beside it.
(tries=0
until grep -q 'batch 1: ' err || [ $tries = 300 ]; do
  sleep 0.05
  tries=$((tries + 1))
done
echo precious > taken.json) &
expect 1 "$warmlap" run $quick $timing --set latency:max_seconds=60 --set latency:burn_in=0.5 --json taken.json
wait
says err "the document is in './taken.json.kept-"
"$check" taken.json.kept-* --keys || fail "taken.json.kept-*"
[ "$(cat taken.json)" = precious ] || fail "taken.json was changed"

# Standard output closed, and a reader that goes away: an error, and the files are complete.
"$warmlap" run $quick $timing --force --json kept.json --csv kept.csv >&- 2> err
[ $? = 1 ] || fail "closed standard output: no exit status 1"
says err 'standard output'
"$check" kept.json --keys || fail "closed standard output spoils kept.json"
[ "$(wc -l < kept.csv)" = 2 ] || fail "closed standard output spoils kept.csv"
ls ./*.tmp 2> /dev/null && fail "temporary files are left"
{ "$warmlap" run $quick $timing --json - --csv piped.csv 2> err; echo $? > status; } | true
[ "$(cat status)" -gt 0 ] && [ "$(cat status)" -lt 128 ] || fail "closed pipe: exit $(cat status)"
[ -s piped.csv ] || fail "a closed pipe costs the other document"
expect 1 sh -c '"$1" devices >&-' - "$warmlap"

# ---- rows that fail ------------------------------------------------------------------------------
expect 1 env LAP_FAULT=1:oom "$warmlap" run $quick $timing --set latency:batch=1,2 --json failed.json
value failed.json rows.0.status failed
value failed.json rows.0.latency null
value failed.json rows.1.status ok

# ---- weights and logits --------------------------------------------------------------------------
expect 0 "$warmlap" weights --export w.safetensors --seed 1
says out '11689512 parameters'
expect 0 "$warmlap" verify $quick --logits a.npy
expect 0 "$warmlap" verify $quick --set network:weights=w.safetensors --logits b.npy
cmp a.npy b.npy || fail "exported weights give other logits"
[ "$(wc -c < a.npy)" -ge 4128 ] || fail "a.npy holds less than 1000 floats"
expect 2 "$warmlap" weights --export w.safetensors
says err "'w.safetensors' exists already"
expect 2 "$warmlap" weights --export nosuch/w.safetensors
grep -q '\[' err && fail "weights --export nosuch/w.safetensors: names a call"
for name in - w.bin .safetensors/; do
  expect 2 "$warmlap" weights --export $name
  says err .safetensors
done
says err 'ends in .safetensors'
expect 2 "$warmlap" run $quick --set network:weights=nosuch.safetensors
says err 'nosuch.safetensors: No such file or directory'
grep -q '\[' err && fail "a missing file: names a call"
# poke OFFSET BYTES: four bytes, as printf writes them, over those at OFFSET of w.safetensors.
poke() {
  printf "$2" | dd of=w.safetensors bs=1 seek="$1" conv=notrunc 2> /dev/null
}
first_byte() { # first_byte TENSOR: where its data begins in w.safetensors
  header=$(od -An -tu8 -N8 w.safetensors | tr -d ' ')
  offset=$(dd if=w.safetensors bs=1 skip=8 count="$header" 2> /dev/null |
    sed "s/.*\"$1\":{[^}]*\"data_offsets\":\[\([0-9]*\).*/\1/")
  echo $((8 + header + offset))
}
# A NaN is refused when it is loaded. Two weights in a row that make fp32 overflow where the
# reference in double does not make every result wrong.
poke "$(first_byte conv1.weight)" '\000\000\300\177'
expect 2 "$warmlap" run $quick $timing --set network:weights=w.safetensors
says err 'conv1.weight: element 0 is nan'
poke "$(first_byte conv1.weight)" '\346\261\141\177'
poke "$(first_byte layer1.0.conv1.weight)" '\346\261\141\177'
expect 4 "$warmlap" run $quick $timing --set network:weights=w.safetensors --json wrong.json
value wrong.json rows.0.status failed
value wrong.json rows.0.verified.passed false
value wrong.json rows.0.verified.first_wrong logits
value wrong.json rows.0.latency null
value wrong.json rows.0.cold.first_s null
value wrong.json rows.0.fps null
rm -f w.safetensors

# ---- interruption --------------------------------------------------------------------------------
"$warmlap" run $quick --set run:modes=latency --set latency:repetitions=1000000 \
  --set latency:warmup=0 --set latency:max_seconds=1 --set latency:batch=1,2,4 \
  --json stopped.json > out 2> err &
pid=$!
tries=0
until grep -q 'batch 2: latency' err || [ $tries = 600 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
sleep 0.2
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "interrupted: no exit status 130"
says err 'warmlap: stopping; press again to leave at once, without the rows'
"$check" stopped.json --keys || fail "interrupted: keys"
value stopped.json rows.# 3
value stopped.json rows.0.status ok
value stopped.json rows.1.status skipped
value stopped.json rows.2.status skipped
value stopped.json rows.2.latency null
case $("$check" stopped.json rows.1.reason) in
  *interrupted*) ;;
  *) fail "interrupted: reason of row 1" ;;
esac
value stopped.json rows.1.latency.interrupted true
value stopped.json rows.1.verified.rerun_same true

# Killed, and taken up again after the last finished row.
"$warmlap" run $quick $timing --set latency:batch=1,2,4 --set latency:burn_in=0.3 --json killed.json \
  > out 2> killed.err &
pid=$!
tries=0
until grep -q 'batch 2: latency' killed.err 2> /dev/null || [ $tries = 600 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
kill -KILL $pid
wait $pid 2> /dev/null
value killed.json finished false
value killed.json rows.0.status ok
value killed.json rows.1.status skipped
kept=$("$check" killed.json rows.0)
expect 2 "$warmlap" run --resume killed.json --set latency:warmup=1
says err "[latency] warmup is '0' there, '1' here"
expect 0 "$warmlap" run --resume killed.json
value killed.json finished true
value killed.json resumed.# 1
value killed.json rows.0 "$kept"
value killed.json rows.2.status ok
"$check" killed.json --keys || fail "killed and resumed: keys"
ls ./*.tmp 2> /dev/null && fail "temporary files are left"

# Full verification of a large image takes long; it stops between two layers.
"$warmlap" verify --device opencl:0:0 --set run:kernels=naive --set verify:images=1 > slow.out 2> slow.err &
pid=$!
tries=0
until grep -q 'batch 1: verifying' slow.err 2> /dev/null || [ $tries = 600 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "interrupted while verifying: no exit status 130"
says slow.out skipped
grep -Eq 'interrupted (in the .* check of|before its kernels)' slow.out ||
  { fail "interrupted while verifying: reason"; sed 's/^/  | /' slow.out; }

# ---- places and terminals ------------------------------------------------------------------------
mkdir readonly && chmod 555 readonly
# The superuser may write anywhere, but for folders that have no files.
place=readonly
[ "$(id -u)" != 0 ] || [ ! -d /proc/self ] || place=/proc/self
expect 0 sh -c 'cd "$1" && ! { true > x; } 2> /dev/null && shift && "$@"' - $place \
  "$warmlap" run $quick $timing
says out 'through OpenCL runs ResNet-18'
if [ "$(id -u)" != 0 ]; then
  expect 2 "$warmlap" run $quick $timing --json readonly/x.json
fi
chmod 755 readonly
if command -v script > /dev/null && script -qec true /dev/null > /dev/null 2>&1; then
  # A failed row is the one that is coloured. \033[K redraws the bar, \033[...m is a colour.
  escape=$(printf '\033')
  for no_color in '' 1; do
    TERM=xterm LAP_FAULT=1:oom NO_COLOR=$no_color script -qec \
      "stty cols 40; '$warmlap' run $(echo $quick $timing)" /dev/null > terminal.out < /dev/null
    [ $? = 1 ] || fail "on a terminal of 40 columns: exit status"
    grep -q ResNet-18 terminal.out || fail "no result on a terminal of 40 columns"
    colours=$(grep -c "$escape\[[0-9;]*m" terminal.out)
    [ -z "$no_color" ] && [ "$colours" = 0 ] && fail "no colours on a terminal"
    [ -n "$no_color" ] && [ "$colours" != 0 ] && fail "NO_COLOR=1, and there are colours"
  done
fi

[ $failures = 0 ] && echo "all passed" || { echo "$failures failed"; exit 1; }
