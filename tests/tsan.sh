#!/usr/bin/env bash
# Builds with ThreadSanitizer and runs what drives several devices from several threads: the meeting
# points, whole rows on the fake backend, and two PoCL devices at the same time.
# Usage: tsan.sh SOURCE_FOLDER BUILD_FOLDER; 77 where ThreadSanitizer cannot run.
set -eu
source=$1 build=$2
mkdir -p "$build"
# Some kernels place memory where ThreadSanitizer does not expect it; without randomised addresses it runs.
printf 'int main(void){return 0;}' >"$build/try.c"
cc -fsanitize=thread "$build/try.c" -o "$build/try" 2>/dev/null || { echo "skipped: no ThreadSanitizer"; exit 77; }
run=()
if ! "$build/try" 2>/dev/null; then
  run=(setarch "$(uname -m)" -R)
  "${run[@]}" "$build/try" 2>/dev/null || { echo "skipped: ThreadSanitizer does not start here"; exit 77; }
fi
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g" -DLAP_SANITIZE=thread -DLAP_WERROR=OFF \
  -DLAP_NESTED=ON -DLAP_CUDA=OFF -DLAP_CLBLAST=OFF >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -j "$(nproc)" --target warmlap test_measure_team test_app_concurrent test_measure_telemetry \
  nvml_standin >"$build.log" 2>&1 || { tail -50 "$build.log"; exit 1; }
# PoCL was built without ThreadSanitizer, which then cannot see what its own threads agree on.
supp="$build/suppressions"
printf '%s\n' 'called_from_lib:libpocl.so' 'race:libpocl' 'mutex:libpocl' 'called_from_lib:libOpenCL.so' >"$supp"
export TSAN_OPTIONS="halt_on_error=1 exitcode=66 second_deadlock_stack=1 suppressions=$supp"
"${run[@]}" "$build/tests/measure/test_measure_team"
"${run[@]}" "$build/tests/app/test_app_concurrent"
icd=/etc/OpenCL/vendors/pocl.icd
[ -e $icd ] || { echo "no $icd: the run on two devices is left out"; exit 0; }
export POCL_DEVICES="pthread pthread" OCL_ICD_VENDORS=$icd
got=0
"${run[@]}" "$build/src/app/warmlap" run quick --device opencl --set run:device=all --set run:concurrent=yes \
  --set network:height=32 --set network:width=32 --set verify:images=1 --set latency:repetitions=10 \
  --set throughput:max_batch=2 --set throughput:batches=4 --set run:rounds=2 --set run:round_seconds=0.05 \
  --csv - >"$build/rows.csv" 2>"$build/rows.err" || got=$?
if grep -q 'ThreadSanitizer' "$build/rows.err"; then cat "$build/rows.err"; exit 1; fi
[ "$got" = 0 ] || { cat "$build/rows.err" "$build/rows.csv"; exit 1; }
grep -q ',sum,' "$build/rows.csv" || { echo "no sum in the result"; cat "$build/rows.csv"; exit 1; }
