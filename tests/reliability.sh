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
    lines=$(grep -cF -- "$name" "$file" 2> /dev/null)
    # A function has to be in the list of its program's tests, too.
    case $file:$name in
      *.c:*[!a-z0-9_]*) least=1 ;;
      *.c:*) least=2 ;;
      *) least=1 ;;
    esac
    [ "${lines:-0}" -ge $least ] && continue
    echo "docs/RELIABILITY.md names $entry, which is not there, or does not run"
    missing=1
  done
  echo "$count tests named"
  exit $missing
}
