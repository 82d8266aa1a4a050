#!/usr/bin/env bash
# All checks that need a GPU, in under 8 minutes on one H200, without a network:
#   scripts/gpu-acceptance.sh [--binary FILE] [--real MODEL] [--out DIR] [--work DIR] [--seconds N]
#   scripts/gpu-acceptance.sh --pack FILE [--binary FILE]    strips and compresses the program, to copy it to another machine (about 20 MB)
#   scripts/gpu-acceptance.sh --dry-run [--binary FILE]      every command at small sizes on the CPU: tests the script, measures nothing
# Needs NVIDIA's driver, NVRTC of CUDA 12 or 13 (cublasLt too, or its checks fail) and python3 with its standard library; the
# libraries that come with PyTorch will do, and EARNEST_CUDA_LIBRARIES names other folders. Only the comparison with transformers needs
# torch and transformers. Prints a line for each item (pass, FAIL, or not run and why) and a JSON summary as the last line.
#   --binary   the program, or the output of --pack (.xz) [default: target/release/earnest]
#   --real     a real checkpoint whose answers on the GPU are compared with those on the CPU [default: the one inside the program]
#   --out      folder for the results of single commands; if OUT is set, one archive in that folder [default: gpu-acceptance]
#   --work     folder for random checkpoints, 18 GB [default: /dev/shm if it has the room, else a temporary folder]
#   --seconds  time limit: checks that have not started by then are not run [default: 470]
# Exit code: 0 everything passed; 1 something failed; 2 usage; 3 nothing failed, but something was not run; 4 there is no GPU to test.
set -uo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '2,17s/^# \{0,1\}//p' scripts/gpu-acceptance.sh >&2
  exit 2
}
out=gpu-acceptance binary=target/release/earnest real=earnest-abacus-1.4m work= pack= dry= seconds=470
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=yes && shift ;;
    --out | --binary | --real | --work | --seconds | --pack)
      [ $# -gt 1 ] || usage
      case $1 in
        --out) out=$2 ;;
        --binary) binary=$2 ;;
        --real) real=$2 ;;
        --work) work=$2 ;;
        --pack) pack=$2 ;;
        --seconds) seconds=$2 ;;
      esac
      shift 2
      ;;
    *) usage ;;
  esac
done
case $seconds in '' | *[!0-9]*) usage ;; esac
if [ ! -f "$binary" ]; then
  echo "gpu-acceptance: there is no program $binary: build it (cargo build --release --locked) or name it with --binary" >&2
  exit 2
fi
binary=$(cd "$(dirname "$binary")" && pwd)/$(basename "$binary")

if [ -n "$pack" ]; then
  stripped=$(mktemp)
  trap 'rm -f "$stripped"' EXIT
  strip -o "$stripped" "$binary" && xz -T0 -6 -c "$stripped" > "$pack" || exit 1
  echo "$pack: $(($(wc -c < "$pack") / 1000000)) MB; on the other machine: scripts/gpu-acceptance.sh --binary $pack"
  exit 0
fi
if ! command -v python3 > /dev/null; then
  echo "gpu-acceptance: python3 is not there; it reads the commands' results (its standard library is enough)" >&2
  exit 4
fi

# Start of all times, including unpacking.
SECONDS=0
left() { echo $((seconds - SECONDS)); }
# The first folder of a list with so many GB free.
roomy() {
  local gigabytes=$1 folder free
  shift
  for folder in "$@"; do
    free=$(df -Pk "$folder" 2> /dev/null | awk 'NR == 2 {print $4}')
    if [ -d "$folder" ] && [ -w "$folder" ] && [ "${free:-0}" -ge $((gigabytes * 1000000)) ]; then
      echo "$folder"
      return
    fi
  done
  return 1
}
made=
if [ -z "$work" ]; then
  base=$(roomy 20 /dev/shm "${TMPDIR:-/tmp}") || base=${TMPDIR:-/tmp}
  work=$(mktemp -d "$base/earnest-acceptance.XXXXXX") || exit 1
  made=$work
fi
mkdir -p "$work" || exit 1
cleanup() {
  local job
  for job in $(jobs -p); do kill "$job" 2> /dev/null; done
  [ -z "$made" ] || rm -rf "$made"
}
trap cleanup EXIT

# If OUT is set, the results become one archive there: few files may be copied back from the machine.
[ -z "${OUT:-}" ] || out=$work/results
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
case $binary in
  *.xz)
    if command -v xz > /dev/null; then
      xz -dc "$binary" > "$work/earnest"
    else
      python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' "$binary" "$work/earnest"
    fi || exit 1
    binary=$work/earnest
    chmod +x "$binary"
    ;;
