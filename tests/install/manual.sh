#!/bin/bash
# The manual page and the completions: they know every command and option, and are well formed.
# Usage: manual.sh WARMLAP SHARE_FOLDER SOURCE_FOLDER
set -u
warmlap=$1 share=$2 source=$3
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

complete_words() { # complete_words WORD...: what bash offers for the last word
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _warmlap
  printf '%s\n' "${COMPREPLY[@]}"
}
offers() { # offers WANTED WORD...
  local wanted=$1
  shift
  complete_words "$@" | grep -qx -- "$wanted" || fail "bash does not offer '$wanted' for: $*"
}

bash -n "$share/warmlap.bash" || fail "bash cannot read the completion"
# shellcheck disable=SC1091
source "$share/warmlap.bash"
cd "$(mktemp -d)" || exit 1

commands=$("$warmlap" --help | awk '/^  [a-z]+ +[^ ]/ { print $1 }')
[ "$(wc -w <<<"$commands")" -ge 10 ] || fail "few commands: $commands"
count=0
unknown='unknown (option|argument)|is unknown|takes no argument'
for command in $commands; do
  offers "$command" warmlap ""
  grep -q "^\.SS warmlap $command\$" "$share/warmlap.1" || fail "the manual lacks $command"
  grep -q "'$command:" "$share/_warmlap" || fail "zsh lacks $command"
  # Every word of the help that looks like an option is one that completion knows.
  for option in $("$warmlap" "$command" --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    count=$((count + 1))
    offers "$option" warmlap "$command" "$option"
    grep -qF -- "${option//-/\\-}" "$share/warmlap.1" || fail "the manual lacks $command $option"
    sed -n "/^$command)/,/;;\$/p" "$share/_warmlap" | grep -qE -- "'\*?$option(=|\[)" || fail "zsh lacks $command $option"
  done
  # And every option that completion offers is one that the program knows.
  for option in $(complete_words warmlap "$command" --); do
    # With a value first, so that --help is never taken for one and something is run.
    "$warmlap" "$command" "$option=1" --help >/dev/null 2>err
    ! grep -qE "$unknown" err || "$warmlap" "$command" "$option" --help >/dev/null 2>err
    ! grep -qE "$unknown" err || fail "the program does not know $command $option"
  done
done
[ "$count" -ge 80 ] || fail "only $count options were looked at"

# Options in the program's tables that its help forgot would be missing everywhere.
for command in report history compare run; do
  file=$source/src/app/cmd_$command.c
  [ "$command" = compare ] && file=$source/src/app/compare_options.c
  [ "$command" = run ] && file=$source/src/app/options.c
  table=$(sed -n '/^static const \(struct option table\|option_row rows\)\[\]/,/^\(};\|.*NULL, 0}};\)$/p' "$file" | grep -oE '\{"[a-z][a-z-]+", ?("|NULL|true|false|required|no_)' | grep -oE '[a-z][a-z-]+"' | tr -d '"')
  [ "$(wc -w <<<"$table")" -ge 6 ] || fail "the options of $command were not found in $file"
  for name in $table; do
    [ "$command $name" = "run dry-run" ] || [ "$command $name" = "run logits" ] || offers "--$name" warmlap "$command" --
  done
done

offers csv warmlap compare --format ""
offers csv warmlap compare --format = c
offers fps warmlap history trend --metric ""
offers trend warmlap history ""
offers opencl warmlap run --device o
offers quick warmlap run ""
touch result.json
offers result.json warmlap report --baseline r
offers result.json warmlap compare r

if command -v zsh >/dev/null; then
  zsh -n "$share/_warmlap" || fail "zsh cannot read the completion"
else
  echo "left out: zsh is missing"
fi
if command -v mandoc >/dev/null; then
  mandoc -T lint "$share/warmlap.1" >lint 2>&1
  [ ! -s lint ] || { fail "mandoc finds fault with the manual"; cat lint; }
elif command -v man >/dev/null; then
  LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -l "$share/warmlap.1" 2>lint >/dev/null
  [ ! -s lint ] || { fail "man finds fault with the manual"; cat lint; }
else
  echo "left out: neither mandoc nor man is there"
fi
[ "$failures" = 0 ] && echo "$count options: all as expected"
exit "$failures"
