# Shared by the scripts: installing what is missing, building. Sourced, not run.
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*" >&2; }
die() { say "$0: $*"; exit 1; }

# Debian and Ubuntu package names. Everywhere else they are named and left to the user.
base_packages=(gcc libc6-dev cmake make pkg-config ocl-icd-opencl-dev opencl-c-headers libclblast-dev
  libiniparser-dev libjansson-dev libsmartcols-dev libjs-chart.js
  libsqlite3-dev)
test_packages=(libcmocka-dev)
# Checkers that the tests use when they are there; a missing one is a skipped test that says so.
checker_packages=(clang-15 clang-tidy-15 cppcheck intel-opencl-icd oclgrind clang-format-14 git chromium python3
  openmpi-bin libopenmpi-dev mandoc zsh debootstrap dpkg-dev valgrind)

has_apt() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi
}

can_install() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

# Quiet unless it fails; then all it said.
quiet_apt() {
  local output
  output=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 "$@" 2>&1 </dev/null) && return 0
  say "$output"
  return 1
}

updated=no
apt_install() {
  if [ "$updated" = no ]; then
    quiet_apt update -qq || say "apt-get update failed; going on"
    updated=yes
  fi
  quiet_apt install -y -qq --no-install-recommends "$@"
}

# need PACKAGE...: installs those that are missing, or says which they are and stops.
need() {
  has_apt || return 0
  local missing=() p
  for p in "$@"; do installed "$p" || missing+=("$p"); done
  [ ${#missing[@]} = 0 ] && return 0
  if can_install; then
    say "installing: ${missing[*]}"
    apt_install "${missing[@]}" && return 0
  fi
  die "missing packages: ${missing[*]}
Install them (apt-get install ${missing[*]}), or run this script as root or with sudo."
}

# want PACKAGE...: the same, but one that cannot be had is only said.
want() {
  has_apt || return 0
  local p
  for p in "$@"; do
    installed "$p" && continue
    if can_install; then
      say "installing: $p"
      apt_install "$p" && continue
    fi
    say "not available here: $p (the tests that need it are skipped)"
  done
}

# check_tools [LIBRARY...]: on other systems, says what is missing, by what it is needed for; the
# libraries are pkg-config's names, beside those that every build needs.
check_tools() {
  local missing=() t
  for t in cc cmake make pkg-config; do command -v "$t" >/dev/null || missing+=("$t"); done
  if command -v pkg-config >/dev/null; then
    for t in jansson smartcols "$@"; do pkg-config --exists "$t" || missing+=("$t (development files)"); done
  fi
  [ ${#missing[@]} = 0 ] || die "missing: ${missing[*]}
Install these with your system's package manager, and iniparser, CLBlast and an OpenCL ICD loader with
headers (development files) as well. On Debian these are: ${base_packages[*]}${1:+ ${test_packages[*]}}"
}

# build DIR [CMAKE_OPTION...]: configures and builds what has changed; quiet unless it fails.
build() {
  local dir=$1
  shift
  say "building in ${dir#"$top"/}"
  mkdir -p "$dir" 2>/dev/null || true
  [ -w "$dir" ] || die "cannot write into $dir: use a copy of the sources that is your own"
  # Two builds in one folder spoil each other: the second waits. The lock ends with this function.
  local lock=
  if command -v flock >/dev/null; then
    exec {lock}>"$dir/.lock"
    flock -n "$lock" || { say "waiting for another build in ${dir#"$top"/}" && flock "$lock"; }
  fi
  { cmake -S "$top" -B "$dir" "$@" && cmake --build "$dir" -j "$(nproc)"; } >"$dir/build.log" 2>&1 || {
    tail -n 60 "$dir/build.log" >&2
    die "the build failed; all of it is in $dir/build.log"
  }
  if [ -n "$lock" ]; then exec {lock}>&-; fi
}
