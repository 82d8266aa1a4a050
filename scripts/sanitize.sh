#!/usr/bin/env bash
# Runs the unit tests of the unsafe kernels under AddressSanitizer, with the instructions that this CPU has, and under Miri, which knows no
# vector instructions beyond SSE2 and so checks the portable kernels, the KV cache's blocks and what threads share.
#   scripts/sanitize.sh [address|miri]...     both by default
# Needs a nightly toolchain, and Miri with rust-src for the second; says what is missing (exit code 77).
set -uo pipefail
cd "$(dirname "$0")/.."

which=("$@")
[ ${#which[@]} -gt 0 ] || which=(address miri)
if ! rustc +nightly --version > /dev/null 2>&1; then
  echo "not checked, because a nightly toolchain is missing (rustup toolchain install nightly)"
  exit 77
fi
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
build=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-sanitize
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
# Miri takes minutes for what the CPU does in milliseconds: the largest shapes are left to the other one.
kernels=(cpu::kernels cpu::kv cpu::spin_pool)

code=0
for kind in "${which[@]}"; do
  case "$kind" in
    address)
      # With a target, build scripts and macros have no sanitizer.
      RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS=detect_leaks=1 \
        cargo +nightly test --locked --target "$host" --target-dir "$build/address" -p earnest-engine --lib -- "${kernels[@]}" || code=1
      ;;
    miri)
      if ! cargo +nightly miri --version > /dev/null 2>&1; then
        echo "Miri is not checked: rustup +nightly component add miri rust-src"
        [ "$code" -ne 0 ] || code=77
        continue
      fi
      MIRIFLAGS="-Zmiri-disable-isolation" cargo +nightly miri test --locked --target-dir "$build/miri" -p earnest-engine --lib -- \
        cpu::kernels::math cpu::kernels::norm cpu::kernels::shared cpu::kv || code=1
      ;;
    *)
      echo "usage: sanitize.sh [address|miri]..." >&2
      exit 2
      ;;
  esac
done
exit "$code"
