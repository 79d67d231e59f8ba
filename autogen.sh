#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes ./configure from configure.ac. Needed after a git clone; a release tarball holds it already.
set -e
cd "$(dirname "$0")"
command -v autoreconf >/dev/null || { echo "autogen.sh: autoreconf is missing: apt-get install autoconf automake libtool pkg-config" >&2; exit 1; }
exec autoreconf --install "$@"
