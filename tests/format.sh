#!/usr/bin/env bash
# Are all C sources as .clang-format wants them? Version 14 decides: others differ in details.
# Usage: format.sh SOURCE_FOLDER        exit 0 yes, 1 no, 77 skipped (says why)
set -u
cd "$1" || exit 1
tool=
for name in clang-format-14 clang-format; do
  if command -v $name >/dev/null && $name --version | grep -q 'version 14\.'; then tool=$name; break; fi
done
[ -n "$tool" ] || { echo "skipped: clang-format 14 is not installed"; exit 77; }
mapfile -t files < <(find src backends tests -name '*.[ch]' | sort)
[ ${#files[@]} -gt 50 ] || { echo "only ${#files[@]} files found: looked in the wrong place?"; exit 1; }
"$tool" --dry-run -Werror "${files[@]}" 2>&1 | grep -E 'error:' | head -20
[ "${PIPESTATUS[0]}" = 0 ] || { echo "run: $tool -i on the files above"; exit 1; }
echo "${#files[@]} files are well formatted"
