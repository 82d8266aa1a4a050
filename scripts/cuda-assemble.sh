#!/usr/bin/env bash
# Compiles every CUDA kernel for Ampere (sm_80, sm_86), Ada (sm_89), Hopper (sm_90, sm_90a) and Blackwell (sm_100, sm_120) without a GPU, and lists
# registers, spills and shared memory.
# Skipped if the kernels have not changed since they were last embedded in the program: `embedded` beside them begins with their digest.
#   cuda-assemble.sh                  assembles if something changed, else lints `embedded` for Hopper, if this machine has not linted it yet
#   cuda-assemble.sh --record         always assembles, writes `embedded`, the compiled kernels inside the program, and lints it: commit it with the change
#   cuda-assemble.sh --lint [OPTION]  lints `embedded` for all architectures, with options of cuda_lint.py such as --table: two minutes of a core
# Needs NVRTC of CUDA 12.9, whose binaries every driver of CUDA 12 and later loads: from EARNEST_CUDA_LIBRARIES, else from NVIDIA's wheel, which pip
# puts into the user's cache. The lint gets its disassembler in the same way. --record and lints need zstd too. Exit code 77 if all is well but
# nothing could be linted, for want of zstd or of the Python index.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "" | --record | --lint) ;;
  *)
    echo "usage: cuda-assemble.sh [--record | --lint [OPTION ...]]" >&2
    exit 2
    ;;
esac

kernels=crates/engine/src/cuda
embedded=$kernels/kernels/embedded
# Paths are relative to the folder, so that it may move.
digest=$(cd "$kernels" && git ls-files -- kernels ':!kernels/embedded' kernels.rs | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)

disassembler=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-nvdisasm-13.5.37
# Reads the machine code of `embedded`; arguments are those of cuda_lint.py.
lint() {
  if ! command -v zstd > /dev/null; then
    echo "skipped: the machine code of the kernels; there is no zstd" >&2
    return 77
  fi
  if [ ! -e "$disassembler/.ready" ]; then
    python3 -m venv "$disassembler" || return
    if ! "$disassembler/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-cuobjdump==13.5.37; then
      echo "skipped: the machine code of the kernels; the disassembler cannot be installed, is the Python index reachable?" >&2
      return 77
    fi
    touch "$disassembler/.ready"
  fi
  local tools
  tools=$(echo "$disassembler"/lib/python3*/site-packages/nvidia/cu13/bin)
  python3 scripts/cuda_lint.py --tools "$tools" "$@" && python3 scripts/cuda_lint.py --self-test --tools "$tools"
}

if [ "${1:-}" = --lint ]; then
  shift
  lint "$@"
  exit
fi

if [ "${1:-}" != --record ] && [ "$digest" = "$(head -n 1 "$embedded" 2> /dev/null | tr -d '\0' | cut -d' ' -f1)" ]; then
  echo "not assembled: the CUDA kernels have not changed since they were embedded"
  # A lint takes half a minute of a core, so what has passed here once is not read again.
  passed=$disassembler/passed-$(cat "$embedded" scripts/cuda_lint.py | sha256sum | cut -d' ' -f1)
  if [ -e "$passed" ]; then
    echo "skipped: their machine code has passed the lint on this machine"
    exit 0
  fi
  lint --only sm_90,sm_90a
  touch "$passed"
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

assemble() { cargo run --release --locked --quiet -p earnest-dev -- assemble "$@"; }
assemble sm_80,sm_86,sm_89,sm_90,sm_90a,sm_100,sm_120
if [ "${1:-}" != --record ]; then
  echo "they assemble; scripts/cuda-assemble.sh --record embeds them in the program"
  exit 0
fi

# A binary runs on later devices of its family: the one for sm_80 on 8.6 and 8.9 too. sm_89 adds the products of 8-bit floats, sm_90a those of warp groups.
architectures=sm_80,sm_89,sm_90,sm_90a,sm_100,sm_120
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
assemble "$architectures" --embed "$folder"
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
lint
