#!/usr/bin/env bash
# Compiles every distinct build of the OpenCL kernels with a compiler for GPUs that are not here.
# Usage: compile_cl.sh amdgcn|intel KERNEL_VARIANTS KERNELS_CL SCRATCH_DIR
# Exit status: 0 all compiled, 1 some did not, 77 the compiler is not installed.
set -euo pipefail
target=$1 variants=$2 kernels=$3 scratch=$4
mkdir -p "$scratch"

case "$target" in
  amdgcn)
    tool=$(command -v clang-15 || command -v clang || true) device=amd
    [ -n "$tool" ] || { echo "skipped: neither clang-15 nor clang is installed"; exit 77; }
    echo 'kernel void empty(void) {}' >"$scratch/empty.cl"
    "$tool" -x cl -cl-std=CL1.2 -target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -c \
      -Xclang -finclude-default-header -o "$scratch/empty.o" "$scratch/empty.cl" 2>/dev/null ||
      { echo "skipped: $tool has no amdgcn target"; exit 77; }
    ;;
  intel)
    tool=$(command -v ocloc || true) device=intel
    [ -n "$tool" ] || { echo "skipped: ocloc (Debian's intel-opencl-icd) is not installed"; exit 77; }
    ;;
  *) echo "usage: $0 amdgcn|intel KERNEL_VARIANTS KERNELS_CL SCRATCH_DIR" >&2; exit 2 ;;
esac

# One build; prints the compiler's output only when it fails.
one() {
  local stem=$1 options=$2 id=$3 arch log="$scratch/$3.log"
  local -a words
  read -ra words <<<"$options"
  if [ "$target" = amdgcn ]; then
    for arch in gfx90a gfx1100; do
      "$tool" -x cl -cl-std=CL1.2 -target amdgcn-amd-amdhsa -mcpu=$arch -nogpulib -O2 -c \
        -Xclang -finclude-default-header "${words[@]}" -o "$scratch/$id.o" "$kernels/$stem.cl" \
        >"$log" 2>&1 || { echo "$arch: $stem $options"; head -n 20 "$log"; return 1; }
    done
  else
    "$tool" compile -device dg2 -file "$kernels/$stem.cl" -options "-cl-std=CL1.2 $options" \
      -output "$id" -out_dir "$scratch" >"$log" 2>&1 ||
      { echo "dg2: $stem $options"; head -n 20 "$log"; return 1; }
  fi
}

list=$("$variants" "$device")
[ -n "$list" ] || { echo "no builds to compile"; exit 1; }
count=0 failed=0
while IFS=$'\t' read -r stem options; do
  count=$((count + 1))
  one "$stem" "$options" "build$count" || failed=$((failed + 1))
done <<<"$list"
rm -rf "$scratch"
echo "$count builds, $failed failed"
[ "$failed" -eq 0 ]
