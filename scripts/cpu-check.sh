#!/usr/bin/env bash
# warmlap on the processor against ONNX Runtime: builds, verifies, then times both in turn, with as many
# threads, and prints the ratios at batch 1 and 16; once with direct kernels only, once as shipped.
# Usage: scripts/cpu-check.sh [OUTPUT_FOLDER]         default: results/
# Environment: LAP_ROUNDS=N   rounds (default 5). Of each program the best round's median counts: on a
#                             machine that does something else as well, that is the least disturbed one.
# Needs: pip install onnxruntime. Exit status 1: a result was wrong, or a program failed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;;
esac
out=${1:-$top/results}
mkdir -p "$out"
need "${base_packages[@]}" pocl-opencl-icd
check_tools
build "$top/build-cpu" -DLAP_TESTS=OFF
warmlap=$top/build-cpu/src/app/warmlap
peer="$top/scripts/peer_onnxruntime.py"
python3 "$peer" --help >/dev/null || die "ONNX Runtime cannot be run"

winograd=conv_winograd4_v,conv_winograd4_down_v,conv_winograd_v,conv_winograd_down_v
threads=$(nproc)

# ours NAME BATCH REPETITIONS VERIFY EXCLUDED: the median by the host's clock, in ms
ours() {
  "$warmlap" run --device type=cpu --set run:modes=latency --set "run:exclude=$5" --set "verify:mode=$4" \
    --set "latency:batch=$2" --set latency:warmup=5 --set "latency:repetitions=$3" --force \
    --json "$out/cpu-check-$1-$2.json" >"$out/cpu-check-$1-$2.txt" 2>&1 ||
    { cat "$out/cpu-check-$1-$2.txt" >&2; return 1; }
  python3 -c 'import json, statistics, sys
row = json.load(open(sys.argv[1]))["rows"][0]
print(1000 * statistics.median(row["spans"]["wall_samples_s"]))' "$out/cpu-check-$1-$2.json"
}

theirs() { # BATCH REPETITIONS
  python3 "$peer" --threads "$threads" --batch "$1" --repetitions "$2" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["median_ms"])'
}

least() { sort -g "$1" | head -n 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
verify=full
for ((round = 1; round <= ${LAP_ROUNDS:-5}; round++)); do
  say "round $round; load $(cut -d' ' -f1-3 /proc/loadavg)"
  for batch in 1 16; do
    repetitions=$((batch == 1 ? 40 : 8))
    ours direct $batch $repetitions $verify $winograd >>"$folder/direct-$batch"
    theirs $batch $repetitions >>"$folder/peer-$batch"
    ours default $batch $repetitions $verify "" >>"$folder/default-$batch"
  done
  verify=off # the same kernels, verified in the first round
done

{
  echo "ResNet-18, 224x224, fp32, $threads threads; ms per batch, best round's median"
  printf '%-8s %14s %14s %8s %14s %8s\n' batch "ONNX Runtime" "warmlap direct" ratio "warmlap" ratio
  for batch in 1 16; do
    awk -v n=$batch -v p="$(least "$folder/peer-$batch")" -v d="$(least "$folder/direct-$batch")" \
      -v w="$(least "$folder/default-$batch")" \
      'BEGIN { printf "%-8d %14.2f %14.2f %8.2f %14.2f %8.2f\n", n, p, d, p / d, w, p / w }'
  done
} | tee "$out/cpu-check.txt"
