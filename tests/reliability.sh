#!/bin/sh
# Every test that docs/RELIABILITY.md names as FILE::NAME is there.
# Usage: reliability.sh SOURCE_FOLDER
set -u
cd "$1" || exit 1
list=$(grep -o '`tests/[^`]*::[^`]*`' docs/RELIABILITY.md | tr -d '`')
[ -n "$list" ] || { echo "docs/RELIABILITY.md names no test"; exit 1; }
printf '%s\n' "$list" | {
  count=0 missing=0
  while IFS= read -r entry; do
    file=${entry%%::*} name=${entry#*::}
    count=$((count + 1))
    [ -f "$file" ] && grep -qF -- "$name" "$file" && continue
    echo "docs/RELIABILITY.md names $entry, which is not there"
    missing=1
  done
  echo "$count tests named"
  exit $missing
}
