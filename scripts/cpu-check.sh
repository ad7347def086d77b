#!/usr/bin/env bash
# warmlap on the processor against ONNX Runtime: builds, verifies, then times both in turn, with as many
# threads, and prints the ratios: ResNet-18 at batch 1 and 16, once with direct kernels only, once as
# shipped; the other networks at batch 1 as shipped.
# Usage: scripts/cpu-check.sh [OUTPUT_FOLDER]         default: results/
# Environment: LAP_ROUNDS=N   rounds (default 5). Of each program the best round's median counts: on a
#                             machine that does something else as well, that is the least disturbed one.
# Needs: pip install onnxruntime. Exit status 1: a result was wrong, or a program failed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# //p' "$0"; exit 0 ;;
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
others=(resnet34 resnet50 efficientnet_b0)

# ours MODEL NAME BATCH REPETITIONS VERIFY EXCLUDED: the median by the host's clock, in ms
ours() {
  local file=$out/cpu-check-$1-$2-$3
  "$warmlap" run --device type=cpu --set run:modes=latency --set "network:model=$1" --set "run:exclude=$6" \
    --set "verify:mode=$5" --set "latency:batch=$3" --set latency:warmup=5 --set "latency:repetitions=$4" --force \
    --json "$file.json" >"$file.txt" 2>&1 || { cat "$file.txt" >&2; return 1; }
  python3 -c 'import json, statistics, sys
row = json.load(open(sys.argv[1]))["rows"][0]
print(1000 * statistics.median(row["spans"]["wall_samples_s"]))' "$file.json"
}

theirs() { # MODEL BATCH REPETITIONS
  python3 "$peer" --model "$1" --threads "$threads" --batch "$2" --repetitions "$3" |
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
    ours resnet18 direct $batch $repetitions $verify $winograd >>"$folder/direct-$batch"
    theirs resnet18 $batch $repetitions >>"$folder/resnet18-peer-$batch"
    ours resnet18 default $batch $repetitions $verify "" >>"$folder/resnet18-default-$batch"
  done
  for model in "${others[@]}"; do
    theirs "$model" 1 25 >>"$folder/$model-peer-1"
    ours "$model" default 1 25 $verify "" >>"$folder/$model-default-1"
  done
  verify=off # the same kernels, verified in the first round
done

{
  echo "224x224, fp32, $threads threads; ms per batch, best round's median"
  printf '%-16s %5s %14s %14s %6s\n' network batch "ONNX Runtime" warmlap ratio
  line() { # NAME BATCH PEER_FILE OUR_FILE
    awk -v name="$1" -v n="$2" -v p="$(least "$folder/$3")" -v w="$(least "$folder/$4")" \
      'BEGIN { printf "%-16s %5d %14.2f %14.2f %6.2f\n", name, n, p, w, p / w }'
  }
  for batch in 1 16; do
    line "resnet18 direct" $batch resnet18-peer-$batch direct-$batch
    line resnet18 $batch resnet18-peer-$batch resnet18-default-$batch
  done
  for model in "${others[@]}"; do line "$model" 1 "$model-peer-1" "$model-default-1"; done
} | tee "$out/cpu-check.txt"
