#!/usr/bin/env bash
# Compiles every CUDA kernel for Ampere (sm_80, sm_86), Ada (sm_89), Hopper (sm_90, sm_90a) and Blackwell (sm_100, sm_120) without a GPU, and lists
# registers, spills and shared memory.
# Skipped if the kernels have not changed since they were last embedded in the program: `embedded` beside them begins with their digest.
#   cuda-assemble.sh            assembles if something changed
#   cuda-assemble.sh --record   always assembles, and writes `embedded`, the compiled kernels inside the program: commit it with the change
# Needs NVRTC of CUDA 12.9, whose binaries every driver of CUDA 12 and later loads: from EARNEST_CUDA_LIBRARIES, else from NVIDIA's wheel, which pip
# puts into the user's cache. --record needs zstd too.
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
embedded=$kernels/kernels/embedded
# Paths are relative to the folder, so that it may move.
digest=$(cd "$kernels" && git ls-files -- kernels ':!kernels/embedded' kernels.rs | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
if [ "${1:-}" != --record ] && [ "$digest" = "$(head -n 1 "$embedded" 2> /dev/null | tr -d '\0' | cut -d' ' -f1)" ]; then
  echo "skipped: the CUDA kernels have not changed since they were embedded"
  exit 0
fi

if [ -z "${EARNEST_CUDA_LIBRARIES:-}" ]; then
  wheel=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-nvrtc-12.9
  if [ ! -e "$wheel/.ready" ]; then
    python3 -m venv "$wheel"
    "$wheel/bin/pip" install -q nvidia-cuda-nvrtc-cu12==12.9.86
    touch "$wheel/.ready"
  fi
  EARNEST_CUDA_LIBRARIES=$(echo "$wheel"/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib)
  export EARNEST_CUDA_LIBRARIES
fi

earnest() { cargo run --release --locked --quiet -- "$@"; }
earnest doctor --assemble sm_80,sm_86,sm_89,sm_90,sm_90a,sm_100,sm_120
if [ "${1:-}" != --record ]; then
  echo "they assemble; scripts/cuda-assemble.sh --record embeds them in the program"
  exit 0
fi

# A binary runs on later devices of its family: the one for sm_80 on 8.6 and 8.9 too. sm_89 adds the products of 8-bit floats, sm_90a those of warp groups.
architectures=sm_80,sm_89,sm_90,sm_90a,sm_100,sm_120
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
earnest doctor --assemble "$architectures" --embed "$folder"
line=$digest
for architecture in ${architectures//,/ }; do
  part=$(echo "$folder/$architecture".*)
  zstd -q --ultra -22 --long=27 -o "$folder/$architecture" "$part"
  compiler=${part#"$folder/$architecture".}
  case $line in *" $compiler"*) ;; *) line="$line $compiler" ;; esac
  line="$line $architecture:$(($(wc -c < "$folder/$architecture")))"
done
{
  echo "$line"
  for architecture in ${architectures//,/ }; do cat "$folder/$architecture"; done
} > "$embedded"
echo "$embedded: $(($(wc -c < "$embedded") / 1000)) KB; build and commit it with the change"
