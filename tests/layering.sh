#!/bin/sh
# Holds the source tree to its layers. Usage: layering.sh ROOT | layering.sh --self-test
# Prints one line a violation and exits 1, or exits 0. Comments do not count, texts do where said.
set -eu

# strip FILE KEEP: the file without comments, as "line:text"; texts in quotes emptied unless KEEP=1.
strip() {
    awk -v keep="$2" '
        { line = $0; out = ""; n = length(line); instr = 0; i = 1
          while (i <= n) {
              c = substr(line, i, 1); two = substr(line, i, 2)
              if (incomment) {
                  if (two == "*/") { incomment = 0; i++ }
              } else if (instr) {
                  if (keep) out = out c
                  if (c == "\\") { i++; if (keep) out = out substr(line, i, 1) }
                  else if (c == quote) { instr = 0; if (!keep) out = out c }
              } else if (two == "/*") { incomment = 1; i++; out = out " " }
              else if (two == "//") { break }
              else {
                  if ((c == "\"" && line !~ /^[ \t]*#[ \t]*include/) || c == "\047") {
                      instr = 1; quote = c
                  }
                  out = out c
              }
              i++
          }
          if (out ~ /[^ \t]/) print NR ":" out }' "$1"
}

bad=0
# report FILE WHY: one violation for each "line:text" in $hits.
report() {
    while IFS= read -r hit; do
        printf '%s:%s\n    %s\n' "$1" "$hit" "$2"
        bad=1
    done <"$hits"
}

# What a folder of src may include.
allowed() {
    case $1 in
    base) echo "base" ;;
    net) echo "base net" ;;
    device) echo "base device" ;;
    kernel) echo "base net device kernel" ;;
    plan) echo "base net device kernel plan" ;;
    ref) echo "base net ref" ;;
    check) echo "base net device kernel plan ref check" ;;
    measure) echo "base net device kernel plan ref check measure" ;;
    report) echo "base net device kernel plan ref check measure report" ;;
    compare) echo "base measure report compare" ;;
    history) echo "base measure report compare history" ;;
    page) echo "base measure report compare page" ;;
    tune) echo "base net device kernel plan ref check measure tune" ;;
    fleet) echo "base net device kernel plan ref check measure report fleet" ;;
    app) echo "base net device kernel plan ref check measure report compare page history tune fleet app" ;;
    *) echo "" ;;
    esac
}

api='(^|[^A-Za-z0-9_])(cl[A-Z][A-Za-z0-9]*|cuda[A-Z][A-Za-z0-9]*|cu[A-Z][A-Za-z0-9]*'
api="$api"'|nvrtc[A-Z][A-Za-z0-9]*|nvml[A-Z][A-Za-z0-9]*|CLBlast[A-Za-z0-9]*)[ ]*\('
api_header='#[ ]*include[ ]*[<"](CL/|cuda|nvrtc|nvml|clblast|driver_types|vector_types)'
op_word='(^|[^a-z])(conv([^a-z]|olution)|[a-z]*pool|resnet|layer)'

network='resnet[0-9]|efficientnet'

check_src() {
    file=$1 folder=$2 may=$(allowed "$2")
    if [ -z "$may" ]; then
        echo "$file: src/$folder is in no layer: name it in tests/layering.sh"
        bad=1
    fi
    strip "$file" 0 >"$code"
    grep -E "$api" "$code" >"$hits" || :
    report "$file" "an API call outside backends/"
    grep -iE "$api_header" "$code" >"$hits" || :
    report "$file" "an API header outside backends/"
    grep -E '#[ ]*include[ ]*"' "$code" | grep -vE "\"($(echo "$may" | tr ' ' '|'))/" >"$hits" || :
    report "$file" "src/$folder may include only: $may"
    case $folder in net) ;; *)
        strip "$file" 1 | grep -iE "$network" >"$hits" || :
        case $file in */src/app/config_keys.c) : >"$hits" ;; esac # the default is data
        report "$file" "only src/net knows networks by name"
    esac
    case $file in */src/device/registry.c) return ;; esac
    grep -E 'LAP_HAVE_(CUDA|OPENCL)|lap_(cuda|opencl)_ops' "$code" >"$hits" || :
    report "$file" "only src/device/registry.c knows which backends there are"
    case $file in */src/fleet/mpi.c) ;; *)
        grep -E '(^|[^A-Za-z0-9_])MPI_[A-Za-z_]+|#[ ]*include[ ]*[<"]mpi' "$code" >"$hits" || :
        report "$file" "MPI outside src/fleet/mpi.c" ;;
    esac
    strip "$file" 1 | grep -E '"(cuda|opencl)[:"]' >"$hits" || :
    report "$file" "only src/device/registry.c names a backend"
}

