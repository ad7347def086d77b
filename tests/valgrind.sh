#!/usr/bin/env bash
# Valgrind's memcheck over whole runs of the program, worker processes included: no error and no lost block.
# The device is the fake OpenCL driver (tests/standin), since Valgrind does not know what PoCL compiles for
# a newer processor; its kernels do nothing, so a run is made unverified, and one verified that must end in
# "wrong". Rows with right results are those of the fake backend (tests/app/soak.c).
# Usage: valgrind.sh WARMLAP SOAK FAKE_VENDORS FAKE_DRIVER SCRATCH_FOLDER; 77 where there is no Valgrind.
set -u
warmlap=$1 soak=$2 scratch=$5
supp=$(cd "$(dirname "$0")" && pwd)/valgrind.supp
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
# The loader finds the fake driver through a folder (ocl-icd) or a name (Khronos).
export OCL_ICD_VENDORS=$3 OCL_ICD_FILENAMES=$4 XDG_CACHE_HOME=$scratch/cache XDG_DATA_HOME=$scratch/data
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch" || exit 1

# What is lost for good, or cannot be reached but from its middle, is an error, and so is
# every use of memory that is not there or was not written. Blocks still reachable at the end are counted
# only: a worker leaves without closing what its parent lent it. One suppression, explained there.
check=(valgrind --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible
  --errors-for-leak-kinds=definite,indirect,possible --num-callers=25 --quiet --suppressions="$supp")
failures=0 count=0
expect() { # STATUS COMMAND...
  local wanted=$1 status
  shift
  count=$((count + 1))
  "${check[@]}" --log-file="$scratch/$count.%p.log" "$@" >"$scratch/$count.out" 2>&1
  status=$?
  # A worker's findings do not reach its parent's exit status: every process' report must be empty.
  if [ $status != "$wanted" ] || [ -n "$(cat "$scratch/$count".*.log)" ]; then
    echo "exit status $status, expected $wanted: $*"
    head -n 60 "$scratch/$count".*.log
    tail -n 20 "$scratch/$count.out"
    failures=$((failures + 1))
  fi
}

small=(--device opencl:0:0 --set network:height=32 --set network:width=32 --set run:kernels=naive)
expect 0 "$warmlap" devices
expect 0 "$warmlap" run quick "${small[@]}" --set verify:mode=off --layers --json a.json --csv a.csv --markdown a.md
expect 0 "$warmlap" run quick "${small[@]}" --set verify:mode=off --set run:isolate=no --set run:modes=latency \
  --set network:precision=fp32,fp16 --json b.json
expect 4 "$warmlap" verify "${small[@]}" --set verify:mode=quick --json c.json
expect 0 "$warmlap" run --resume a.json
expect 0 "$warmlap" compare a.json b.json
expect 0 "$warmlap" report a.json b.json --output report.html
expect 0 "$soak" rows fake 20
echo "$count commands under Valgrind, $failures with findings"
[ $failures = 0 ]
