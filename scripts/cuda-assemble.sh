#!/usr/bin/env bash
# Compiles every CUDA kernel for Ampere (sm_80, sm_86), Ada (sm_89), Hopper (sm_90) and Blackwell (sm_100, sm_120) without a GPU, and lists
# registers, spills and shared memory.
# Skipped if the kernels have not changed since they were last assembled: `assembled` beside them holds their digest.
#   cuda-assemble.sh            assembles if something changed
#   cuda-assemble.sh --record   always assembles and records the digest: commit it with the change
# Needs NVRTC: from EARNEST_CUDA_LIBRARIES or the system, else from NVIDIA's wheel, which pip puts into the user's cache.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "" | --record) ;;
  *)
    echo "usage: cuda-assemble.sh [--record]" >&2
    exit 2
    ;;
esac

kernels=crates/engine/src/cuda
# Paths are relative to the folder, so that it may move.
digest=$(cd "$kernels" && git ls-files -- kernels ':!kernels/assembled' kernels.rs | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
if [ "${1:-}" != --record ] && [ "$digest" = "$(cat "$kernels/kernels/assembled" 2> /dev/null)" ]; then
  echo "skipped: the CUDA kernels have not changed since they were assembled"
  exit 0
fi

if [ -z "${EARNEST_CUDA_LIBRARIES:-}" ] && ! ldconfig -p 2> /dev/null | grep -q 'libnvrtc\.so'; then
  wheel=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-nvrtc-13.0
  if [ ! -e "$wheel/.ready" ]; then
    python3 -m venv "$wheel"
    "$wheel/bin/pip" install -q nvidia-cuda-nvrtc==13.0.88
    touch "$wheel/.ready"
  fi
  EARNEST_CUDA_LIBRARIES=$(echo "$wheel"/lib/python3*/site-packages/nvidia/cu13/lib)
  export EARNEST_CUDA_LIBRARIES
fi

cargo run --release --locked --quiet -- doctor --assemble sm_80,sm_86,sm_89,sm_90,sm_100,sm_120
if [ "${1:-}" = --record ]; then
  echo "$digest" > "$kernels/kernels/assembled"
else
  echo "they assemble; scripts/cuda-assemble.sh --record keeps that, so that it is skipped until the next change"
fi
