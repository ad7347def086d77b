#!/bin/sh
# The program in places it was not made for, on an OpenCL device: each time a right result, or a
# sentence and an exit status. What this machine does not allow (mounting) is said and left out.
# Usage: environment.sh WARMLAP JSON_CHECK STEPPED_CLOCK FOLDER places|limits; 77 without OpenCL device.
# FOLDER is made anew.
set -u
warmlap=$1 check=$2 clock=$3 dir=$4 part=$5
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
unset LAP_FAULT NO_COLOR LC_ALL LANG
export XDG_CACHE_HOME="$PWD/cache" XDG_DATA_HOME="$PWD/data" POCL_CACHE_DIR="$PWD/pocl"
mkdir pocl
"$warmlap" run --device opencl:99 > none.out 2> none.err
grep -q 'opencl:0:0' none.err || { echo "skipped: no OpenCL device"; exit 77; }
cat > small.ini <<'INI'
[run]
device = opencl:0:0
modes = latency
kernels = naive
[network]
height = 32
width = 32
[verify]
mode = quick
images = 1
[latency]
repetitions = 2
warmup = 0
copies = no
INI
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect STATUS COMMAND...: runs it; streams in out and err. Never by a signal.
expect() {
  wanted=$1
  shift
  "$@" > out 2> err
  got=$?
  [ "$got" = "$wanted" ] || { fail "exit $got, expected $wanted: $*"; sed 's/^/  | /' err; }
}

says() { # says FILE TEXT
  grep -qF -- "$2" "$1" || { fail "$1 does not say '$2'"; sed 's/^/  | /' "$1"; }
}

ok() { # ok FILE: one row, and it is ok
  seen=$("$check" "$1" rows.0.status) || seen="(nothing)"
  [ "$seen" = ok ] || { fail "$1: the row is $seen"; "$check" "$1" rows.0.reason; }
  "$check" "$1" rows.0.latency.mean_s | grep -q '^[0-9]*\.[0-9]' || fail "$1: no mean_s"
}

finish() {
  [ $failures = 0 ] && echo "all passed" || { echo "$failures failed"; exit 1; }
  exit 0
}

