#!/usr/bin/env bash
# Runs the libFuzzer programs of tests/fuzz one after the other, each so many inputs (10,000,000), at the
# lowest priority; stops at the first finding, whose input is then in build-fuzz/found.
# Usage: scripts/fuzz.sh [RUNS [TARGET...]]      targets: ini json safetensors npy tune selector
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
esac
runs=${1:-10000000}
shift $(($# > 0))
[ $# -gt 0 ] || set -- selector npy tune safetensors json ini
command -v clang-15 >/dev/null || die "clang-15 is missing (libFuzzer comes with it)"
build "$top/build-fuzz" -DCMAKE_C_COMPILER=clang-15 -DLAP_FUZZ=ON -DLAP_CUDA=OFF -DLAP_OPENCL=OFF -DLAP_TESTS=ON
export ASAN_OPTIONS=quarantine_size_mb=4:malloc_context_size=2
for target in "$@"; do
  program=$top/build-fuzz/tests/fuzz/fuzz_$target
  [ -x "$program" ] || die "no target $target"
  found=$top/build-fuzz/found corpus=$top/build-fuzz/corpus/$target
  mkdir -p "$found" "$corpus"
  nice -n 19 "$program" -runs="$runs" -max_len=1024 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -print_final_stats=1 -dict="$top/tests/fuzz/$target.dict" -artifact_prefix="$found/$target-" \
    "$corpus" "$top/tests/fuzz/corpus/$target" >"$corpus.log" 2>&1 ||
    { tail -40 "$corpus.log"; die "$target: a finding; its input is in $found"; }
  awk -v target="$target" '/number_of_executed_units/ { n = $2 } /average_exec_per_sec/ { rate = $2 }
    /peak_rss_mb/ { rss = $2 } END { printf "%-12s %d runs, %d a second, %d MiB, no finding\n", target, n, rate, rss }' \
    "$corpus.log"
done
