#!/usr/bin/env bash
# compute-sanitizer over the CUDA kernels: memcheck, racecheck, initcheck and synccheck on every kernel row
# in every precision and on tiny shapes (tests/kernel/small_rows.c), then on whole networks at 64x64, which
# have the chained kernels, and on the kernels that measure the device. Builds, first makes sure that each
# tool finds a fault planted for it, then prints a table: clean, N errors, timed out, failed.
# Usage: scripts/gpu-sanitize.sh [OUTPUT_FOLDER]         default: results/sanitizer
# Environment: LAP_TOOLS="memcheck …"  only these tools      LAP_CASES=REGEX  only cases that match
#              LAP_JOBS=N      at the same time (4)          LAP_TIMEOUT=S    a case (300)
#              LAP_SECONDS=S   begin no case after S seconds (0: no limit)
#              LAP_PLAIN=no    do not run the cases without a tool first
#              LAP_BUILD=DIR   a finished build with its tests, instead of build-gpu
# Exit status 1: something is not clean.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,13s/^# //p' "$0"; exit 0 ;;
esac
out=${1:-$top/results/sanitizer}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
rm -f "$out"/*.result "$out"/*.log "$out"/*.out
sanitizer=$(PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer command -v compute-sanitizer) ||
  die "no compute-sanitizer (it comes with the CUDA toolkit)"
if [ -n "${LAP_BUILD:-}" ]; then
  folder=$(cd "$LAP_BUILD" && pwd)
else
  need "${base_packages[@]}" "${test_packages[@]}"
  build "$top/build-gpu" -DLAP_TESTS=ON -DLAP_WERROR=OFF
  folder=$top/build-gpu
fi
rows=$folder/tests/kernel/small_rows warmlap=$folder/src/app/warmlap
[ -x "$rows" ] && [ -x "$warmlap" ] || die "$folder has no built tests"
read -r -a tools <<<"${LAP_TOOLS:-memcheck racecheck initcheck synccheck}"
limit=${LAP_TIMEOUT:-300}
# Kernels are compiled once, before the tools look on.
export LAP_TEST_CACHE=$out/cache/rows XDG_CACHE_HOME=$out/cache
mkdir -p "$LAP_TEST_CACHE"

# ---- cases: "NAME|ARGUMENTS of small_rows" or "NAME|+ARGUMENTS of warmlap"
small="--set run:isolate=no --set run:telemetry=no --set network:height=64 --set network:width=64"
small+=" --set verify:images=1 --force --json /dev/null --device cuda:0"
cases=()
for precision in fp16 bf16 tf32 fp32x3; do
  cases+=("resnet18-$precision|+verify $small --set network:precision=$precision --set latency:batch=1")
done
cases+=("resnet50-fp16|+verify $small --set network:model=resnet50 --set network:precision=fp16 --set latency:batch=2"
  "resnet18-fp32|+verify $small --set network:precision=fp32 --set latency:batch=2"
  "efficientnet-fp16|+verify $small --set network:model=efficientnet_b0 --set network:precision=fp16 --set latency:batch=2"
  "efficientnet-fp32|+verify $small --set network:model=efficientnet_b0 --set network:precision=fp32 --set latency:batch=1"
  "measuring|+run $small --set network:precision=fp32,fp16 --set latency:repetitions=2 --set latency:warmup=0 --set run:modes=latency --layers")
while read -r row _; do cases+=("$row|cuda both $row"); done < <("$rows" cuda list)
if [ -n "${LAP_CASES:-}" ]; then
  chosen=()
  for c in "${cases[@]}"; do grep -qE -- "$LAP_CASES" <<<"${c%%|*}" && chosen+=("$c"); done
  cases=("${chosen[@]}")
fi

# one TOOL NAME ARGUMENTS: leaves one word or two in OUT/NAME.TOOL.result; the tool "plain" is none.
one() {
  local tool=$1 name=$2 program=$rows log=$out/$2.$1.log result status words
  read -r -a words <<<"${3#+}"
  [ "${3#+}" = "$3" ] || program=$warmlap
  if [ "${LAP_SECONDS:-0}" -gt 0 ] && [ $(($(date +%s) - began)) -ge "${LAP_SECONDS:-0}" ]; then
    echo "not run" >"$out/$name.$tool.result"
    return
  fi
  local command=("$program" "${words[@]}")
  [ "$tool" = plain ] || command=("$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 10
    --log-file "$log" "${command[@]}")
  timeout "$limit" "${command[@]}" >"$out/$name.$tool.out" 2>&1
  status=$?
  case $status in
    0) result=clean ;;
    124) result="timed out" ;;
    *) result="failed ($status)" ;;
  esac
  if [ "$tool" != plain ] && [ $status != 124 ]; then
    local errors
    errors=$(sed -n 's/.*ERROR SUMMARY: \([0-9]*\) error.*/\1/p; s/.*RACECHECK SUMMARY: \([0-9]*\) hazard.*/\1/p' "$log" 2>/dev/null | tail -n 1)
    if [ -z "$errors" ]; then result="no summary ($status)"; fi
    if [ "${errors:-0}" != 0 ]; then result="$errors errors"; fi
  fi
  echo "$result" >"$out/$name.$tool.result"
}
export -f one
export rows warmlap sanitizer out limit
began=$(date +%s)
export began

