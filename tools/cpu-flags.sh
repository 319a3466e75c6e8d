#!/bin/sh
# The one place that chooses what the build may ask of the CPU.
#
# Usage: cpu-flags.sh COMMAND [ARGUMENT...]   runs COMMAND with the flags in its environment
#        cpu-flags.sh --target-dir            prints the target folder of these flags
#        cpu-flags.sh --print                 prints the name and every variable that would be set
#
# $CALLME_CPU names a set by hand (x86-64-v2, x86-64-v3, avxvnni, avx512vnni, icelake-server, aarch64-...); $RUSTFLAGS,
# where set, is kept as it is. Each set has a target folder of its own: two sets in one would rebuild
# llama.cpp at every switch. A plain `cargo build` does not come here; it has x86-64-v3 from .cargo/config.toml.
#
# Never `target-cpu=native`: some virtual machines advertise AMX and kill the process that uses it, and
# `native` would also make llama.cpp use it. llama-cpp-sys-2's build script hands rustc's target CPU and features
# on to llama.cpp; what it does not hand on is said in GGML_... variables here.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# The three are variables so that a test can play another machine.
machine=${CALLME_MACHINE:-$(uname -m)}
system=${CALLME_SYSTEM:-$(uname -s)}
cpuinfo=${CALLME_CPUINFO:-/proc/cpuinfo}

# Does the CPU list every one of these features?
has() {
    for feature in "$@"; do
        case $features in *" $feature "*) ;; *) return 1 ;; esac
    done
}

detect() {
    if [ "$system" != Linux ] || [ ! -r "$cpuinfo" ]; then
        echo default
        return
    fi
    features=" $(sed -n 's/^\(flags\|Features\)[[:space:]]*://p' "$cpuinfo" | head -n 1) "
    case $machine in
    x86_64 | amd64)
        if has avx512_vnni avx512_vbmi2 avx512_bitalg gfni vaes; then echo icelake-server
        elif has avx512_vnni; then echo avx512vnni
        elif has avx2 avx_vnni; then echo avxvnni
        elif has avx2; then echo x86-64-v3
        else echo x86-64-v2; fi
        ;;
    aarch64 | arm64)
        name=aarch64
        if has asimddp; then name=$name-dotprod; fi
        if has asimddp asimdhp; then name=$name-fp16; fi
        if has asimddp i8mm; then name=$name-i8mm; fi
        echo "$name"
        ;;
    *) echo default ;;
    esac
}

if [ -n "${RUSTFLAGS:-}" ]; then
    name=custom-$(printf %s "$RUSTFLAGS" | cksum | cut -d ' ' -f 1)
else
    name=${CALLME_CPU:-$(detect)}
    case $name in
    icelake-server | x86-64-v3) RUSTFLAGS="-C target-cpu=$name" ;;
    avx512vnni) RUSTFLAGS="-C target-cpu=x86-64-v4 -C target-feature=+avx512vnni" ;;
    avxvnni) RUSTFLAGS="-C target-cpu=x86-64-v3 -C target-feature=+avxvnni" ;;
    x86-64-v2)
        RUSTFLAGS="-C target-cpu=x86-64-v2"
        # llama.cpp turns these on by itself wherever it does not build for the machine it is on.
        export GGML_AVX=OFF GGML_AVX2=OFF GGML_BMI2=OFF GGML_F16C=OFF GGML_FMA=OFF
        ;;
    aarch64-dotprod*)
        # The build script pins armv8-a, which has no dot product; arm-arch.cmake puts this in its place.
        GGML_CPU_ARM_ARCH=armv8.2-a$(echo "${name#aarch64}" | tr - +)
        export GGML_CPU_ARM_ARCH CMAKE_PROJECT_INCLUDE="$root/tools/arm-arch.cmake"
        ;;
    aarch64 | default) ;; # rustc's and llama.cpp's own defaults.
    *)
        echo "error: CALLME_CPU=$name is none of x86-64-v2, x86-64-v3, avxvnni, avx512vnni, icelake-server, aarch64-dotprod[-fp16][-i8mm], default" >&2
        exit 2
        ;;
    esac
fi
# An empty RUSTFLAGS would hide the ones of .cargo/config.toml.
if [ -n "${RUSTFLAGS:-}" ]; then export RUSTFLAGS; else unset RUSTFLAGS; fi
# Make's own options are for this Makefile, neither for cargo nor for the makefiles that cmake writes.
unset MAKEFLAGS MFLAGS MAKELEVEL
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/$name"

case ${1:-} in
"") sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
--target-dir) echo "$CARGO_TARGET_DIR" ;;
--print)
    echo "name $name"
    env | grep -E '^(RUSTFLAGS|GGML_[A-Z0-9_]+|CMAKE_PROJECT_INCLUDE)=' | sed "s|$root/||" | sort
    ;;
*) exec "$@" ;;
esac