places() {
# ---- no home -------------------------------------------------------------------------------------
expect 0 env -u HOME -u XDG_CACHE_HOME -u XDG_DATA_HOME "$warmlap" run small.ini --json home.json
ok home.json
says out "built kernels are not kept"
expect 2 env -u HOME -u XDG_CACHE_HOME -u XDG_DATA_HOME "$warmlap" run small.ini --set run:kernels=tuned
says err HOME

# ---- a cache that cannot be written --------------------------------------------------------------
: > file
expect 0 env XDG_CACHE_HOME="$PWD/file" "$warmlap" run small.ini --json cache.json
ok cache.json
says out "built kernels are not kept"

# ---- two instances on one cache ------------------------------------------------------------------
export XDG_CACHE_HOME="$PWD/shared"
"$warmlap" run small.ini --json one.json > one.out 2> one.err &
pid=$!
expect 0 "$warmlap" run small.ini --json two.json
wait $pid || fail "two instances: exit $?"
ok one.json
ok two.json
expect 0 "$warmlap" run small.ini --json three.json
[ "$("$check" three.json rows.0.cold.build_compiled)" = 0.0 ] || fail "what two instances stored is not used"

# ---- full disk -----------------------------------------------------------------------------------
# A limit on the size of files is a disk that becomes full while the document is written.
expect 1 sh -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' - "$warmlap" run small.ini --json full.json
says err 'File too large'
[ ! -e full.json ] || "$check" full.json || fail "full.json is half a document"
ls ./*.tmp ./*.part 2> /dev/null && fail "a full disk leaves temporary files"
if [ -w /dev/full ]; then
  expect 1 "$warmlap" run small.ini --json /dev/full
  says err 'No space left'
  "$warmlap" devices > /dev/full 2> err
  [ $? = 1 ] || fail "standard output on a full disk: no exit status 1"
fi
mkdir disk
if unshare -m sh -c 'mount -t tmpfs -o size=16k tmpfs disk' 2> /dev/null; then
  expect 1 unshare -m sh -c 'mount -t tmpfs -o size=16k tmpfs disk || exit 9
    head -c 12k /dev/zero > disk/filler; shift; "$@"; s=$?; ls disk | grep -v filler; exit $s' - x \
    "$warmlap" run small.ini --json disk/full.json --set latency:repetitions=2000
  says err 'No space left'
  says err 'the document is in'
else
  echo "left out: a full file system (this machine does not let one be mounted)"
fi

# ---- no /proc ------------------------------------------------------------------------------------
if unshare -m sh -c 'mount -t tmpfs tmpfs /proc' 2> /dev/null; then
  expect 0 unshare -m sh -c 'mount -t tmpfs tmpfs /proc && shift && exec "$@"' - x \
    "$warmlap" run small.ini --json proc.json
  ok proc.json
else
  echo "left out: no /proc (this machine does not let it be covered)"
fi

}

limits() {
# ---- few files, little memory --------------------------------------------------------------------
"$warmlap" run --dump-config > /dev/null || fail "--dump-config"
for files in 5 12; do
  sh -c "ulimit -n $files; exec \"\$@\"" - "$warmlap" run small.ini --force --json files.json > out 2> err
  got=$?
  [ $got -lt 126 ] || fail "$files open files: exit $got"
  [ $got = 0 ] || [ -s err ] || grep -q failed out || fail "$files open files: exit $got without a word"
done
expect 0 sh -c 'ulimit -n 64; exec "$@"' - "$warmlap" run small.ini --force --json files.json
ok files.json
for kib in 100000 600000; do
  sh -c "ulimit -v $kib; exec \"\$@\"" - "$warmlap" run small.ini --force --json memory.json > out 2> err
  got=$?
  [ $got -lt 126 ] || fail "$kib KiB of addresses: exit $got"
  [ $got = 0 ] || [ -s err ] || grep -q failed out || fail "$kib KiB of addresses: exit $got without a word"
done

# ---- other languages -----------------------------------------------------------------------------
mkdir locale
if localedef -i de_DE -f UTF-8 locale/de_DE.UTF-8 2> /dev/null || [ -d locale/de_DE.UTF-8 ]; then
  LOCPATH=$PWD/locale LC_ALL=de_DE.UTF-8 printf '%.1f\n' 1,5 > comma 2> /dev/null
  expect 0 env LOCPATH="$PWD/locale" LC_ALL=de_DE.UTF-8 "$warmlap" run small.ini --json german.json --csv german.csv
  ok german.json
  says err reference
  grep -q '[0-9],[0-9]* ms' out && fail "a decimal comma in the table"
  expect 2 env LOCPATH="$PWD/locale" LC_ALL=de_DE.UTF-8 "$warmlap" run small.ini --set latency:burn_in=0,5
else
  echo "left out: de_DE.UTF-8 (no localedef, or no sources of locales)"
fi
for locale in C xx_XX.nosuch; do
  expect 0 env LC_ALL=$locale "$warmlap" run small.ini --force --json locale.json
  ok locale.json
done
env LC_ALL=C "$warmlap" run small.ini 2> err | LC_ALL=C grep -q '[^ -~]' && fail "LC_ALL=C: bytes beyond ASCII"

# ---- the wall clock is set during the run --------------------------------------------------------
expect 0 env LD_PRELOAD="$clock" "$warmlap" run small.ini --json stepped.json --set latency:repetitions=20
ok stepped.json
mean=$("$check" stepped.json rows.0.latency.mean_s)
case $mean in 0.*) ;; *) fail "a stepped clock: a mean latency of $mean s" ;; esac

# ---- signals at any phase ------------------------------------------------------------------------
phase=0
for wait in 0.05 0.3 1; do
    phase=$((phase + 1))
    signal=INT
    [ $phase = 2 ] && signal=TERM
    "$warmlap" run small.ini --json "signal$phase.json" --set latency:batch=1,2 > out 2> err &
    pid=$!
    sleep $wait
    kill -$signal $pid 2> /dev/null
    wait $pid
    got=$?
    # Before the handlers are there the signal ends it, as it does any program.
    case $got in 0 | 130 | 143) ;; *) fail "SIG$signal after $wait s: exit $got"; sed 's/^/  | /' err ;; esac
    [ ! -e "signal$phase.json" ] || "$check" "signal$phase.json" > /dev/null ||
      fail "SIG$signal after $wait s: half a document"
done
ls ./*.tmp 2> /dev/null && fail "temporary files are left"

}

$part
finish
