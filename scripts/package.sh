#!/usr/bin/env bash
# Builds the Debian package of this machine's release: build-package/warmlap_VERSION_ARCH.deb.
# Usage: scripts/package.sh [BUILD_FOLDER]
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "$0")/lib.sh"
dir=${1:-$top/build-package}
need "${base_packages[@]}" dpkg-dev
# The places that the program looks at are compiled in: it is for /usr.
# Without MPI, which belongs to a cluster and would bring a hundred packages.
build "$dir" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DLAP_TESTS=OFF -DLAP_MPI=OFF
rm -f "$dir"/*.deb
(cd "$dir" && cpack -G DEB >cpack.log 2>&1) || { tail -n 20 "$dir/cpack.log" >&2; die "cpack failed"; }
ls "$dir"/*.deb
