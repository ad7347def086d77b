#!/bin/sh
# Two PoCL devices at the same time, from the command line: rows, sums, refusals.
# Usage: concurrent.sh WARMLAP JSON_CHECK FOLDER (made anew); 77 without PoCL.
set -u
warmlap=$1 check=$2 dir=$3
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
export XDG_CACHE_HOME="$PWD/cache" XDG_DATA_HOME="$PWD/data"
export POCL_DEVICES="pthread pthread"
[ -z "${OCL_ICD_VENDORS:-}" ] && [ -e /etc/OpenCL/vendors/pocl.icd ] && export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
"$warmlap" devices 2>/dev/null | grep -q 'opencl:0:1' || { echo "skipped: no two PoCL devices"; exit 77; }
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
value() { seen=$("$check" "$1" "$2") || seen="(nothing)"; [ "$seen" = "$3" ] || fail "$1: $2 is $seen, expected $3"; }
small="--set network:height=32 --set network:width=32 --set verify:mode=quick --set verify:images=1
  --set latency:repetitions=5 --set latency:warmup=1 --set latency:copies=no
  --set throughput:max_batch=2 --set throughput:batches=2 --set run:rounds=2 --set run:round_seconds=0.02"

"$warmlap" run --device all --set run:concurrent=yes $small --json two.json --csv two.csv --markdown two.md > out 2> err ||
  { fail "exit $?"; cat err; }
"$check" two.json > keys || { fail "keys"; cat keys; }
value two.json 'rows.#' 4
value two.json 'sets.#' 1
value two.json rows.0.concurrent null
value two.json rows.2.concurrent.others 1
value two.json rows.3.concurrent.alone_row 1
value two.json sets.0.members_rated 2
value two.json sets.0.members_timed 2
value two.json sets.0.rounds 2
grep -q 'sum of 2' out || fail "no sum in the table"
grep -q '| sum of 2 |' two.md || fail "no sum in the Markdown"
[ "$(grep -c ',sum,' two.csv)" = 1 ] || fail "no sum in the CSV"
grep -q 'concurrent with 1 other' out || fail "no note about the other device"

# Compared with themselves, rows beside others stay among themselves: two cases of two rows.
"$warmlap" compare two.json --clock wall --format csv > compared.csv 2> err || fail "compare: exit $?"
[ "$(grep -c ' +1' compared.csv)" = 2 ] || { fail "routes of rows beside others"; cat compared.csv; }
[ "$(grep -c 'baseline' compared.csv)" = 2 ] || { fail "two comparisons"; cat compared.csv; }

"$warmlap" run --device opencl:0:0 --set run:concurrent=yes $small > out 2> err
[ $? = 2 ] || fail "one device alone: exit $?"
grep -q 'expected two devices or more' err || { fail "one device: message"; cat err; }
echo "$failures failed"
[ "$failures" = 0 ]
