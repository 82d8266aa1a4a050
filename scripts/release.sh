#!/usr/bin/env bash
# Builds what a release has for one platform: a stripped program, its archive with shell completions and manual pages, the wheel, the SBOM and
# SHA256SUMS.
#
#   scripts/release.sh [--target TRIPLE] [--glibc VERSION] [--program PATH] [--out DIR] [--dry-run]
#
#   --target    the platform (default: this machine's): x86_64- or aarch64-unknown-linux-gnu, -unknown-linux-musl (static; no CUDA, which
#               is opened at run time), aarch64- or x86_64-apple-darwin (on a Mac)
#   --glibc     the oldest glibc that the program runs with (default: 2.17); needs cargo-zigbuild, as every Linux target but this machine's does
#   --program   a finished program to pack instead of building one
#   --out       folder for the files (default: dist/TRIPLE)
#   --dry-run   print the steps
#
# cargo-zigbuild and its compiler: pip install cargo-zigbuild ziglang. Without it the program needs this machine's glibc, and the end says
# which. Completions and manual pages are printed by the program, or by the one that EARNEST_HOST_PROGRAM names if it cannot run here.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "error: $1" >&2; exit "${2:-1}"; }

invoked=$PWD
cd "$(dirname "$0")/.."
target=
glibc=2.17
program=
out=
dry=
absolute() { case $1 in /*) echo "$1" ;; *) echo "$invoked/$1" ;; esac; }
while [ $# -gt 0 ]; do
  case $1 in
    --target) [ $# -ge 2 ] || fail "--target needs a triple" 2; target=$2; shift ;;
    --glibc) [ $# -ge 2 ] || fail "--glibc needs a version" 2; glibc=$2; shift ;;
    --program) [ $# -ge 2 ] || fail "--program needs a path" 2; program=$(absolute "$2"); shift ;;
    --out) [ $# -ge 2 ] || fail "--out needs a folder" 2; out=$(absolute "$2"); shift ;;
    --dry-run) dry=1 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail "unknown argument $1" 2 ;;
  esac
  shift
done
host=$(rustc -vV | sed -n 's/^host: //p') || fail "rustc is needed: https://rustup.rs"
target=${target:-$host}
out=${out:-$PWD/dist/$target}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=earnest-$version-$target

# Prints a step, and takes it unless --dry-run.
step() {
  printf '+ %s\n' "$*"
  [ -n "$dry" ] || "$@"
}

# The program.
if [ -z "$program" ]; then
  folder=${CARGO_TARGET_DIR:-target}/$target/dist
  zig=
  if cargo zigbuild --help > /dev/null 2>&1; then zig=1; fi
  case $target in
    x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu)
      if [ -n "$zig" ]; then
        build=(cargo zigbuild --target "$target.$glibc")
      elif [ "$target" = "$host" ]; then
        echo "cargo-zigbuild is not installed: the program will need the glibc of this machine"
        build=(cargo build --target "$target")
      else
        fail "$target from $host needs cargo-zigbuild: pip install cargo-zigbuild ziglang"
      fi
      ;;
    x86_64-unknown-linux-musl | aarch64-unknown-linux-musl)
      [ -n "$zig" ] || fail "$target needs cargo-zigbuild: pip install cargo-zigbuild ziglang"
      build=(cargo zigbuild --target "$target")
      ;;
    x86_64-apple-darwin | aarch64-apple-darwin)
      [ "$(uname -s)" = Darwin ] || fail "$target needs Apple's SDK: run this on a Mac"
      build=(cargo build --target "$target")
      ;;
    *) fail "there is no release for $target: see --help" 2 ;;
  esac
  if command -v rustup > /dev/null && ! rustup target list --installed | grep -qx "$target"; then
    step rustup target add "$target"
  fi
  step "${build[@]}" --profile dist --locked --bin earnest
  program=$folder/earnest
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage
step mkdir -p "$out" "$stage/completions" "$stage/man" "$work/wheel"
[ -n "$dry" ] || [ -x "$program" ] || fail "there is no program $program"
step cp "$program" LICENSE-MIT LICENSE-APACHE README.md "$stage"
if [ -z "$dry" ]; then
  [ "$(basename "$program")" = earnest ] || mv "$stage/$(basename "$program")" "$stage/earnest"
fi
# The profile has stripped it already; a program from elsewhere may have its symbols.
case $target in
  "$host") step strip "$stage/earnest" ;;
esac
if [ -z "$dry" ]; then
  bytes=$(wc -c < "$stage/earnest")
  [ "$bytes" -lt 80000000 ] || fail "the program has $bytes bytes; a release has less than 80 MB"
fi

# What it prints about itself.
if [ -z "$dry" ]; then
  printer=${EARNEST_HOST_PROGRAM:-$stage/earnest}
  "$printer" --version > "$work/version" || fail "$printer does not run here: name a program that does in EARNEST_HOST_PROGRAM"
  [ "$(cat "$work/version")" = "earnest $version" ] || fail "$printer is $(cat "$work/version"), not earnest $version"
  "$printer" completions bash > "$stage/completions/earnest.bash"
  "$printer" completions zsh > "$stage/completions/_earnest"
  "$printer" completions fish > "$stage/completions/earnest.fish"
  "$printer" man --dir "$stage/man" 2> /dev/null
else
  echo "+ earnest completions bash|zsh|fish > completions/..., earnest man --dir man"
fi

# The wheel, of the same program.
if [ "$target" = "$host" ]; then
  step scripts/wheel.sh --program "$stage/earnest" --out "$work/wheel" --no-try
else
  step scripts/wheel.sh --program "$stage/earnest" --out "$work/wheel" --target "$target"
fi

# Archive, SBOM, checksums.
if [ -z "$dry" ]; then
  python3 scripts/pack.py "$name" "$stage" "$work"/wheel/*.whl "$out"
  echo "release: $out, with a program of $bytes bytes"
  if command -v objdump > /dev/null && [[ $target = *-linux-gnu ]]; then
    echo "needs: glibc $(objdump -T "$stage/earnest" | grep -o 'GLIBC_[0-9][0-9.]*' | sort -uV | tail -1 | sed 's/GLIBC_//') or later"
  fi
else
  echo "+ scripts/pack.py $name: archive, SBOM, SHA256SUMS in $out"
fi