check_backend() {
    file=$1
    strip "$file" 1 >"$code"
    grep -v '#[ ]*include' "$code" | grep -iE "$op_word" >"$hits" || :
    report "$file" "an operator or layer named in a backend"
    grep -E '#[ ]*include[ ]*"[a-z_]+/' "$code" |
        grep -vE '"(base/[a-z_]+|device/device(_ops)?)\.h"' >"$hits" || :
    report "$file" "a backend may include only base/ and device/device_ops.h"
}

# NVIDIA's OpenCL begins local memory with 16 bytes of its own; what asynchronous copies bring is slow
# to store where it does not lie on 128-byte lines.
check_kernel() {
    file=$1
    strip "$file" 1 >"$code"
    grep -q 'cp\.async' "$code" || return 0
    grep -E '__local[ ]+[a-z0-9]+[ ]+[a-z_]+\[' "$code" | grep -vE 'aligned\((128|1024)\)' >"$hits" || :
    report "$file" "local memory beside cp.async has to be aligned(128)"
}

# Images have sizes of their own, smaller than buffers: none are used.
check_images() {
    strip "$1" 1 | grep -E 'image[123]d_t|(^|[^A-Za-z])clCreateImage|texture|surf[123]D' >"$hits" || :
    report "$1" "an image instead of a buffer"
}

