#!/bin/sh
# The manual page and the completions of bash and zsh, from what the program says of itself: the help
# of every command is the one source.
# Usage: scripts/generate_manual.sh WARMLAP CONF_FOLDER OUT_FOLDER
#   writes warmlap.1, warmlap.bash and _warmlap there
set -eu
warmlap=$1 conf=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$warmlap" --help >"$work/help"
"$warmlap" --version | sed -n '1s/^warmlap //p' >"$work/version"
# Lines "  NAME  ABOUT" between the usage and the last paragraph.
awk '/^  [a-z]+ +[^ ]/ && !/^ *warmlap/ { print $1 }' "$work/help" >"$work/commands"
[ -s "$work/commands" ] || { echo "$warmlap --help names no command" >&2; exit 1; }
(cd "$conf" && for f in *.ini; do echo "${f%.ini}"; done) | grep -vx default >"$work/conf"

# command TAB option TAB argument TAB help, one line for each; an option may have a letter, too.
while read -r command; do
    "$warmlap" "$command" --help >"$work/$command.help"
    awk -v command="$command" '
        function flush() { if (option != "") print command "\t" option "\t" argument "\t" text; option = "" }
        /^  -/ {
            flush()
            line = substr($0, 3)
            if (line ~ /^-[a-zA-Z], /) line = substr(line, 5)
            split_at = match(line, /  +/)
            if (split_at == 0) split_at = length(line) + 1
            left = substr(line, 1, split_at - 1); text = substr(line, split_at); sub(/^ +/, "", text)
            # One blank before the help, where the left side fills its column.
            if (text == "" && split(left, words, " ") > 2) {
                text = left; sub(/^[^ ]+ [^ ]+ /, "", text); left = words[1] " " words[2]
            }
            blank = index(left, " ")
            option = blank ? substr(left, 1, blank - 1) : left
            argument = blank ? substr(left, blank + 1) : ""
            next
        }
        /^          +[^ ]/ && option != "" { more = $0; sub(/^ +/, "", more); text = text " " more; next }
        { flush() }
        END { flush() }' "$work/$command.help" >>"$work/options"
    # "Usage: warmlap history add ..." names a command within the command.
    awk -v command="$command" '
        { sub(/^Usage:/, "      ") }
        $1 == "warmlap" && $2 == command && $3 ~ /^[a-z]+$/ { print command "\t" $3 }
        /^$/ { exit }' "$work/$command.help" >>"$work/actions"
done <"$work/commands"

