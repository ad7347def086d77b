#!/usr/bin/env bash
# Compiles every distinct build of the OpenCL kernels with a compiler for GPUs that are not here.
# Usage: compile_cl.sh amdgcn|intel KERNEL_VARIANTS KERNELS_CL SCRATCH_DIR
# Exit status: 0 all compiled, 1 some did not, 77 the compiler is not installed.
set -euo pipefail
target=$1 variants=$2 kernels=$3 scratch=$4
mkdir -p "$scratch"

case "$target" in
  amdgcn)
    # The newest: clang 15 dies of matrix instructions of gfx11 when it optimises.
    for version in -19 -18 -17 -16 -15 ""; do
      tool=$(command -v "clang$version" || true) device=amd forms="amd-mfma amd-wmma"
      [ -z "$tool" ] || break
    done
    [ -n "$tool" ] || { echo "skipped: no clang is installed"; exit 77; }
    echo "compiler: $("$tool" --version | head -n 1)"
    major=$("$tool" -dumpversion | cut -d. -f1)
    echo 'kernel void empty(void) {}' >"$scratch/empty.cl"
    "$tool" -x cl -cl-std=CL1.2 -target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -c \
      -Xclang -finclude-default-header -o "$scratch/empty.o" "$scratch/empty.cl" 2>/dev/null ||
      { echo "skipped: $tool has no amdgcn target"; exit 77; }
    ;;
  intel)
    tool=$(command -v ocloc || true) device=intel forms="intel-8 intel-16"
    [ -n "$tool" ] || { echo "skipped: ocloc (Debian's intel-opencl-icd) is not installed"; exit 77; }
    ;;
  *) echo "usage: $0 amdgcn|intel KERNEL_VARIANTS KERNELS_CL SCRATCH_DIR" >&2; exit 2 ;;
esac

# What Intel's driver declares on devices with these instructions: ocloc of 2022 knows them, but no
# device that has the extension.
matrix_declarations() {
  echo "#define cl_intel_subgroup_matrix_multiply_accumulate 1"
  local type a
  for type in f16 bf16; do
    for a in int8 short8; do
      echo "__attribute__((overloadable)) float8 intel_sub_group_${type}_${type}_matrix_mad_k16($a a,"
      echo "int8 b, float8 acc);"
    done
  done
}

# A kernel with its own parts in the place of their #include lines, as the program embeds it: ocloc
# looks in no folder.
whole() {
  awk -v folder="$kernels" '
    /^#include "/ { split($0, part, "\""); file = folder "/" part[2]
      while ((got = (getline line < file)) > 0) print line
      if (got < 0) { print "no " file > "/dev/stderr"; exit 1 }
      close(file); next }
    { print }' "$kernels/$1.cl"
}

# One build; prints the compiler's output only when it fails.
one() {
  local stem=$1 options=$2 id=$3 arch log="$scratch/$3.log" file="$kernels/$1.cl" level=-O2
  local devices=dg2
  [ "$target" = intel ] || devices="gfx90a gfx1100"
  if [ "$stem" = conv_matrix ]; then
    case " $options " in
      *" -DFORM=1 "*) devices=gfx90a ;;
      *" -DFORM=2 "*) devices=gfx1100
        [ "$major" -ge 16 ] || { level=-O0; options+=" -U__clang_major__ -D__clang_major__=16"; } ;;
      *" -DFORM=3 "*) devices=dg2 ;;
      *" -DFORM=4 "*) devices=pvc ;;
    esac
  fi
  if [ "$target" = intel ]; then
    file="$scratch/$id.cl"
    { [ "$stem" != conv_matrix ] || matrix_declarations; whole "$stem"; } >"$file" || return 1
  fi
  local -a words
  read -ra words <<<"$options"
  for arch in $devices; do
    if [ "$target" = amdgcn ]; then
      "$tool" -x cl -cl-std=CL1.2 -target amdgcn-amd-amdhsa -mcpu="$arch" -nogpulib $level -c \
        -Xclang -finclude-default-header "${words[@]}" -o "$scratch/$id.o" "$file" \
        >"$log" 2>&1 || { echo "$arch: $stem $options"; head -n 20 "$log"; return 1; }
    else
      "$tool" compile -device "$arch" -file "$file" -options "-cl-std=CL1.2 $options" \
        -output "$id" -out_dir "$scratch" >"$log" 2>&1 ||
        { echo "$arch: $stem $options"; head -n 20 "$log"; return 1; }
    fi
  done
}

list=$("$variants" "$device")
[ -n "$list" ] || { echo "no builds to compile"; exit 1; }
for form in $forms; do
  # Every third: the tiles differ in little.
  matrix=$("$variants" "$form" 8 | grep '^conv_matrix' | awk 'NR % 3 == 1')
  [ -n "$matrix" ] || { echo "$form: no builds of conv_matrix"; exit 1; }
  list+=$'\n'"$matrix"
done
list=$(awk '!seen[$0]++' <<<"$list")
[ -z "${LAP_TEST_STEM:-}" ] || list=$(grep "^$LAP_TEST_STEM" <<<"$list")
count=0 failed=0
while IFS=$'\t' read -r stem options; do
  count=$((count + 1))
  one "$stem" "$options" "build$count" || failed=$((failed + 1))
done <<<"$list"
rm -rf "$scratch"
echo "$count builds, $failed failed"
[ "$failed" -eq 0 ]
