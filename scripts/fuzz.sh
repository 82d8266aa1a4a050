#!/usr/bin/env bash
# Fuzzes every target for a while, for a weekly job: 60 s each by default.
#   scripts/fuzz.sh                     all targets
#   scripts/fuzz.sh [SECONDS] TARGET... some of them
# Needs a nightly toolchain, a C++ compiler and cargo-fuzz, and says which of them is missing (exit code 77). Inputs that fuzzing finds
# interesting stay in the cache, so that the next run goes on; an input that crashes a target is copied to fuzz/corpus as found-*, where
# `cargo test` runs it from then on: commit it with the repair.
set -uo pipefail
cd "$(dirname "$0")/.."

seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for file in fuzz/fuzz_targets/*.rs; do
    targets+=("$(basename "$file" .rs)")
  done
fi

missing=()
rustc +nightly --version > /dev/null 2>&1 || missing+=("a nightly toolchain (rustup toolchain install nightly)")
command -v c++ > /dev/null || missing+=("a C++ compiler (for libFuzzer)")
cargo fuzz --version > /dev/null 2>&1 || missing+=("cargo-fuzz (cargo install cargo-fuzz --locked)")
if [ ${#missing[@]} -gt 0 ]; then
  printf 'not fuzzed, because this is missing: %s\n' "${missing[@]}"
  exit 77
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-fuzz
build=${EARNEST_FUZZ_TARGET:-$cache/target}
cargo +nightly fuzz build --target-dir "$build" || exit 1

failed=()
for target in "${targets[@]}"; do
  # The first folder takes what is new; the second is the repository's.
  mkdir -p "$cache/corpus/$target" "$cache/artifacts/$target"
  dictionary=()
  [ ! -e "fuzz/dictionaries/$target" ] || dictionary=("-dict=fuzz/dictionaries/$target")
  printf '\n=== %s for %s s\n' "$target" "$seconds"
  # A hang is 20 s for an input of at most 64 KiB; memory is that of the whole process.
  if ! cargo +nightly fuzz run --target-dir "$build" "$target" "$cache/corpus/$target" "fuzz/corpus/$target" -- \
    -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$cache/artifacts/$target/" "${dictionary[@]}" 2>&1 | tail -n 40; then
    failed+=("$target")
    for input in "$cache/artifacts/$target/"*; do
      name=$(sha256sum < "$input" | cut -c1-12)
      cp "$input" "fuzz/corpus/$target/found-$name"
      echo "=== kept as fuzz/corpus/$target/found-$name"
    done
  fi
done

if [ ${#failed[@]} -gt 0 ]; then
  printf '\n=== FAILED: %s\n' "${failed[*]}"
  exit 1
fi
printf '\n=== nothing was found\n'