esac
export EARNEST_CACHE=$work/cache
golden=tests/golden/engine/checkpoints

# The libraries that PyTorch brings, if the system has none.
if [ -z "${EARNEST_CUDA_LIBRARIES:-}" ]; then
  EARNEST_CUDA_LIBRARIES=$(python3 - << 'PY'
import glob, os, site, sys
folders = []
for base in site.getsitepackages() + [site.getusersitepackages()] + sys.path + glob.glob("/opt/*/.venv/lib/python3*/site-packages"):
    for name in ("libnvrtc.so.1*", "libcublasLt.so.1*"):
        for path in glob.glob(os.path.join(base, "nvidia", "*", "lib", name)):
            folder = os.path.dirname(path)
            if folder not in folders:
                folders.append(folder)
print(":".join(folders))
PY
  )
  export EARNEST_CUDA_LIBRARIES
fi

verdicts=() items=$out/items.tsv
: > "$items"
note() { # name, verdict, detail
  local detail
  detail=$(printf '%s' "$3" | tr '\t\n' '  ' | cut -c1-600)
  verdicts+=("$2")
  printf '%s\t%s\t%s\n' "$1" "$2" "$detail" >> "$items"
  printf '%4d s  %-8s %s: %s\n' "$SECONDS" "$2" "$1" "$detail"
}
# True if at least so many seconds are left; otherwise notes that the check was not run.
time_for() { # name, seconds
  [ "$(left)" -ge "$2" ] && return
  note "$1" "not run" "the $seconds s of this script were over"
  return 1
}
# A command with a limit in seconds, at most what is left; stdout to NAME.json, stderr to NAME.log, its exit status to NAME.status.
run() { # name, limit, command...
  local name=$1 limit=$2 status
  shift 2
  [ "$limit" -le "$(left)" ] || limit=$(left)
  printf '%s ' "$@" > "$out/$name.command"
  timeout -k 5 "$((limit > 0 ? limit : 1))" "$@" > "$out/$name.json" 2> "$out/$name.log"
  status=$?
  echo "$status" > "$out/$name.status"
  return "$status"
}
# True if the end of the script's time stopped a command, not its own limit.
cut_off() {
  case $(cat "$out/$1.status" 2> /dev/null) in 124 | 137) [ "$(left)" -le 1 ] ;; *) false ;; esac
}
# Reason for a command's end: exit code and last lines.
reason() {
  local status
  status=$(cat "$out/$1.status" 2> /dev/null)
  [ "$status" != 124 ] || printf 'stopped at its limit of time; '
  printf 'exit code %s: ' "${status:-none}"
  tail -n 3 "$out/$1.log" 2> /dev/null | tr '\n' ' '
}
# Evaluates a Python expression over a result: d is the document, its fields are attributes.
of() { # name, expression
  python3 -c 'import json, sys, types
d = json.load(open(sys.argv[1]), object_hook=lambda fields: types.SimpleNamespace(**fields))
timed = lambda rows: [r for r in rows if r.fraction is not None]
untimed = lambda rows: "".join(f"; batch {r.batch}: no step was timed" for r in rows if r.fraction is None)
shares = lambda rows: ", ".join(f"{r.batch}: {100 * r.fraction:.0f} %" for r in timed(rows)) + untimed(rows)
def share(rows, batch):
    found = [r.fraction for r in timed(rows) if r.batch == batch]
    return found[0] if found else 0.0
print(eval(sys.argv[2]))' "$out/$1.json" "$2" 2>> "$out/evaluation.log"
}
# A check: passes if the command exits with 0 and the expression on its result is true.
item() { # name, title, least seconds, limit, condition, detail, command...
  local name=$1 title=$2 least=$3 limit=$4 condition=$5 detail=$6
  shift 6
  time_for "$title" "$least" || return
  if run "$name" "$limit" "$@" && [ "$(of "$name" "$condition")" = True ]; then
    note "$title" pass "$(of "$name" "$detail")"
  elif cut_off "$name"; then
    note "$title" "not run" "it was not done when the $seconds s of this script were over"
  else
    note "$title" FAIL "$(of "$name" "$detail") $(reason "$name")"
  fi
}

# The machine.
run doctor 60 "$binary" doctor --json
device=cuda
if [ -n "$dry" ]; then
  device=cpu
