#!/usr/bin/env bash
# Puts the result table that the README names between its marks.
# Usage: scripts/readme-results.sh
set -euo pipefail
cd "$(dirname "$0")/.."
file=$(sed -n 's/^<!-- results: \(.*\) -->$/\1/p' README.md)
awk -v file="$file" '
  /^<!-- results: / { print; while ((getline line < file) > 0) print line; skip = 1 }
  /^<!-- \/results -->$/ { skip = 0 }
  !skip && !/^<!-- results: / { print }' README.md >README.md.new
mv README.md.new README.md
