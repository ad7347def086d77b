#!/bin/sh
# The program where OpenCL's libraries are missing, damaged or other than they should be: it starts, says in
# one line what is lacking and what to install, and all else goes on.
# Usage: missing.sh WARMLAP FAKE_OPENCL SCRATCH_FOLDER [WARMLAP_OVER_STANDINS NVRTC_STANDIN]
# The folder becomes the root of a system that holds what the program is linked with, and nothing else. Where
# a root cannot be changed, that part is left out, and said.
set -u
warmlap=$1 fake=$2 dir=$3 standin=${4:-} nvrtc=${5:-}
rm -rf "$dir" && mkdir -p "$dir" || exit 1
root=$dir/root
failures=0

fail() {
  echo "FAILED: $*"
  sed 's/^/  | /' "$dir/out" "$dir/err"
  failures=$((failures + 1))
}

# expect STATUS COMMAND...; says TEXT...: in what it printed, whatever the lines are.
expect() {
  wanted=$1
  shift
  "$@" >"$dir/out" 2>"$dir/err" </dev/null
  got=$?
  all=$(cat "$dir/out" "$dir/err" | tr -s '\n ' '  ')
  [ $got = "$wanted" ] || fail "exit $got, expected $wanted: $*"
}
says() {
  for text; do
    case $all in *"$text"*) ;; *) fail "'$text' is not said" ;; esac
  done
}

# Files that the loader takes for a program, itself among them.
linked() { ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p'; }
add() { # add FILE...: each with what it is linked with
  for file; do
    for library in $(linked "$file"); do
      case $library in
      */ld-* | */ld.so*) mkdir -p "$root/$(dirname "$library")" && cp -L "$library" "$root/$library" ;;
      *) cp -L "$library" "$root/lib/" ;;
      esac
    done
  done
}
if [ "$(id -u)" = 0 ]; then change=chroot; else change="unshare -r chroot"; fi
bare() { # the same with nothing set, as in a container
  env -i PATH="$PATH" LD_LIBRARY_PATH=/lib HOME=/tmp $change "$root" "$@"
}
inside() { # inside [VARIABLE=VALUE...] PROGRAM ARGUMENT...
  env -i PATH="$PATH" LD_LIBRARY_PATH=/lib HOME=/tmp OCL_ICD_VENDORS=/vendors OCL_ICD_FILENAMES=/lib/fake.so \
    OCL_ICD_PLATFORM_SORT=none LAP_NVRTC=/lib/nvrtc.so $change "$root" "$@"
}

row="run --set network:height=32 --set network:width=32 --set verify:mode=off --set run:modes=latency
  --set run:kernels=unfused --set latency:repetitions=2 --set latency:warmup=0 --set run:rounds=1 --set latency:batch=1"
gemm="--device opencl:0:0 --set run:prefer=conv_im2col_gemm"
no_loader="libOpenCL.so.1: cannot open shared object file: No such file or directory; install an OpenCL ICD loader (Debian, Ubuntu: ocl-icd-libopencl1)"
no_clblast="libclblast.so.1: cannot open shared object file: No such file or directory; install CLBlast (Debian, Ubuntu: libclblast1)"

# ---- missing: in a root of its own ---------------------------------------------------------------
mkdir -p "$root/lib" "$root/tmp" "$root/vendors"
add "$warmlap"
cp "$warmlap" "$root/warmlap"
rm -f "$root"/lib/libnvrtc*
: >"$dir/out" >"$dir/err"
for library in "$root"/lib/libOpenCL* "$root"/lib/libclblast*; do
  [ ! -e "$library" ] || fail "the program is linked with $(basename "$library")"
