#!/usr/bin/env bash
# Runs small_rows under Oclgrind and fails on anything that it reports.
# Usage: oclgrind.sh SMALL_ROWS whole|split|half SCRATCH_DIR
# half: whole, with elements of 16 bits, one shape a row: the paths are those of fp32.
# Exit status 77: Oclgrind is not installed.
set -euo pipefail
program=$1 mode=$2 scratch=$3
command -v oclgrind >/dev/null || { echo "skipped: oclgrind is not installed"; exit 77; }
mkdir -p "$scratch"
log="$scratch/$mode.log"
rm -f "$log"
checks=(--uninitialized)
rows=$mode
export LAP_TEST_PRECISIONS=fp32
if [ "$mode" = half ]; then
  rows=whole LAP_TEST_PRECISIONS='fp16 bf16'
  export LAP_TEST_ONE_SHAPE=1
fi
[ "$mode" = split ] || checks+=(--data-races)
# Without optimisation: the check for uninitialised values does not know LLVM's freeze instruction.
status=0
output=$(oclgrind --build-options -cl-opt-disable "${checks[@]}" --max-errors 20 --log "$log" \
  "$program" opencl "$rows" 2>&1) || status=$?
echo "$output"
grep -q '^device: Oclgrind' <<<"$output" || { echo "it did not run on Oclgrind"; exit 1; }
grep -q 'OCLGRIND FATAL' <<<"$output" && exit 1
if [ -s "$log" ]; then
  head -n 60 "$log"
  exit 1
fi
exit "$status"
