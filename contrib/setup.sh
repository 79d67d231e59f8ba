# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What demo.sh and test.sh do first: install what is missing, configure and build in build/. Sourced by them; sets $top,
# $build, $nvcc and $minicluster, and defines say, die and prepare.
# shellcheck disable=SC2034

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build
minicluster=$top/contrib/minicluster/minicluster

say() { printf '== %s\n' "$*"; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Debian packages: to build, to run the cluster, to run the tests.
packages=(
    autoconf automake libtool pkg-config make g++ gcc binutils xz-utils
    libucx-dev libibverbs-dev libhwloc-dev libboost-dev libboost-test-dev nlohmann-json3-dev libspdlog-dev libcli11-dev
    libsqlite3-dev libzstd-dev liblz4-dev libsodium-dev libmunge-dev libslurm-dev
    munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins iproute2 util-linux procps
)

installed() { [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]; }

# RUNLEVEL=1: no service is started; the cluster starts its own, in its namespaces.
install_packages() {
    apt-get -qq update || die "apt-get update failed: see above"
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" ||
        die "apt-get install failed: see above"
}

find_nvcc() {
    local candidate
    for candidate in /usr/local/cuda/bin/nvcc "$(command -v nvcc)" /usr/lib/nvidia-cuda-toolkit/bin/nvcc; do
        if [[ -x $candidate ]]; then
            nvcc=$candidate
            return 0
        fi
    done
    return 1
}

install_missing() {
    local package missing=()
    command -v dpkg-query >/dev/null || die "this script installs Debian packages, and this is no Debian; README.md lists what is needed"
    for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
    if [[ ${#missing[@]} -gt 0 ]]; then
        say "installing ${missing[*]}"
        install_packages "${missing[@]}"
    fi
    if ! find_nvcc; then
        say "installing nvidia-cuda-toolkit (there is no CUDA Toolkit in /usr/local/cuda)"
        apt-get -qq update || true
        apt-cache show nvidia-cuda-toolkit >/dev/null 2>&1 ||
            die "nvcc is missing: install NVIDIA's CUDA Toolkit in /usr/local/cuda, or add the sections contrib and non-free to apt's sources, which bring nvidia-cuda-toolkit"
        install_packages nvidia-cuda-toolkit
        find_nvcc || die "nvidia-cuda-toolkit brought no nvcc"
    fi
}

configure_tree() {
    local compilers=()
    [[ ! -x $build/config.status ]] || return 0
    if command -v ccache >/dev/null; then compilers=(CC='ccache gcc' CXX='ccache g++'); fi
    say "configuring in build/"
    if [[ ! -x $top/configure ]]; then
        "$top/autogen.sh" >"$top/autogen.log" 2>&1 || die "autogen.sh failed: see $top/autogen.log"
        rm -f "$top/autogen.log"
    fi
    mkdir -p "$build"
    # Without debug information, which takes a third of the time. By a relative path, so that ccache knows the files of
    # another clone again.
    (cd "$build" && ../configure CXXFLAGS=-O2 CFLAGS=-O2 "${compilers[@]}" >configure.out 2>&1) ||
        die "configure failed: $(grep -m 1 'error:' "$build/configure.out"); see $build/config.log"
}

build_tree() {
    say "building in build/ on $(nproc) processors; the first time takes minutes"
    make -s -C "$build" -j"$(nproc)" >"$build/make.out" 2>&1 || {
        grep -m 5 -E 'error|Error' "$build/make.out" >&2
        die "the build failed: see $build/make.out"
    }
}

prepare() {
    [[ $EUID == 0 ]] || die "needs root: it installs packages and starts a cluster in namespaces of its own"
    umask 022
    install_missing
    configure_tree
    build_tree
}
