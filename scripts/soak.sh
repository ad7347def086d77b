#!/usr/bin/env bash
# Many short runs, each kind in one process: builds, then shows memory, open files and threads over the
# runs, and fails when one of them grew. 100,000 rows on the fake backend, 2,000 on the processor through
# PoCL, and 200 whole `warmlap run` commands; tests/app/soak.c says what a run is. About ten minutes of
# one core, at low priority.
# Usage: scripts/soak.sh [ROWS_ON_FAKE [ROWS_ON_POCL [COMMANDS]]]     0 leaves a kind out; others: from 20
# Environment: LAP_SOAK_DEVICE=SELECTOR   rows on this device instead of PoCL (cuda:0)
set -uo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;;
esac
fake=${1:-100000} pocl=${2:-2000} commands=${3:-200}
need "${base_packages[@]}" "${test_packages[@]}" pocl-opencl-icd
check_tools cmocka
build "$top/build-test" -DLAP_TESTS=ON -DLAP_WERROR=ON

# Freed blocks go back at once: malloc's own lists of them would count as memory in use.
export GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0

failed=0
soak() { # TITLE RUNS PROGRAM ARGUMENT...
  [ "$2" = 0 ] && return 0
  echo "== $1: $2"
  local start=$SECONDS
  nice -n 15 "$top/build-test/tests/app/$3" "${@:4}" "$2"
  local status=$?
  echo "-- exit $status, $((SECONDS - start)) s"
  [ $status = 0 ] || failed=1
}

soak "rows on the fake backend" "$fake" soak rows fake
if [ -n "${LAP_SOAK_DEVICE:-}" ]; then
  soak "rows on $LAP_SOAK_DEVICE" "$pocl" soak_device rows "$LAP_SOAK_DEVICE"
else
  # PoCL alone: its own cache in a folder of its own, other vendors' drivers not loaded.
  POCL_CACHE_DIR=$(mktemp -d)
  trap 'rm -rf "$POCL_CACHE_DIR"' EXIT
  export POCL_CACHE_DIR
  [ -e /etc/OpenCL/vendors/pocl.icd ] && export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
  soak "rows on the processor through PoCL" "$pocl" soak_device rows opencl
fi
soak "whole commands on the fake backend" "$commands" soak commands fake
[ $failed = 0 ] && echo "soak: all flat" || echo "soak: FAILED"
exit $failed
