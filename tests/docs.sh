#!/usr/bin/env bash
# The README's table is the program's own: what stands between its marks is the file they name.
# Usage: docs.sh SOURCE_FOLDER
set -u
cd "$1" || exit 1
file=$(sed -n 's/^<!-- results: \(.*\) -->$/\1/p' README.md)
[ -n "$file" ] || { echo "README.md names no result file"; exit 1; }
[ -s "$file" ] || { echo "$file, named in README.md, is missing or empty"; exit 1; }
sed -n '/^<!-- results: /,/^<!-- \/results -->$/p' README.md | sed '1d;$d' | diff - "$file" ||
  { echo "README.md and $file differ: run scripts/readme-results.sh"; exit 1; }
[ "$(grep -c '^|' "$file")" -ge 4 ] || { echo "$file has no table"; exit 1; }
# Its pictures are there, and small enough to look at.
for picture in $(sed -n 's/.*(\(docs\/[^)]*\.png\)).*/\1/p' README.md); do
  [ -s "$picture" ] || { echo "$picture, shown in README.md, is missing"; exit 1; }
  [ "$(wc -c <"$picture")" -lt 300000 ] || { echo "$picture is larger than 300 KB"; exit 1; }
done
echo "README.md shows $file"
