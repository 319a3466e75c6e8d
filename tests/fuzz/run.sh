#!/bin/sh
# Runs fuzz targets at the same time, each for so many minutes; `make fuzz` comes here.
#
# Usage: run.sh [MINUTES [schema|parse|recognize ...]], all three where none is named
#
# An input that crashes, takes over 120 s (the sanitizer makes all 10 to 20 times slower, other work as much again) or over 2 GB is a find:
# it stops its target, stands in target/fuzz/artifacts, and the exit status is 1. The logs are in target/fuzz.
# llama.cpp is asked too where models/test has a vocabulary (`make test` makes one), with CALLME_FUZZ_LLAMA=no not.
set -eu

minutes=${1:-20}
if [ $# -gt 1 ]; then shift; targets=$*; else targets="schema parse recognize"; fi
cd "$(dirname "$0")/../.."
out=$PWD/target/fuzz
cargo +nightly fuzz --version >/dev/null 2>&1 || {
    echo "error: needs a nightly toolchain and cargo-fuzz: rustup toolchain install nightly; cargo install cargo-fuzz" >&2
    exit 2
}

export CALLME_FUZZ_VOCAB="${CALLME_FUZZ_VOCAB:-$PWD/models/test/vocab-qwen2.gguf}"
if [ "${CALLME_FUZZ_LLAMA:-}" = no ] || [ ! -f "$CALLME_FUZZ_VOCAB" ]; then
    echo "llama.cpp is not asked" >&2
    unset CALLME_FUZZ_LLAMA
elif [ -z "${CALLME_FUZZ_LLAMA:-}" ]; then
    tools/cpu-flags.sh cargo build --manifest-path tests/fuzz/Cargo.toml --locked --release --features engine --bin llama
    CALLME_FUZZ_LLAMA=$PWD/$(tools/cpu-flags.sh --target-dir)/release/llama
    export CALLME_FUZZ_LLAMA
fi

fuzz() {
    command=$1
    shift
    nice -n 10 cargo +nightly fuzz "$command" --fuzz-dir tests/fuzz --target-dir "$out" "$@"
}

run() {
    mkdir -p "$out/corpus/$1" "$out/artifacts"
    fuzz run "$@" -- \
        -max_total_time=$((minutes * 60)) -timeout=120 -rss_limit_mb=2048 -max_len=4096 -len_control=0 \
        -dict=tests/fuzz/words.dict -artifact_prefix="$out/artifacts/$1-" \
        -print_final_stats=1 >"$out/$1.log" 2>&1
}

fuzz build
pids=
for target in $targets; do
    set -- "$out/corpus/$target"
    case $target in
    schema | parse) set -- "$@" "tests/fuzz/seeds/$target" tests/golden ;;
    esac
    run "$target" "$@" &
    pids="$pids $target:$!"
done
status=0
for target in $pids; do
    name=${target%:*}
    if wait "${target#*:}"; then found=; else found=" A FIND, see target/fuzz/$name.log"; status=1; fi
    echo "$name: $(grep -E '^stat::(number_of_executed_units|average_exec_per_sec)|^Done' "$out/$name.log" | tr -s '\n ' ' ')$found"
done
exit $status
