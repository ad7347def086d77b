#!/usr/bin/env bash
# Installs the package in a clean root made by debootstrap and runs the program there.
# Usage: scripts/test-deb.sh [PACKAGE.deb]   (without one it is built first)
# Exit status 77, with the reason, where this cannot be done: not root, no debootstrap, no package mirror.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "$0")/lib.sh"
skip() { say "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "debootstrap needs root"
command -v debootstrap >/dev/null || skip "debootstrap is missing"
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-dev is missing"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
deb=${1:-}
[ -n "$deb" ] || deb=$("$top/scripts/package.sh" "$work/build" | tail -n 1)
deb=$(realpath "$deb")
dpkg-deb -I "$deb" >&2

# Of this machine's own release and mirror: the package was built against its libraries.
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -m 1 -E 'debian|ubuntu' || true)
[ -n "$codename" ] && [ -n "$mirror" ] || skip "no release name or no package mirror of this machine is known"
root=$work/root
say "debootstrap $codename from $mirror"
debootstrap --variant=minbase "$codename" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
  tail -n 5 "$work/debootstrap.log" >&2
  skip "debootstrap could not make a root"
}
# As this machine reaches its mirror.
for f in /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/sources.list /etc/apt/sources.list.d /etc/resolv.conf; do
  [ ! -e "$f" ] || cp -rL "$f" "$root/$(dirname "$f")/" 2>/dev/null || true
done
cp "$deb" "$root/tmp/warmlap.deb"
cp "$top/docs/results/h200-survey.json" "$root/tmp/"
# With /proc, in a mount namespace that ends with the command.
inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    unshare -m sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" "$@"
}
inside apt-get update -qq >"$work/apt.log" 2>&1 || { tail -n 5 "$work/apt.log" >&2; skip "no package lists in the new root"; }
inside apt-get install -y -qq --no-install-recommends /tmp/warmlap.deb >"$work/apt.log" 2>&1 || {
  tail -n 20 "$work/apt.log" >&2
  die "the package does not install"
}

inside warmlap --version >&2
inside warmlap run quick --dump-config | grep -q repetitions || die "the shipped configuration is not found"
inside warmlap compare /tmp/h200-survey.json | grep -q 'NVIDIA H200' || die "compare does not run"
inside warmlap report /tmp/h200-survey.json -o /tmp/report.html || die "report does not run"
inside warmlap history add /tmp/h200-survey.json >&2 || die "history does not run"
devices() { # devices TEXT: nothing is found, and the reason contains it
  local status=0 said
  said=$(inside warmlap devices) || status=$?
  say "$said"
  [ "$status" = 3 ] || die "devices: exit status $status without any driver, expected 3"
  grep -qF "$1" <<<"$said" || die "devices does not say: $1"
}
dpkg-deb -f "$deb" Recommends | grep -q libopencl1 || die "the package does not recommend OpenCL's loader"
devices "install an OpenCL ICD loader (Debian, Ubuntu: ocl-icd-libopencl1)"
inside apt-get install -y -qq --no-install-recommends ocl-icd-libopencl1 >"$work/apt.log" 2>&1 || {
  tail -n 5 "$work/apt.log" >&2
  die "the loader that the program names cannot be installed"
}
devices "no OpenCL platform"
for f in bin/warmlap share/man/man1/warmlap.1.gz share/bash-completion/completions/warmlap \
  share/zsh/vendor-completions/_warmlap share/warmlap/conf/quick.ini share/doc/warmlap/copyright; do
  [ -s "$root/usr/$f" ] || die "the package has no /usr/$f"
done
inside apt-get remove -y -qq warmlap >"$work/apt.log" 2>&1 || die "the package does not go away"
[ ! -e "$root/usr/bin/warmlap" ] && [ ! -e "$root/usr/share/warmlap" ] || die "the package leaves something behind"
say "installed, ran and removed in a clean $codename"
