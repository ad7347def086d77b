#!/bin/sh
# The program was built with what makes mistakes harder to use: position-independent, relocations
# read-only and bound at the start, no executable stack, stack protector, checked library calls.
# Usage: hardening.sh PROGRAM; 77 without readelf.
set -u
program=$1 failed=0
command -v readelf > /dev/null || { echo "skipped: no readelf (binutils)"; exit 77; }
wants() { # wants NAME COMMAND...: its output must not be empty
  name=$1
  shift
  [ -n "$("$@")" ] && return
  echo "$program: $name is missing"
  failed=1
}
find_in() { # find_in TEXT OPTION: a line of readelf OPTION
  readelf -W "$2" "$program" | grep -E -m 1 "$1"
}
wants "position independence (PIE)" find_in 'Type: *DYN' -h
wants "read-only relocations (RELRO)" find_in 'GNU_RELRO' -l
wants "binding at the start (BIND_NOW)" find_in 'BIND_NOW|FLAGS_1.*NOW' -d
wants "a stack that is not executable" find_in 'GNU_STACK.* RW ' -l
wants "the stack protector" find_in '__stack_chk_fail' --dyn-syms
wants "checked library calls (_FORTIFY_SOURCE)" find_in '__[a-z]+printf_chk' --dyn-syms
[ $failed = 0 ] && echo "hardened"
exit $failed
