#!/usr/bin/env bash
# Builds the tests with warnings as errors and runs all that can run here. Tests that need a GPU carry
# the labels gpu and cuda; without one they are left out (scripts/gpu-check.sh runs them).
# Usage: scripts/test.sh [CTEST_ARGUMENT...]      e.g. scripts/test.sh -LE slow
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
esac

need "${base_packages[@]}" "${test_packages[@]}" pocl-opencl-icd
want "${checker_packages[@]}"
check_tools cmocka
build "$top/build-test" -DLAP_TESTS=ON -DLAP_WERROR=ON
# ctest leaves a test out only when every -LE names it, so all of them become one.
exclude=()
[ -e /dev/nvidia0 ] || exclude=('gpu|cuda')
args=()
while [ $# -gt 0 ]; do
  case $1 in
    -LE | --label-exclude) [ $# -gt 1 ] || die "$1 needs a regular expression of labels"
      exclude+=("$2")
      shift ;;
    *) args+=("$1") ;;
  esac
  shift
done
if [ ${#exclude[@]} -gt 0 ]; then args+=(-LE "$(IFS='|' && printf '%s' "${exclude[*]}")"); fi
cd "$top/build-test"
ctest -j "$(nproc)" --output-on-failure "${args[@]}"