each() { # TOOL: every case, so many at a time
  local c
  for c in "${cases[@]}"; do printf '%s\0%s\0%s\0' "$1" "${c%%|*}" "${c#*|}"; done |
    xargs -0 -n 3 -P "${LAP_JOBS:-4}" bash -c 'one "$@"' one
}

# ---- a tool that finds nothing where something is, proves nothing
for tool in "${tools[@]}"; do one "$tool" planted "cuda planted-$tool" & done
wait
for tool in "${tools[@]}"; do
  found=$(cat "$out/planted.$tool.result")
  echo "a fault planted for $tool: $found"
  case $found in
    *errors) ;;
    *) tail -n 20 "$out/planted.$tool.out" "$out/planted.$tool.log" >&2
      die "$tool does not find the fault that was planted for it" ;;
  esac
done

# Kernels of the rows are compiled for each precision by itself: many processors then have work.
for precision in fp32 fp32x3 tf32 fp16 bf16; do
  LAP_TEST_PRECISIONS=$precision "$rows" cuda list | while read -r row whole split; do
    if [ -z "${LAP_CASES:-}" ] || grep -qE -- "$LAP_CASES" <<<"$row"; then echo "$((whole + split)) $row $precision"; fi
  done
done | sort -rn | xargs -n 3 -P "$(nproc)" bash -c \
  'LAP_TEST_PRECISIONS=$2 exec timeout "$limit" "$rows" cuda both "$1"' >/dev/null 2>&1
say "compiled: $(($(date +%s) - began)) s"
plain=()
if [ "${LAP_PLAIN:-yes}" = yes ]; then plain=(plain); fi
for tool in "${plain[@]}" "${tools[@]}"; do
  each "$tool"
  say "$tool: $(($(date +%s) - began)) s"
done

{
  printf '%-22s' case
  printf ' %-16s' "${plain[@]}" "${tools[@]}"
  echo
  for c in "${cases[@]}"; do
    printf '%-22s' "${c%%|*}"
    for tool in "${plain[@]}" "${tools[@]}"; do printf ' %-16s' "$(cat "$out/${c%%|*}.$tool.result")"; done
    echo
  done
} | tee "$out/table.txt"
bad=$(cat "$out"/*.result | grep -vc '^clean$')
bad=$((bad - ${#tools[@]})) # the planted ones
all=$((${#cases[@]} * (${#plain[@]} + ${#tools[@]})))
if [ $bad = 0 ]; then
  echo "gpu-sanitize: all $all clean"
else
  echo "gpu-sanitize: $bad of $all are not clean; reports are in $out"
  exit 1
fi
