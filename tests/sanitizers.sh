#!/usr/bin/env bash
# Builds everything again with AddressSanitizer and UndefinedBehaviorSanitizer; runs the tests that need
# no device, then those that run on the processor through OpenCL.
# Optimised a little: half the time.
# Usage: sanitizers.sh SOURCE_FOLDER BUILD_FOLDER
set -eu
source=$1 build=$2
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g" -DLAP_SANITIZE=address,undefined -DLAP_WERROR=OFF \
  -DLAP_NESTED=ON >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -j "$(nproc)" >"$build.log" 2>&1 || { tail -50 "$build.log"; exit 1; }
export UBSAN_OPTIONS=print_stacktrace=1
bad=0
# Left out: what looks at texts or runs a browser; memory that must stay flat, where a sanitizer keeps
# freed blocks; the logits of whole networks in double precision, whose operators other tests run.
ctest --test-dir "$build" -L 'unit|fake' -LE 'slow|gpu|cuda|compile' --output-on-failure \
  -E '^(format|docs.*|layering.*|gpu_sanitize|report_browser|soak.*|net_reference)$' || bad=1
# Other vendors' OpenCL drivers are loaded in a way that AddressSanitizer refuses.
icd=/etc/OpenCL/vendors/pocl.icd
[ -e $icd ] || { echo "no $icd: the tests on a device are left out"; exit $bad; }
export OCL_ICD_VENDORS=$icd
# Left out: the rows of kernels, whose time goes into PoCL's compiler.
LSAN_OPTIONS=suppressions=$source/tests/lsan.supp:print_suppressions=0 \
  ctest --test-dir "$build" -L opencl --output-on-failure \
  -E '^(rows_.*|oclgrind.*|soak.*|fleet_cli)$' || bad=1
# mpirun and its library end without freeing what they hold, from libraries unloaded by then.
ASAN_OPTIONS=detect_leaks=0 ctest --test-dir "$build" --output-on-failure -R '^fleet_cli$' || bad=1
exit $bad
