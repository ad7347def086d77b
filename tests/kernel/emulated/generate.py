"""The text of a chained CUDA kernel as C: generate.py KERNEL.cu OUT.inc

Everything stays as it is but the macros and functions that are PTX, which emulator.c has in C. An asm
statement that is left is an error, so that a new one cannot be missed."""
import re
import sys

MACROS = {
    "COPY16", "COPY8", "COPY_COMMIT", "COPY_WAIT", "WARP_BARRIER", "LOAD_MATRICES", "MMA",
    "LOAD_WEIGHTS4", "LOAD_SHARED_PIECE", "LOAD_SHARED_HALF", "STORE_SHARED_PIECE", "ADD_LANES",
    "PACK2", "UNPACK2", "ROUND_TF32", "ROUND_WORD_TF32", "MAX", "MMA_TYPE",
}
FUNCTIONS = ["arrive", "count_now", "await", "own_id"]


def with_includes(path):
    folder = path.rsplit("/", 1)[0]
    text = open(path, encoding="ascii").read()
    return re.sub(r'#include "([^"]+)"', lambda m: with_includes(folder + "/" + m.group(1)), text)


def without_macros(text):
    lines, out, i = text.split("\n"), [], 0
    while i < len(lines):
        end = i
        while lines[end].endswith("\\"):
            end += 1
        name = re.match(r"#define (\w+)", lines[i])
        if not (name and name.group(1) in MACROS):
            out += lines[i:end + 1]
        i = end + 1
    return "\n".join(out)


def without_function(text, name):
    head = re.search(r"static __device__ __forceinline__ \w+ " + name + r"\([^)]*\) \{", text)
    if not head:
        return text
    end = text.index("\n}\n", head.start()) + 3
    return text[:head.start()] + text[end:]


def main():
    text = without_macros(with_includes(sys.argv[1]))
    for name in FUNCTIONS:
        text = without_function(text, name)
    text = text.replace("typedef unsigned int u32;", "")
    text = text.replace("typedef unsigned long long u64;", "")
    text = re.sub(r'asm volatile\("st\.shared\.u32.*?\);',
                  "*(u32 *)(shared + 2 * TABLE_WORDS * 4 + tid * 4) = 0;", text, flags=re.S)
    text = text.replace('extern "C" __global__ void __launch_bounds__(THREADS, 1)', "static void")
    text = text.replace("extern __shared__ __align__(128) char shared[];",
                        "char *shared = group_memory();")
    text = text.replace("(u32)__cvta_generic_to_shared(shared)", "0u")
    bare = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    left = [line for line in bare.split("\n") if re.search(r"\basm\b|__global__|__shared__", line)]
    if left:
        sys.exit("not emulated:\n" + "\n".join(left))
    open(sys.argv[2], "w", encoding="ascii").write(text)


main()
