#!/usr/bin/env bash
# From nothing to a result: installs what is missing (Debian, Ubuntu), builds, runs the benchmark on
# the best device found, prints the table, and writes results/*.json.
# Usage: scripts/bench.sh [ARGUMENTS of `warmlap run`]      e.g.  scripts/bench.sh quick --device all
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
esac

need "${base_packages[@]}"
check_tools
build "$top/build" -DLAP_TESTS=OFF
warmlap=$top/build/src/app/warmlap

# Without any OpenCL device PoCL makes the processor one.
if ! "$warmlap" devices 2>/dev/null | grep -q 'opencl:'; then need pocl-opencl-icd; fi

mkdir -p "$top/results"
name=$(date -u +%Y%m%dT%H%M%SZ)-$(uname -n | tr -c 'A-Za-z0-9\n' '-')-$$
"$warmlap" run "$@" --json "$top/results/$name.json"
say "results: results/$name.json"
