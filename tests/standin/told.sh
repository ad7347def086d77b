# Sourced by tests of the whole program over stand-ins: told.sh FOLDER, where the script is written.
# shellcheck shell=sh
failures=0
script=$1/script.txt
mkdir -p "$1" || exit 1
export LAP_STANDIN_SCRIPT="$script"
: > "$script"

# expect TITLE STATUS WANTED_STATUS TEXT OUTPUT. Lines are joined: the program wraps its sentences.
expect() {
    joined=$(printf '%s' "$5" | tr -s '\n ' '  ')
    case $joined in
    *"$4"*) said=yes ;;
    *) said=no ;;
    esac
    if [ "$2" -ne "$3" ] || [ $said = no ]; then
        printf '%s: exit status %s (expected %s), "%s" said: %s\n%s\n\n' "$1" "$2" "$3" "$4" \
            $said "$5"
        failures=$((failures + 1))
    fi
}

# Of the same output. also TEXT...: it says these, too, in this order. never TEXT: not this. once TEXT.
also() {
    rest=$joined
    for text; do
        case $rest in
        *"$text"*) rest=${rest#*"$text"} ;;
        *) complain "\"$text\" is not said, or not there" && return ;;
        esac
    done
}
never() {
    case $joined in *"$1"*) complain "\"$1\" is said" ;; esac
}
once() {
    also "$1"
    case ${joined#*"$1"} in *"$1"*) complain "\"$1\" is said twice" ;; esac
}
complain() {
    printf '%s: %s:\n%s\n\n' "$title" "$1" "$output"
    failures=$((failures + 1))
}

# told TITLE WANTED_STATUS TEXT COMMAND... < SCRIPT
told() {
    title=$1 wanted=$2 text=$3
    shift 3
    cat > "$script"
    output=$("$@" 2>&1)
    expect "$title" $? "$wanted" "$text" "$output"
}
