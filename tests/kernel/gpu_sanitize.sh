#!/usr/bin/env bash
# scripts/gpu-sanitize.sh without a GPU: stand-ins for compute-sanitizer and the programs that it watches.
# What a tool reports must become a word in the table and the exit status.
# Usage: gpu_sanitize.sh SCRIPT SCRATCH_FOLDER
set -u
script=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch/build/tests/kernel" "$scratch/build/src/app" "$scratch/bin"
cat >"$scratch/build/tests/kernel/small_rows" <<'END'
#!/bin/sh
[ "$2" = list ] && { printf 'conv_a 3 0\nconv_b 4 1\n'; exit 0; }
[ "$2/$3/${BREAK:-}" = both/conv_a/program ] && exit 1
[ "$2/$3/${BREAK:-}" = both/conv_a/slow ] && exec sleep 30
echo "launches: 3"
END
cp "$scratch/build/tests/kernel/small_rows" "$scratch/build/src/app/warmlap"
cat >"$scratch/bin/compute-sanitizer" <<'END'
#!/usr/bin/env bash
while :; do
  case $1 in
    --tool) tool=$2 ;;
    --log-file) log=$2 ;;
    --*) ;;
    *) break ;;
  esac
  shift 2
done
"$@"
rc=$? n=0
case "$tool/$*" in
  */*planted-*) [ "${BREAK:-}" = blind ] || n=2 ;;
  racecheck/*conv_b) [ "${BREAK:-}" = race ] && n=3 ;;
esac
if [ "$tool" = racecheck ]; then echo "========= RACECHECK SUMMARY: $n hazards displayed ($n errors, 0 warnings)"
else echo "========= ERROR SUMMARY: $n errors"; fi >"$log"
[ $n = 0 ] || exit 99
exit $rc
END
chmod +x "$scratch"/bin/* "$scratch"/build/*/*/*
failures=0
expect() { # STATUS TEXT BREAK
  BREAK=$3 PATH=$scratch/bin:$PATH LAP_BUILD=$scratch/build LAP_TIMEOUT=2 LAP_CASES='conv_|fp32$' bash "$script" "$scratch/out" \
    >"$scratch/text" 2>&1
  local status=$?
  if [ $status = "$1" ] && grep -qE -- "$2" "$scratch/text"; then return; fi
  echo "$3: exit status $status, expected $1, and: $2"
  cat "$scratch/text"
  failures=$((failures + 1))
}
expect 0 'all 20 clean' nothing
expect 1 '^conv_b +clean +clean +3 errors +clean +clean' race
expect 1 '^conv_a +failed \(1\) +failed \(1\)' program
expect 1 '^conv_a +timed out +timed out' slow
expect 1 'does not find the fault' blind
[ $failures = 0 ]
