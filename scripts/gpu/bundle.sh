#!/usr/bin/env bash
# Makes the folder that goes to a machine with a GPU: a small program with the engine alone, the reference checkpoints, the kernels' sources for
# EARNEST_KERNELS, and the steps. There: OUT/run.sh
#   bundle.sh OUT        builds earnest-dev and fills OUT, which must be empty or not be there
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -ne 1 ]; then
  echo "usage: bundle.sh OUT" >&2
  exit 2
fi
out=$1
mkdir -p "$out"
if [ -n "$(ls -A "$out")" ]; then
  echo "$out is not empty" >&2
  exit 2
fi
program=${EARNEST_DEV:-}
if [ -z "$program" ]; then
  cargo build --locked --release --quiet -p earnest-dev
  program=${CARGO_TARGET_DIR:-target}/release/earnest-dev
fi
strip -o "$out/earnest-dev" "$program"
python3 - "$out/earnest-dev" << 'PACK'
import lzma, os, sys
with open(sys.argv[1], "rb") as file:
    packed = lzma.compress(file.read(), preset=6)
with open(sys.argv[1] + ".xz", "wb") as file:
    file.write(packed)
os.remove(sys.argv[1])
PACK
cp scripts/gpu/run.sh scripts/gpu/steps.py scripts/gpu/products.py scripts/gpu/peer.py tests/cuda_twin/libraries.c "$out"
mkdir "$out/checkpoints" "$out/kernels"
cp -r tests/golden/engine/checkpoints/* "$out/checkpoints"
cp crates/engine/src/cuda/kernels/*.cu crates/engine/src/cuda/kernels/*.cuh "$out/kernels"
du -sb "$out" | awk '{printf "%.1f MiB\n", $1 / 1048576}'
