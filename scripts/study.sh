#!/usr/bin/env bash
# Runs the study of docs/study.md: two small models on GSM-Symbolic (five prompts), the NUPA Test, Arithmetic-Bench and DNC, and writes
# the outcomes of every finished run as Parquet. The same command goes on where it stopped.
#
#   scripts/study.sh --questions FILE --dnc DIR [--models DIR] [--program PATH] [--results DIR] [--out DIR] [--limit N]
#
#   --questions  GSM-Symbolic questions: a file or folder as `earnest run gsm-symbolic --data` takes them. Those of the page are drawn by
#                `earnest generate gsm-symbolic --templates ml-gsm-symbolic/templates/symbolic -o fresh.jsonl`
#   --dnc        folder with asdiv-a.train.jsonl, asdiv-a.valid.jsonl and asdiv-a.test.jsonl
#   --models     folder with SmolLM2-135M-Instruct.Q4_1.gguf and gemma-3-270m-q4_k_m.gguf (default: ~/.cache/earnest-models)
#   --program    the program (default: target/release/earnest)
#   --results    results folder (default: study-results)
#   --out        folder of the outcome files (default: study-outcomes)
#   --limit      only the first N items of every run, to try the whole in minutes (default: all)
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "error: $1" >&2; exit "${2:-1}"; }

program=${CARGO_TARGET_DIR:-target}/release/earnest
models=$HOME/.cache/earnest-models
results=study-results
out=study-outcomes
questions=
dnc=
limit=
while [ $# -gt 0 ]; do
  case $1 in
    --questions | --dnc | --models | --program | --results | --out | --limit)
      [ $# -ge 2 ] || fail "$1 needs a value" 2
      declare "${1#--}=$2"
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail "unknown argument $1" 2 ;;
  esac
  shift
done
[ -n "$questions" ] && [ -n "$dnc" ] || { usage >&2; fail "--questions and --dnc are needed" 2; }
[ -x "$program" ] || fail "there is no program $program: cargo build --release, or name one with --program"

failed=0
# Runs SUITE with OPTIONS for each model; a run that fails does not keep the others from theirs.
ask() {
  for file in SmolLM2-135M-Instruct.Q4_1.gguf gemma-3-270m-q4_k_m.gguf; do
    "$program" run "$@" ${limit:+--limit "$limit"} --model "$models/$file" --compute int8 --results "$results" --quiet > /dev/null || { failed=1; echo "not finished: $file on $*" >&2; }
  done
}

for prompt in gsm simple-nl structured-nl simple-code structured-code; do
  ask gsm-symbolic --data "$questions" --instances 10 --prompt "$prompt" --profile study --eos tokenizer --max-tokens 384
done
ask nupa --prompt raw --shots 3 --lengths 1-10 --per-length 4
ask arithmetic-bench --prompt raw --lengths 1-10
ask dnc --data "$dnc" --prompt raw,answer --demonstrations 4 --splits valid,test --kinds language,type,noise,distribution,verbosity,extra

mkdir -p "$out"
"$program" runs list --results "$results" --json | grep -oE '"run": ?"[^"]+"' | sed 's/.*"\([^"]*\)"$/\1/' | while read -r run; do
  "$program" export "$run" --results "$results" --format parquet --outcomes -o "$out/$run.parquet" || true
done
exit "$failed"
