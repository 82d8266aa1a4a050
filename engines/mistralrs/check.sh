#!/usr/bin/env bash
# Compiles this crate without making a program (`cargo check`), which takes long (hundreds of crates), unless its files are those that
# were checked last: `checked` holds their digest, so this works in any clone, however shallow.
#   check.sh            checks if something changed
#   check.sh --record   checks in any case and records the digest: commit it with the change
# What it cannot see is a change of earnest's own interface: check by hand after one.
set -euo pipefail
cd "$(dirname "$0")"

case "${1:-}" in
  "" | --record) ;;
  *)
    echo "usage: check.sh [--record]" >&2
    exit 2
    ;;
esac

digest=$(git ls-files -- . ':!checked' | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
if [ "${1:-}" != --record ] && [ "$digest" = "$(cat checked 2> /dev/null)" ]; then
  echo "skipped: nothing in engines/mistralrs changed since it was checked"
  exit 0
fi
# Not --locked: the dependencies of earnest, which move without this crate, are part of its lock file.
cargo check --all-targets
if [ "${1:-}" = --record ]; then
  echo "$digest" > checked
else
  echo "it compiles; engines/mistralrs/check.sh --record keeps that, so that it is skipped until the next change"
fi