elif [ "$(of doctor 'd.cuda.ready')" != True ]; then
  echo "gpu-acceptance: no GPU can be used: $(of doctor '"; ".join(d.cuda.libraries)') $([ -s "$out/doctor.json" ] || reason doctor)" >&2
  echo "gpu-acceptance: --dry-run tries every command on the CPU" >&2
  exit 4
fi
note "doctor" pass "$(of doctor '"; ".join(d.cuda.libraries)')"

# Sizes, and conditions on the results; a dry run only requires that they exist.
random=() decode=(--decode 1,2,4,8,16,32,64,128,256,512) some=(--decode 1,32,256 --prefill 16)
prefill=(--prefill 1,2,4,8,16,32,64,128,256,512 --prefill-length 256)
shared=5100,900,100,120 short=1000,60,20 least=0.5 most_shared=65 most_short=5 questions=64 batch=256 sizes=10
agree=(--prompts 32 --shared 900 --own 100 --new 16) few=(--prompts 8 --shared 300 --own 60 --new 8)
if [ -n "$dry" ]; then
  random=(--tiny) decode=(--decode 1,4 --decode-context 40) some=(--decode 1,3 --decode-context 20 --prefill 2 --prefill-length 64)
  prefill=(--prefill 1,3 --prefill-length 64)
  shared=8,60,10,4 short=6,12,3 least=0 most_shared=1e9 most_short=1e9 questions=6 batch=4 sizes=2
  agree=(--prompts 4 --shared 70 --own 20 --new 4) few=(--prompts 3 --shared 40 --own 10 --new 3)
fi
model=$work/llama-3-8b reduced=$work/reduced make=scripts/acceptance/make_checkpoint.py

# Meanwhile, on the CPU: random checkpoints, and the real model's answers.
roomy 18 "$work" > /dev/null || [ -n "$dry" ]
fits=$?
(
  run make-reduced 60 python3 "$make" "$reduced" $golden/llama --layers 4 --vocab 16384 ${random[@]+"${random[@]}"}
  [ "$fits" != 0 ] || run make 120 python3 "$make" "$model" $golden/llama ${random[@]+"${random[@]}"}
) &
making=$!
answers() { # device, type
  run "real-$1-$2" 150 "$binary" run arithmetic-bench --model "$real" --device "$1" --dtype "$2" --limit "$questions" --max-tokens 24 \
    --results "$work/real-$1-$2" --json
}
(
  answers cpu f32
  answers cpu bf16
) &
answering=$!

# Single kernels, and the reference checkpoints: f32 closely, bf16 within its rounding, both with batch-invariant products too.
if [ -n "$dry" ]; then
  # There is no kernel to run on the CPU: only the command line is tried.
  run kernels 60 "$binary" dev kernels --device cuda --json
  note "kernels" "$([ "$(cat "$out/kernels.status")" = 2 ] && echo FAIL || echo 'not run')" "no GPU in a dry run; $(reason kernels)"
else
  item kernels "kernels" 20 150 'd.passed' \
    'f"{len(d.checks)} checks" + "".join(f"; WRONG: {c.name}: {c.error:.3g}, same bits {c.same_bits}" for c in d.checks if not c.passed)' \
    "$binary" dev kernels --device cuda --json
fi
# Recent architectures may be refused on a GPU; every folder is compared or named.
folders=$(find "$golden" -name golden.json | wc -l)
for kind in "f32 0.001" "bf16 0.2" "f32 0.001 --batch-invariant" "bf16 0.2 --batch-invariant"; do
  read -r type tolerance invariant <<< "$kind"
  item "golden-$type$invariant" "golden $type${invariant:+ $invariant}" 10 90 "d.passed and len(d.results) >= 14 and len(d.results) + len(d.refused) == $folders" \
    'f"{len(d.results)} checkpoints, logits within {max(r.largest_difference for r in d.results):.5f}, largest lead lost {max(r.largest_lost_margin for r in d.results):.4f}" + "".join(f"; not on this device: {r.name}" for r in d.refused)' \
    "$binary" dev golden "$golden" --device $device --dtype "$type" --tolerance "$tolerance" ${invariant:+"$invariant"} --json
done