check_tree() {
    root=$1 bad=0 files=0
    work=$(mktemp -d)
    code=$work/code hits=$work/hits
    # Private headers of the generated table count as the folder that owns them.
    for file in "$root"/src/*/*.c "$root"/src/*/*.h; do
        [ -f "$file" ] || continue
        folder=${file#"$root"/src/}
        check_src "$file" "${folder%%/*}"
        files=$((files + 1))
    done
    for file in "$root"/backends/*/*.c "$root"/backends/*/*.h; do
        [ -f "$file" ] || continue
        check_backend "$file"
        check_images "$file"
        files=$((files + 1))
    done
    for file in "$root"/kernels_c[lu]/*; do
        [ -f "$file" ] || continue
        check_images "$file"
        files=$((files + 1))
    done
    for file in "$root"/kernels_cl/*.cl; do
        [ -f "$file" ] || continue
        check_kernel "$file"
        files=$((files + 1))
    done
    rm -rf "$work"
    [ "$files" -gt 0 ] || { echo "$root: no source file found"; bad=1; }
    return "$bad"
}

# plant PATH TEXT WANTED: a tree with this one file must pass (0) or fail (1).
plant() {
    tree=$(mktemp -d)
    mkdir -p "$tree/$(dirname "$1")"
    printf '%s\n' "$2" >"$tree/$1"
    got=0
    check_tree "$tree" >/dev/null || got=1
    rm -rf "$tree"
    planted=$((planted + 1))
    [ "$got" = "$3" ] && return
    echo "self-test: $1 with '$2': $got instead of $3"
    failed=1
}

self_test() {
    planted=0 failed=0
    plant kernels_cl/a.cl '__local float a[4]; /* cp.async */' 0
    plant kernels_cl/a.cl '__local float a[4]; asm("cp.async.cg");' 1
    plant kernels_cl/a.cl '__local float a[4] __attribute__((aligned(128))); asm("cp.async.cg");' 0
    plant src/base/a.c '/* clFinish(q) "cuda" */ int x; // cudaFree(p)' 0
    plant src/base/a.c 'int x = clFinish(q);' 1
    plant src/plan/a.c '/* a */ cudaFree(p);' 1
    plant src/app/a.c 'puts("clFinish(q)");' 0
    plant src/app/a.c 'nvrtcVersion (&a, &b);' 1
    plant src/app/a.c 'cuInit(0);' 1
    plant src/app/a.c 'int current(void); close(1); clock_now(); cute();' 0
    plant src/device/a.c '#include <CL/cl.h>' 1
    plant src/device/a.c '#include <cuda_runtime_api.h>' 1
    plant src/device/a.c '#include <string.h>' 0
    plant src/device/a.c '#ifdef LAP_HAVE_CUDA' 1
    plant src/device/registry.c '#ifdef LAP_HAVE_CUDA' 0
    plant src/device/a.c 'x = strcmp(b, "opencl");' 1
    plant src/plan/a.c 'x = strcmp(model, "resnet18");' 1
    plant src/kernel/a.c 'x = is_efficientnet(net);' 1
    plant src/report/a.c '/* as for resnet18 */ int x;' 0
    plant src/net/a.c 'x = "resnet18";' 0
    plant src/device/a.c 'x = "opencl:0";' 1
    plant src/device/a.c 'x = "opencl platform";' 0
    plant src/base/a.h '#include "device/device.h"' 1
    plant src/device/a.h '#include "net/op.h"' 1
    plant src/net/a.h '#include "device/device.h"' 1
    plant src/ref/a.h '#include "device/device.h"' 1
    plant src/ref/a.h '#include "net/op.h"' 0
    plant src/kernel/a.h '#include "plan/plan.h"' 1
    plant src/plan/a.h '#include "check/check.h"' 1
    plant src/plan/a.h '#include "ref/ref.h"' 1
    plant src/check/a.h '#include "measure/stats.h"' 1
    plant src/check/a.h '#include "ref/ref.h"' 0
    plant src/measure/a.h '#include "report/report.h"' 1
    plant src/report/a.h '#include "app/config.h"' 1
    plant src/app/a.h '#include "report/report.h"' 0
    plant src/report/a.h '#include "compare/compare.h"' 1
    plant src/compare/a.h '#include "report/report.h"' 0
    plant src/compare/a.h '#include "plan/plan.h"' 1
    plant src/app/a.h '#include "compare/compare.h"' 0
    plant src/compare/a.h '#include "page/page.h"' 1
    plant src/page/a.h '#include "compare/compare.h"' 0
    plant src/page/a.h '#include "plan/plan.h"' 1
    plant src/history/a.h '#include "compare/load.h"' 0
    plant src/history/a.h '#include "page/page.h"' 1
    plant src/app/a.h '#include "history/history.h"' 0
    plant src/fleet/a.c 'MPI_Init(0, 0);' 1
    plant src/app/a.c '#include <mpi.h>' 1
    plant src/fleet/mpi.c '#include <mpi.h>' 0
    plant src/fleet/a.c '#include "app/runner.h"' 1
    plant src/app/a.c '#include "fleet/fleet.h"' 0
    plant src/other/a.h 'int x;' 1
    plant backends/x/a.c 'const char *s = "conv_direct";' 1
    plant backends/x/a.c 'int maxpool;' 1
    plant backends/x/a.c 'x = "resnet18";' 1
    plant backends/x/a.c 'int layer1;' 1
    plant backends/x/a.c '/* the layer above; ISO conversion; a pool */ int conversion;' 0
    plant backends/x/a.c '#include "net/op.h"' 1
    plant backends/x/a.c '#include "device/objects.h"' 1
    plant backends/x/a.c '#include "device/device_ops.h"' 0
    plant backends/x/a.c '#include "opencl.h"' 0
    plant kernels_cl/a.cl '__kernel void a(read_only image2d_t x) {}' 1
    plant kernels_cl/a.cl '__kernel void a(__global float *x) {} /* no image2d_t */' 0
    plant backends/x/a.c 'm = clCreateImage(c, f, &format, &d, 0, &e);' 1
    echo "$planted planted files"
    return "$failed"
}

case ${1:-} in
--self-test) self_test ;;
"") echo "usage: layering.sh ROOT | layering.sh --self-test" >&2; exit 2 ;;
*) check_tree "$1" ;;
esac