done
if inside /warmlap --help >"$dir/out" 2>"$dir/err"; then
  expect 0 inside /warmlap --version
  says "no libOpenCL.so.1, headers" "no libclblast.so.1"
  expect 3 inside /warmlap devices
  says "opencl: $no_loader" "cuda: "
  grep -qF "$no_loader" "$dir/out" || fail "not in one line"
  expect 3 inside /warmlap run --device opencl
  says "$no_loader"
  expect 3 inside /warmlap run --device opencl:0:0
  says "$no_loader"
  expect 3 inside /warmlap run
  says "opencl: $no_loader" "cuda: "
  if [ -n "$standin" ]; then
    add "$standin"
    cp "$standin" "$root/standin"
    cp "$nvrtc" "$root/lib/nvrtc.so"
    rm -f "$root"/lib/libOpenCL* "$root"/lib/libclblast*
    expect 0 inside /standin devices
    says "cuda:0" "opencl: $no_loader"
    expect 0 inside /standin $row --json - # by itself the best device there is
    says '"selector": "cuda:0"' '"status": "ok"'
    expect 3 inside /standin $row --device opencl
    says "$no_loader"
  fi

  # With the loader and a driver, without CLBlast: all but the rows that need its products.
  loader=$(ldconfig -p 2>/dev/null | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
  [ -n "$loader" ] || for folder in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib; do
    [ ! -e "$folder/libOpenCL.so.1" ] || loader=$folder/libOpenCL.so.1
  done
  if [ -n "$loader" ]; then
    add "$loader" "$fake"
    cp -L "$loader" "$root/lib/libOpenCL.so.1"
    cp "$fake" "$root/lib/fake.so"
    echo /lib/fake.so >"$root/vendors/fake.icd"
    expect 0 inside /warmlap --version
    says "headers" "no libclblast.so.1"
    # A container with the loader, but without a driver: what was looked for, and where.
    expect 3 bare /warmlap run
    says "no OpenCL platform" "looked for ICD files in /etc/OpenCL/vendors, which cannot be read" \
      "OCL_ICD_VENDORS not set" "cuda: "
    mkdir -p "$root/etc/OpenCL/vendors"
    expect 3 bare /warmlap devices
    says "looked for ICD files in /etc/OpenCL/vendors, which holds no ICD file"
    echo /lib/nowhere.so >"$root/etc/OpenCL/vendors/gone.icd"
    expect 3 bare /warmlap devices
    says "looked for ICD files in /etc/OpenCL/vendors, which holds gone.icd"
    echo /lib/fake.so >"$root/etc/OpenCL/vendors/gone.icd"
    expect 0 bare /warmlap devices
    says "opencl:0:0"
    expect 0 inside /warmlap devices
    says "opencl:0:0"
    expect 0 inside /warmlap $row --device opencl:0:0 --json -
    says '"status": "ok"'
    case $all in *libclblast.so.1:*) fail "CLBlast is missed where nothing asked for it" ;; esac
    expect 0 inside /warmlap $row $gemm
    says "kernels passed over: conv_im2col_gemm: $no_clblast"
  else
    echo "left out: CLBlast alone missing, for no libOpenCL.so.1 was found to go with it"
  fi
else
  echo "left out: a root without the libraries, for $change does not work here:"
  cat "$dir/err"
fi

# ---- damaged, or something else under the name ---------------------------------------------------
mkdir -p "$dir/empty" "$dir/other" "$dir/blas"
: >"$dir/empty/libOpenCL.so.1"
expect 3 env LD_LIBRARY_PATH="$dir/empty" "$warmlap" run --device opencl
says "libOpenCL.so.1: file too short; install an OpenCL ICD loader"
cp "$fake" "$dir/other/libOpenCL.so.1"
expect 3 env LD_LIBRARY_PATH="$dir/other" "$warmlap" run --device opencl
says "libOpenCL.so.1 has no cl" "; install an OpenCL ICD loader"
: >"$dir/blas/libclblast.so.1"
expect 0 env LD_LIBRARY_PATH="$dir/blas" OCL_ICD_VENDORS="$fake" OCL_ICD_FILENAMES="$fake" "$warmlap" $row $gemm
says "conv_im2col_gemm: " "libclblast.so.1: file too short; install CLBlast"

[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
