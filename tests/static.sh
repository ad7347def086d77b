#!/usr/bin/env bash
# Static analysis of src and backends: no finding. Usage: static.sh tidy|cppcheck SOURCE_DIR BUILD_DIR
# Exit status: 0 clean, 1 findings (printed), 77 the tool is not installed.
set -euo pipefail
mode=$1 source=$2 build=$3
[ -e "$build/compile_commands.json" ] || { echo "$build has no compile_commands.json"; exit 1; }

case $mode in
  tidy)
    tool=$(command -v clang-tidy-15 || true)
    [ -n "$tool" ] || { echo "skipped: clang-tidy-15 is not installed"; exit 77; }
    # One file a call: the analyser mixes up va_lists of several. glibc checks of snprintf, as macros, cannot take
    # a macro that stands for two arguments.
    files=$(find "$source/src" "$source/backends" -name '*.c' | sort)
    found=0
    while IFS= read -r file; do # what the build compiles: an optional part may be left out of it
      if grep -qF "\"$file\"" "$build/compile_commands.json"; then printf '%s\0' "$file"; fi
    done <<<"$files" |
      xargs -0 -P "$(nproc)" -n 1 "$tool" -p "$build" --quiet --extra-arg=-U_FORTIFY_SOURCE \
        >"$build/tidy.log" 2>"$build/tidy.err" || found=1
    grep -E 'error:|warning:' "$build/tidy.log" | sort -u | head -40 || true
    [ $found = 0 ] || { [ -s "$build/tidy.log" ] || tail -n 5 "$build/tidy.err"; exit 1; }
    echo "clang-tidy: no finding in $(wc -l <<<"$files") files"
    ;;
  cppcheck)
    tool=$(command -v cppcheck || true)
    [ -n "$tool" ] || { echo "skipped: cppcheck is not installed"; exit 77; }
    # Headers of others are not its business (CUDA's do not know it as a compiler).
    "$tool" --project="$build/compile_commands.json" --file-filter="$source/src/*" --file-filter="$source/backends/*" \
      --enable=warning,performance,portability --inline-suppr --suppress=missingIncludeSystem \
      --suppress='preprocessorErrorDirective:*host_defines.h' --suppress=unmatchedSuppression \
      --error-exitcode=1 --quiet -j "$(nproc)"
    echo "cppcheck: no finding"
    ;;
  *) echo "usage: $0 tidy|cppcheck SOURCE_DIR BUILD_DIR" >&2; exit 2 ;;
esac
