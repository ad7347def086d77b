#!/bin/sh
# `warmlap report` from a shell: exit statuses, streams, files. Needs no device and no browser.
# Usage: cli.sh WARMLAP RESULTS FOLDER (made anew)
set -u
warmlap=$1 data=$2 dir=$3
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
cp "$data/h200-survey.json" "$data/h200-fp16.json" .
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect STATUS ARGUMENT...: runs report; streams in out and err.
expect() {
  wanted=$1
  shift
  "$warmlap" report "$@" > out 2> err
  got=$?
  [ "$got" = "$wanted" ] || { fail "exit $got, expected $wanted: $*"; sed 's/^/  | /' err; }
}

says() { # says FILE TEXT: a fixed string
  grep -qF -- "$2" "$1" || fail "$1 does not say '$2'"
}

expect 0 --help
says out 'Usage:'
[ "$(awk 'length > 80' out | wc -l)" = 0 ] || fail "help is wider than 80 columns"
expect 2
says err 'no file'
expect 2 nosuch.json
says err 'nosuch.json'
expect 2 h200-survey.json --outputt x
says err 'did you mean --output'
expect 2 h200-survey.json -o
says err 'needs an argument'
expect 2 h200-survey.json -x
expect 2 h200-survey.json --title=
expect 2 - -
says err 'once'
expect 2 h200-survey.json --baseline nosuch
[ -e report.html ] && fail "a page was written in spite of an error"

expect 0 h200-survey.json
says err 'report.html'
[ -s report.html ] || fail "no report.html"
expect 2 h200-survey.json
says err 'exists'
expect 0 h200-survey.json h200-fp16.json --baseline cuda:0 --title 'Two files' --force
says report.html '<title>Two files</title>'
says report.html 'h200-fp16.json'
expect 2 h200-survey.json --baseline cuda --baseline opencl -o x.html
says err 'given twice'
expect 2 h200-survey.json -o x.html --output y.html
says err 'given twice'
expect 0 h200-fp16.json h200-survey.json ./h200-survey.json --baseline h200-survey.json -o -
says out 'from 2 files'
grep -q 'the same run' out && fail "the baseline is called a copy of itself"
cp h200-fp16.json copy.json
expect 0 h200-fp16.json copy.json -o -
says out 'from 1 file<'
says out 'the same run'
expect 0 h200-fp16.json --baseline h200-survey.json -o -
says out '<!DOCTYPE html>'
says out 'connect-src '
[ -s err ] && fail "something on standard error beside a page on standard output"
expect 0 h200-survey.json --no-charts -o small.html
says small.html 'made without charts'
[ "$(wc -c < small.html)" -lt 120000 ] || fail "a page without charts is large"
"$warmlap" report - -o piped.html < h200-survey.json 2> err || fail "standard input"

# Nothing in a page points anywhere.
grep -oE '(src|href)="[^#"][^"]*"|@import|url\(' report.html small.html | grep . && fail "a page refers to something"

# Documents of other kinds, and broken ones.
printf '{"schema":"warmlap-pitfalls/1","rows":[]}' > pitfalls.json
expect 2 pitfalls.json -o x.html
says err 'warmlap-pitfalls/1'
printf '{"schema":"warmlap-spans/1","rows":[]}' > spans.json
expect 0 spans.json -o spans.html
expect 2 spans.json --baseline spans.json -o x.html
says err 'expected one'
printf '{"schema":"warmlap/1","rows":[{"status":"ok","layers":[{"name":1}]}]}' > wrong.json
expect 2 wrong.json -o x.html
says err 'rows[0].layers[0].name'
# What a message quotes cannot command the terminal.
printf '{"schema":"warmlap/1","rows":[{"status":"ok","precision":"\\u001b[2J\\u009b2J","ceilings":{"flops_per_s":{"\\u001b[2J\\u009b2J":"x"}}}]}' > commands.json
expect 2 commands.json -o x.html
says err 'rows[0].ceilings.flops_per_s.'
says err 'is a string'
[ "$(tr -d '\n -~' < err | wc -c)" = 0 ] || fail "control characters of a file reach the terminal"
head -c 2000 h200-survey.json > half.json
expect 2 half.json -o x.html
[ -e x.html ] && fail "x.html was written"
expect 2 h200-survey.json -o nosuch/x.html

# An input is not written over.
cp h200-survey.json kept.json
ln -s kept.json link.json
expect 2 kept.json -o link.json --force
says err 'which the command reads'
cmp -s h200-survey.json kept.json || fail "an input was written over"

[ "$failures" = 0 ] && echo "all as expected"
exit "$failures"
