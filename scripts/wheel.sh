#!/usr/bin/env bash
# Packs a finished program and the Python package into a wheel, installs it into a clean virtual environment and tries it.
#
#   scripts/wheel.sh [--program PATH] [--build] [--target TRIPLE] [--out DIR] [--no-try]
#
#   --program   the program to pack (default: target/release/earnest)
#   --build     build it first (cargo build --release)
#   --target    the platform of the program, if it is not this machine's, e.g. aarch64-unknown-linux-gnu; the wheel is not tried then
#   --out       folder for the wheel (default: dist)
#   --no-try    only pack
#
# Tried are: the time from an empty folder to the first result, the types, and python/tests with pyarrow, pandas and polars. Needs python3 and the
# Python index, for maturin once and for the libraries; exit code 77 if the index cannot be reached.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "error: $1" >&2; exit "${2:-1}"; }

here=$(cd "$(dirname "$0")" && pwd)
invoked=$PWD
cd "$here/.."
maturin=1.16.0
program=${CARGO_TARGET_DIR:-target}/release/earnest
out=dist
target=
build=
try=1
absolute() { case $1 in /*) echo "$1" ;; *) echo "$invoked/$1" ;; esac; }
while [ $# -gt 0 ]; do
  case $1 in
    --program) [ $# -ge 2 ] || fail "--program needs a path" 2; program=$(absolute "$2"); shift ;;
    --out) [ $# -ge 2 ] || fail "--out needs a folder" 2; out=$(absolute "$2"); shift ;;
    --target) [ $# -ge 2 ] || fail "--target needs a triple" 2; target=$2; try=; shift ;;
    --build) build=1 ;;
    --no-try) try= ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail "unknown argument $1" 2 ;;
  esac
  shift
done
[ -z "$build" ] || cargo build --release --locked --bin earnest
[ -x "$program" ] || fail "there is no program $program: cargo build --release, or name one with --program"

tools=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-maturin-$maturin
if [ ! -x "$tools/bin/maturin" ]; then
  python3 -m venv "$tools"
  if ! "$tools/bin/pip" install --quiet --disable-pip-version-check "maturin==$maturin"; then
    echo "skipped: maturin cannot be installed; is the Python index reachable?" >&2
    exit 77
  fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# In the wheel it has its file's name.
mkdir "$work/program" "$work/wheel"
cp "$program" "$work/program/earnest"
# Names of functions are a seventh of it. This machine's tool may not know another machine's programs.
[ -n "$target" ] || strip "$work/program/earnest"
bytes=$(wc -c < "$work/program/earnest")
[ "$bytes" -lt 80000000 ] || fail "$program has $bytes bytes in the wheel; a program has less than 80 MB"
REAL_CARGO=$(command -v cargo) PROGRAM=$work/program/earnest CARGO=$here/wheel_cargo.py \
  "$tools/bin/maturin" build --release ${target:+--target "$target"} --out "$work/wheel"
wheels=("$work"/wheel/*.whl)
[ ${#wheels[@]} -eq 1 ] || fail "maturin made ${#wheels[@]} wheels, not one"
mkdir -p "$out"
cp "${wheels[0]}" "$out"
wheel=$out/$(basename "${wheels[0]}")
echo "wheel: $wheel, $(wc -c < "$wheel") bytes, with a program of $bytes bytes"
[ -n "$try" ] || exit 0

# As someone does who has the wheel and nothing else: no index, no library, no setting, no checkout.
unset EARNEST_PROGRAM EARNEST_RESULTS EARNEST_MODEL EARNEST_DEVICE EARNEST_MODELS_TOML PYTHONPATH
wheel=$(cd "$(dirname "$wheel")" && pwd)/$(basename "$wheel")
tests=$PWD/python/tests
cd "$work"
seconds() { python3 -c 'import time; print(time.time())'; }
begun=$(seconds)
python3 -m venv clean
clean/bin/pip install --quiet --disable-pip-version-check --no-index "$wheel"
installed=$(seconds)
clean/bin/earnest run nupa --limit 530 --quiet > first.txt
ended=$(seconds)
head -12 first.txt
python3 - "$begun" "$installed" "$ended" << 'END'
import sys

begun, installed, ended = map(float, sys.argv[1:])
print(f"time to the first result (530 questions of nupa): {ended - begun:.1f} s, of which {installed - begun:.1f} s to install; the goal is 90 s")
END

index=1
clean/bin/pip install --quiet --disable-pip-version-check pyarrow pandas pandas-stubs polars mypy || index=
if [ -z "$index" ]; then
  EARNEST_TEST_WITHOUT=1 clean/bin/python "$tests/test_package.py"
  echo "skipped: samples as arrow, pandas and polars; they cannot be installed, is the Python index reachable?" >&2
  exit 77
fi
# The types that its users' checkers read.
clean/bin/mypy --cache-dir="$work/types" --config-file="$tests/../../pyproject.toml" --package earnest
clean/bin/python "$tests/test_package.py"