# ---- the manual page -------------------------------------------------------------------------------
roff='
    function safe(s) {
        gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); gsub(/`/, "\\(ga", s); gsub(/\047/, "\\(aq", s)
        gsub(/\^/, "\\(ha", s); gsub(/~/, "\\(ti", s)
        return s
    }
    # Lines of at most 78 bytes; one that begins with a point would be a command.
    function put(s,    words, n, i, line) {
        n = split(safe(s), words, " "); line = ""
        for (i = 1; i <= n; i++) {
            if (line != "" && length(line) + length(words[i]) > 77) { say(line); line = "" }
            line = line (line == "" ? "" : " ") words[i]
        }
        if (line != "") say(line)
    }
    function say(s) { print (s ~ /^\./ ? "\\&" : "") s }'
{
    today=$(date -u ${SOURCE_DATE_EPOCH:+-d "@$SOURCE_DATE_EPOCH"} +%Y-%m-%d)
    printf '.TH WARMLAP 1 "%s" "warmlap %s" "User Commands"\n' "$today" "$(cat "$work/version")"
    printf '.SH NAME\nwarmlap \\- how fast does a device run a real network?\n'
    printf '.SH SYNOPSIS\n.B warmlap\n.I COMMAND\n.RI [ OPTION ...]\n.br\n.B warmlap\n.BR \\-\\-version \\ |\\  \\-\\-help\n'
    printf '.SH DESCRIPTION\nVerifies a network on any CUDA or OpenCL device against a reference,\nthen times it.\n'
    printf '.SH COMMANDS\n'
    while read -r command; do
        printf '.SS warmlap %s\n' "$command"
        # Blocks between empty lines: usage as it is, options as a list, all else as running text.
        awk "$roff"'
            function begin(kind) { if (mode != kind) { if (mode == "usage") print ".fi"; mode = kind; return 1 } return 0 }
            /^ *$/ { begin(""); fresh = 1; next }
            /^Usage:/ || (mode == "usage" && /^  /) { sub(/^Usage: /, ""); sub(/^ +/, ""); if (begin("usage")) print ".nf"; print safe($0); next }
            /^  -/ {
                begin("options"); line = substr($0, 3); split_at = match(line, /  +/)
                left = split_at ? substr(line, 1, split_at - 1) : line
                text = split_at ? substr(line, split_at) : ""; sub(/^ +/, "", text)
                if (text == "" && left !~ /^-[a-z], / && split(left, words, " ") > 2) {
                    text = left; sub(/^[^ ]+ [^ ]+ /, "", text); left = words[1] " " words[2]
                }
                print ".TP\n.B " safe(left); if (text != "") put(text); fresh = 0; next
            }
            { sub(/^ +/, ""); if (mode != "options" || fresh) { if (begin("text") || fresh) print ".PP" } fresh = 0; put($0) }
            END { begin("") }' "$work/$command.help"
    done <"$work/commands"
    printf '.SH CONFIGURATION\nFiles are INI; those that come with the program are'
    sed 's/-/\\-/g' "$work/conf" | awk '{ printf "%s%s", (NR > 1 ? ",\n" : "\n"), $0 } END { print "." }'
    printf '.B warmlap run \\-\\-help\\-config\nexplains every key.\n'
    printf '.SH EXIT STATUS\n'
    sed -n '/^Exit status:/,$p' "$work/help" | sed 's/^Exit status: *//' | awk "$roff"'{ put($0) }'
    printf '.SH ENVIRONMENT\n.TP\n.B XDG_DATA_HOME\nwhere the tune store and the history are kept\n'
    printf '.TP\n.B XDG_CACHE_HOME\nwhere built kernels and measured ceilings are kept\n'
    printf '.TP\n.B TMPDIR\nwhere a result goes that cannot be written beside its own file; else /tmp\n'
    printf '.TP\n.B LAP_NVRTC\nthe NVRTC library to load\n'
    printf '.TP\n.B LAP_NVML\nthe NVML library to load instead of libnvidia\-ml.so.1;\n.I none\nreads no sensors with it\n'
    printf '.TP\n.B LAP_FLEET_MODULE\nthe module for MPI to load\n.TP\n.B NO_COLOR\nno colours in tables\n'
} >"$work/warmlap.1"

# ---- values of options, from their help ------------------------------------------------------------
# "table, csv or json": a list of words, perhaps after "show, trend:" and before "(default ...)".
awk -F '\t' -v OFS='\t' '
    {
        values = ""; text = $4
        sub(/ *\(.*$/, "", text); sub(/;.*$/, "", text); sub(/^.*: /, "", text)
        if ($3 ~ /^[A-Z]+$/ && text ~ /^[a-z0-9]+(, [a-z0-9]+)+ or [a-z0-9]+$/) { gsub(/,| or/, "", text); values = text }
        kind = values != "" ? "values" : $3 ~ /FILE/ ? "file" : $3 ~ /^SEL/ ? "selector" : $3 != "" ? "text" : "none"
        print $1, $2, $3, kind, values, $4
    }' "$work/options" >"$work/table"

# ---- bash ------------------------------------------------------------------------------------------
selectors="auto all cuda opencl type=gpu type=cpu type=accelerator name= uuid= pci="
{
    cat <<'END'
# Completion of warmlap for bash; generated from the program's help.
_warmlap() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]-} options='' words=''
    COMPREPLY=()
    # "=" is a word of its own.
    if [[ $current == "=" ]]; then current='';
    elif [[ $previous == "=" && COMP_CWORD -gt 2 ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
END
    printf '    if [[ COMP_CWORD -eq 1 ]]; then\n        mapfile -t COMPREPLY < <(compgen -W "%s --help --version" -- "$current")\n        return\n    fi\n' \
        "$(tr '\n' ' ' <"$work/commands" | sed 's/ $//')"
    printf '    case "$command $previous" in\n'
    awk -F '\t' -v selectors="$selectors" '
        $4 == "values" { printf "    \"%s %s\") words=\"%s\" ;;\n", $1, $2, $5 }
        $4 == "selector" { printf "    \"%s %s\") words=\"%s\" ;;\n", $1, $2, selectors }
        $4 == "file" { printf "    \"%s %s\") mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); return ;;\n", $1, $2 }
        $4 == "text" { printf "    \"%s %s\") return ;;\n", $1, $2 }' "$work/table"
    printf '    esac\n'
    printf '    if [[ -n $words ]]; then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"); return; fi\n'
    printf '    case $command in\n'
    while read -r command; do
        names=$(awk -F '\t' -v c="$command" '$1 == c { printf "%s ", $2 }' "$work/table")
        printf '    %s) options="%s" ;;\n' "$command" "${names% }"
    done <"$work/commands"
    printf '    esac\n    if [[ $current == -* ]]; then mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current"); return; fi\n'
    printf '    case "$command $COMP_CWORD" in\n'
    cut -f 1 "$work/actions" | sort -u | while read -r command; do
        names=$(awk -F '\t' -v c="$command" '$1 == c && !seen[$2]++ { printf "%s ", $2 }' "$work/actions")
        printf '    "%s 2") words="%s" ;;\n' "$command" "${names% }"
    done
    printf '    esac\n'
    printf '    case $command in run | verify | pitfalls | tune) words="%s" ;; esac\n' "$(tr '\n' ' ' <"$work/conf" | sed 's/ $//')"
    printf '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")\n}\n'
    printf 'complete -o filenames -F _warmlap warmlap\n'
} >"$work/warmlap.bash"

# ---- zsh -------------------------------------------------------------------------------------------
{
    printf '#compdef warmlap\n# Completion of warmlap for zsh; generated from the program'\''s help.\n'
    printf 'local -a commands\ncommands=(\n'
    awk '/^  [a-z]+ +[^ ]/ && !/^ *warmlap/ { name = $1; sub(/^ *[a-z]+ +/, ""); gsub(/:/, "\\:"); gsub(/\047/, "\047\\\047\047"); printf "  \047%s:%s\047\n", name, $0 }' "$work/help"
    printf ')\nif (( CURRENT == 2 )); then\n  _describe command commands\n  _arguments "--help[print the help]" "--version[print the versions]"\n  return\nfi\n'
    printf 'local command=$words[2]\nshift words\n(( CURRENT-- ))\ncase $command in\n'
    while read -r command; do
        printf '%s)\n  _arguments \\\n' "$command"
        awk -F '\t' -v c="$command" -v selectors="$selectors" '
            function quoted(s) { gsub(/\\/, "", s); gsub(/\[/, "(", s); gsub(/\]/, ")", s); gsub(/:/, "\\:", s); gsub(/\047/, "\047\\\047\047", s); return s }
            $1 == c {
                action = ""
                if ($4 == "file") action = ":file:_files"
                if ($4 == "values") action = ":" quoted(tolower($3)) ":(" $5 ")"
                if ($4 == "selector") action = ":selector:(" selectors ")"
                if ($4 == "text") action = ":" quoted(tolower($3)) ": "
                printf "    \047%s%s[%s]%s\047 \\\n", $2 == "--set" ? "*" : "", $2 (action != "" ? "=" : ""), quoted($6), action
            }' "$work/table"
        names=$(awk -F '\t' -v c="$command" '$1 == c && !seen[$2]++ { printf "%s ", $2 }' "$work/actions")
        case $command in run | verify | pitfalls | tune) files=$(tr '\n' ' ' <"$work/conf" | sed 's/ $//') ;; *) files='' ;; esac
        if [ -n "$names" ]; then printf "    '1:action:(%s)' \\\\\n" "${names% }"; fi
        if [ -n "$files" ]; then
            printf "    '*:file:{_alternative \"names:configuration:(%s)\" \"files:file:_files\"}' ;;\n" "$files"
        else
            printf "    '*:file:_files' ;;\n"
        fi
    done <"$work/commands"
    printf 'esac\n'
} >"$work/_warmlap"

mkdir -p "$out"
for f in warmlap.1 warmlap.bash _warmlap; do cp "$work/$f" "$out/$f.new" && mv "$out/$f.new" "$out/$f"; done