# A real model: the greedy texts of the CPU, except at small margins. In f32 only the order of sums differs, in bf16 every rounding does.
wait "$answering"
for kind in "f32 8" "bf16 3"; do
  read -r type tenths <<< "$kind"
  time_for "real model in $type" 15 || continue
  if [ -n "$dry" ] || answers cuda "$type"; then
    for where in cpu $device; do
      "$binary" export "$(of "real-$where-$type" d.manifest.run)" --results "$work/real-$where-$type" --format jsonl \
        --output "$out/real-$where-$type.jsonl" > /dev/null 2>> "$out/real-$where-$type.log"
    done
    same=$(python3 - "$out/real-cpu-$type.jsonl" "$out/real-$device-$type.jsonl" << 'PY'
import json, sys
a, b = ({r["item"]: (r["completion"] or {}).get("ids") for r in map(json.loads, open(path))} for path in sys.argv[1:])
print(sum(ids is not None and ids == b.get(item) for item, ids in a.items()), len(a), len(b))
PY
    )
    read -r equal here there <<< "${same:-0 0 0}"
    verdict=FAIL
    [ "$here" -gt 0 ] && [ "$here" = "$there" ] && [ $((10 * equal)) -ge $((here * tenths)) ] && verdict=pass
    note "real model in $type" "$verdict" "$equal of $here greedy texts of $real as on the CPU"
  elif cut_off "real-cuda-$type"; then
    note "real model in $type" "not run" "it was not done when the $seconds s of this script were over"
  else
    note "real model in $type" FAIL "$(reason "real-cuda-$type")"
  fi
done

# The shape of Llama 3 8B with few layers: cublasLt beside our own kernels, a shared prefix read once beside every prompt alone.
wait "$making"
told='f"log-probabilities within {d.result.largest_difference:.5f}, {d.result.tokens} tokens ({d.distinct_tokens} different ones) before the first difference, largest lead lost {d.result.largest_lost_margin:.4f}"'
agreement() { # name, title, limit, reference, tolerance, options...
  local name=$1 title=$2 limit=$3 reference=$4 tolerance=$5
  shift 5
  time_for "$title" 15 || return
  if [ "$(cat "$out/make-reduced.status" 2> /dev/null)" != 0 ]; then
    note "$title" FAIL "no checkpoint: $(reason make-reduced)"
    return
  fi
  # Two engines that only repeat one token agree, and both are wrong; and without cublasLt our own products are compared with themselves.
  local condition='d.passed and d.distinct_tokens > 3'
  case $name$device in *library*cuda | agree-q*cuda) condition="$condition and d.engine.options.products == 'cublasLt'" ;; esac
  item "$name" "$title" 15 "$limit" "$condition" "$told" \
    "$binary" dev agreement --model "$reduced" --device $device --reference "$reference" --tolerance "$tolerance" "$@" --json
}
agreement agree-library "cublasLt and our own products agree" 60 batch-invariant 0.15 "${agree[@]}"
agreement agree-cache "with and without the prefix cache the same bits" 60 no-prefix-cache 0 --batch-invariant "${agree[@]}"
agreement agree-cache-library "the prefix cache with cublasLt" 60 no-prefix-cache 0.15 "${agree[@]}"
agreement agree-cpu "the CPU and the GPU agree" 60 cpu 0.15 "${few[@]}"

# Speed of the full shape.
measure() { # name, title, least seconds, limit, condition, detail, options...
  local name=$1 title=$2 least=$3 limit=$4 condition=$5 detail=$6
  shift 6
  if [ "$(cat "$out/make.status" 2> /dev/null)" = 0 ]; then
    item "$name" "$title" "$least" "$limit" "$condition" "$detail" "$binary" dev device --model "$model" --device $device "$@" --json
  else
    note "$title" "not run" "no checkpoint of 16 GB in $work: $(reason make)"
  fi
}
none=(--decode "" --prefill "")
measure shared "5,100 prompts" 30 130 "d.shared.seconds <= $most_shared" 'f"{d.shared.seconds:.1f} s (at most 65; 40 is the stretch; the roofline is 24), {d.shared.prefilled_tokens} prompt tokens computed, {d.shared.preemptions} set back; {d.engine.devices[0]}"' \
  "${none[@]}" --shared $shared
measure decode "decoding" 30 90 "share(d.decode, $batch) >= $least and len(timed(d.decode)) == $sizes" 'shares(d.decode) + " of the roofline"' \
  --prefill "" "${decode[@]}"
measure prefill "prefill" 30 90 "share(d.prefill, $batch if $batch > 4 else 3) >= $least and len(timed(d.prefill)) == $sizes" 'shares(d.prefill) + " of the roofline"' \
  --decode "" "${prefill[@]}"
measure short "1,000 short prompts" 15 60 "d.short.seconds <= $most_short" 'f"{d.short.seconds:.2f} s (at most 5)"' "${none[@]}" --short $short

