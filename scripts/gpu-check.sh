#!/usr/bin/env bash
# Everything that needs a GPU, in one command: builds, runs every test with a device, verifies and times
# the network on every route, and prints the table beside PyTorch's in the same run.
# Usage: scripts/gpu-check.sh [OUTPUT_FOLDER]         default: results/
# Environment: LAP_DEPS=FOLDER  unpacked development packages (FOLDER/usr/include, …) to build with
#              LAP_BUILD=DIR    a finished build with its tests, instead of build-gpu
#              LAP_QUICK=1      skip the tests and PyTorch, only the table
#              LAP_STEPS="A B"  only these steps (their names are printed: devices, ctest, fp32, …)
set -uo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# //p' "$0"; exit 0 ;;
esac
out=${1:-$top/results}
mkdir -p "$out"
failed=0 ran=0

options=(-DLAP_TESTS=ON -DLAP_WERROR=OFF)
if [ -n "${LAP_BUILD:-}" ]; then
  folder=$(cd "$LAP_BUILD" 2>/dev/null && pwd) || die "LAP_BUILD=$LAP_BUILD: no such folder"
elif [ -n "${LAP_DEPS:-}" ]; then
  deps=$(cd "$LAP_DEPS" && pwd)
  lib=$deps/usr/lib/$(uname -m)-linux-gnu
  export PATH=$PATH:$deps/usr/bin LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$deps
  options+=("-DCMAKE_PREFIX_PATH=$deps/usr" "-DCMAKE_LIBRARY_PATH=$lib" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$lib")
else
  need "${base_packages[@]}" "${test_packages[@]}"
fi
if [ -z "${LAP_BUILD:-}" ]; then
  folder=$top/build-gpu
  build "$folder" "${options[@]}"
fi
warmlap=$folder/src/app/warmlap
[ -x "$warmlap" ] || die "$folder has no built program"

step() { # step NAME COMMAND...: runs, logs to the output folder, remembers failures
  local name=$1 start=$SECONDS
  shift
  case " ${LAP_STEPS:-$name} " in *" $name "*) ;; *) return ;; esac
  ran=$((ran + 1))
  echo "== $name"
  "$@" >"$out/$name.txt" 2>&1
  local rc=$?
  tail -n "${LAP_TAIL:-40}" "$out/$name.txt"
  echo "-- $name: exit $rc, $((SECONDS - start)) s"
  [ $rc = 0 ] || failed=1
}

step devices "$warmlap" devices
if [ -z "${LAP_QUICK:-}" ]; then
  step ctest ctest --test-dir "$folder" --output-on-failure -L "gpu|cuda|opencl|fake" -LE "slow|compile"
fi
# Verified in full and timed; a precision that a device lacks is a row that says so, and no failure.
for precision in fp32 fp32x3 tf32 fp16 bf16; do
  before=$failed
  step "$precision" "$warmlap" run --device type=gpu --set run:modes=latency --set "network:precision=$precision" \
    --set latency:batch=1,8,64,256 --force --json "$out/$precision.json"
  if [ "$precision" != fp32 ] && grep -qs unsupported "$out/$precision.txt" &&
    ! grep -qE '"status": ?"failed"' "$out/$precision.json"; then failed=$before; fi
done
# The other networks, and one large image: a single image is verified, in all layers.
step networks "$warmlap" run --device type=gpu --set run:modes=latency --set latency:copies=no \
  --set network:model=resnet34,resnet50,efficientnet_b0 --set network:precision=fp32,tf32,fp16 \
  --set latency:batch=1,256 --set latency:repetitions=50 --set verify:images=1 --force --json "$out/networks.json"
step wide "$warmlap" run --device type=gpu --set run:modes=latency --set latency:copies=no \
  --set network:height=1024 --set network:width=2048 --set network:precision=fp32,tf32,fp16 \
  --set latency:repetitions=50 --set verify:mode=quick --set verify:images=1 --force --json "$out/wide.json"
step survey "$warmlap" run survey --force --json "$out/survey.json" --markdown "$out/survey.md"
# Where the time of a pass goes, with the ceilings that this device was seen to reach.
step layers "$warmlap" run --device type=gpu --layers --set run:modes=latency --set verify:mode=quick \
  --set network:precision=fp32,fp32x3,tf32,fp16 --set latency:batch=1,256 --set latency:repetitions=50 --force \
  --json "$out/layers.json" --markdown "$out/layers.md"
if [ -z "${LAP_QUICK:-}" ] && python3 -c 'import torch, torchvision' 2>/dev/null; then
  step pytorch python3 "$top/scripts/peer_pytorch.py" --precision fp32,tf32,fp16 --wide --jobs auto \
    --json "$out/pytorch.json"
  step beside python3 "$top/scripts/beside_pytorch.py" "$out/pytorch.json" "$out"/{fp32,tf32,fp16,wide}.json
  step pytorch-efficientnet python3 "$top/scripts/peer_pytorch.py" --model efficientnet_b0 --precision fp32,fp16 \
    --batch 1,256 --jobs auto --json "$out/pytorch-efficientnet.json"
  step beside-efficientnet python3 "$top/scripts/beside_pytorch.py" "$out/pytorch-efficientnet.json" "$out/networks.json"
fi
[ $ran -gt 0 ] || die "LAP_STEPS=\"${LAP_STEPS:-}\": none of these is a step; see the names in $0"
[ $failed = 0 ] && echo "gpu-check: all passed" || echo "gpu-check: FAILED"
exit $failed