# Memory errors.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer 2> /dev/null | head -1)
memcheck() { # name, title, options...
  local name=$1 title=$2 checked
  shift 2
  checked=("$binary" dev golden $golden/gemma2 --device $device --dtype bf16 --tolerance 0.2 "$@")
  if [ -n "$dry" ]; then
    if run "$name" 60 "${checked[@]}"; then note "$title" "not run" "a dry run has nothing to check"; else note "$title" FAIL "$(reason "$name")"; fi
    return
  fi
  if [ -z "$sanitizer" ]; then
    note "$title" "not run" "compute-sanitizer is not there"
    return
  fi
  time_for "$title" 20 || return
  run "$name" 75 "$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 9 "${checked[@]}"
  if grep -q -i -E 'device not supported|failed to initialize|unable to (load|find)' "$out/$name.json" "$out/$name.log"; then
    note "$title" "not run" "compute-sanitizer does not work on this machine: $(grep -h -m 1 -i -E 'not supported|failed to initialize|unable to' "$out/$name.json" "$out/$name.log")"
  elif [ "$(cat "$out/$name.status")" = 0 ] && grep -q 'ERROR SUMMARY: 0 errors' "$out/$name.json" "$out/$name.log"; then
    note "$title" pass "no errors"
  elif [ "$(cat "$out/$name.status")" = 124 ]; then
    note "$title" "not run" "not done in its time"
  else
    note "$title" FAIL "$(grep -h -m 3 -E 'Invalid|Error|ERROR SUMMARY' "$out/$name.json" "$out/$name.log" | tr '\n' ' ') $(reason "$name")"
  fi
}
memcheck memcheck-invariant "memcheck with our own products" --batch-invariant

# Cost of batch invariance and effect of quantisation on speed; transformers on the same machine.
step='", ".join(f"{r.batch}: {1e3 * r.step_s:.1f} ms" for r in timed(d.decode)) + untimed(d.decode) + f"; prefill {d.prefill[0].tokens_per_s:.0f} tokens/s; {d.engine.weight_bytes / 1e9:.1f} GB as {d.engine.weights_dtype}; loaded in {d.load_s:.0f} s"'
there='len(timed(d.decode)) == len(d.decode) > 0 and len(timed(d.prefill)) == 1'
measure invariant "speed with --batch-invariant" 20 60 "$there and (d.options.batch_invariant if hasattr(d.options, 'batch_invariant') else '$device' == 'cpu')" "$step" \
  --batch-invariant "${some[@]}"
measure q8_0 "speed in q8_0" 25 70 "$there and ('q8_0' in d.engine.weights_dtype or '$device' == 'cpu')" "$step" --quant q8_0 "${some[@]}"
title="transformers on the same prompts"
if [ -n "$dry" ] || ! python3 -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("torch") and u.find_spec("transformers")))'; then
  note "$title" "not run" "python3 has no torch and transformers, or this is a dry run"
elif [ "$(cat "$out/make.status" 2> /dev/null)" != 0 ]; then
  note "$title" "not run" "no checkpoint"
elif time_for "$title" 30; then
  if run transformers 80 python3 scripts/acceptance/transformers_run.py "$model" 64 32; then
    note "$title" pass "$(of transformers 'f"{d.for_5100_s:.0f} s for 5,100 prompts, from {d.prompts} at batch {d.batch}"')"
  else
    note "$title" "not run" "$(reason transformers)"
  fi
fi
measure q4k "speed in q4k" 30 110 "$there and ('q4k' in d.engine.weights_dtype or '$device' == 'cpu')" "$step" --quant q4k "${some[@]}"
for quant in q8_0 q4k q6k; do
  agreement "agree-$quant" "cublasLt on expanded weights and our own products agree in $quant" 60 batch-invariant 0.15 --quant "$quant" "${few[@]}"
done
memcheck memcheck-library "memcheck with cublasLt"

failed=0 skipped=0
for verdict in "${verdicts[@]}"; do
  case $verdict in FAIL) failed=$((failed + 1)) ;; "not run") skipped=$((skipped + 1)) ;; esac
done
python3 - "$items" "$SECONDS" << 'PY' | tee "$out/summary.json"
import json, sys
rows = [dict(zip(("item", "verdict", "detail"), line.rstrip("\n").split("\t"))) for line in open(sys.argv[1])]
print(json.dumps({"seconds": int(sys.argv[2]), "items": rows}))
PY
if [ -n "${OUT:-}" ]; then
  cp "$out/summary.json" "$OUT/summary.json"
  tar -C "$out" -czf "$OUT/gpu-acceptance.tar.gz" .
fi
[ "$failed" = 0 ] || exit 1
[ "$skipped" = 0 ] || exit 3
