#!/usr/bin/env bash
# Runs the study of docs/study.md: two small models on GSM-Symbolic (five prompts), the NUPA Test, Arithmetic-Bench and DNC, and writes
# the outcomes of every finished run as Parquet. The same command goes on where it stopped.
#
#   scripts/study.sh [--questions FILE] [--dnc DIR] [--models DIR] [--only PARTS] [--prompts LIST] [--program PATH] [--results DIR]
#                    [--out DIR] [--limit N] [--plan]
#
#   --questions  GSM-Symbolic questions: a file or folder as `earnest run gsm-symbolic --data` takes them. Those of the page are drawn by
#                `earnest generate gsm-symbolic --templates ml-gsm-symbolic/templates/symbolic -o fresh.jsonl`
#                (github.com/apple/ml-gsm-symbolic); needed for the part gsm
#   --dnc        folder with asdiv-a.train.jsonl, asdiv-a.valid.jsonl and asdiv-a.test.jsonl (`earnest run dnc --help` describes the
#                fields); needed for the part dnc
#   --models     folder with SmolLM2-135M-Instruct.Q4_1.gguf and gemma-3-270m-q4_k_m.gguf (default: ~/.cache/earnest-models;
#                `scripts/fetch-models.sh --to ~/.cache/earnest-models all` brings them)
#   --only       parts, separated by commas: gsm, nupa, arithmetic-bench, dnc (default: all)
#   --prompts    prompts of gsm, separated by commas (default: gsm,simple-nl,structured-nl,simple-code,structured-code)
#   --program    the program (default: target/release/earnest)
#   --results    results folder (default: study-results)
#   --out        folder of the outcome files (default: study-outcomes)
#   --limit      only the first N items of every run, to try the whole in minutes (default: all)
#   --plan       print the commands and stop
#
# Minutes on two cores (AMD EPYC, a virtual machine that did other work too), as the committed runs took them:
#
#                                   SmolLM2-135M   Gemma 3 270M
#   gsm, prompt gsm                          9              8
#   gsm, prompt simple-nl                    9             13
#   gsm, prompt structured-nl                3              3
#   gsm, prompt simple-code                  4             26
#   gsm, prompt structured-code             32              9
#   nupa                                    12             39
#   arithmetic-bench                         6             11
#   dnc                                      2              2
#
# Just over three hours. On two idle cores most prompts take about three minutes a model.
#
# Exit code: 0 if every run is finished and written, 1 if one is not (it is named; the same command goes on), 2 for a wrong command.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "error: $1" >&2; exit "${2:-1}"; }

program=${CARGO_TARGET_DIR:-target}/release/earnest
models=$HOME/.cache/earnest-models
results=study-results
out=study-outcomes
only=gsm,nupa,arithmetic-bench,dnc
prompts=gsm,simple-nl,structured-nl,simple-code,structured-code
questions=
dnc=
limit=
plan=
while [ $# -gt 0 ]; do
  case $1 in
    --questions | --dnc | --models | --only | --prompts | --program | --results | --out | --limit)
      [ $# -ge 2 ] || fail "$1 needs a value" 2
      declare "${1#--}=$2"
      shift ;;
    --plan) plan=yes ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown argument $1; scripts/study.sh --help lists them" 2 ;;
  esac
  shift
done
has() { case ,$only, in *",$1,"*) true ;; *) false ;; esac; }
for part in ${only//,/ }; do
  case $part in gsm | nupa | arithmetic-bench | dnc) ;; *) fail "--only $part is none of gsm, nupa, arithmetic-bench, dnc" 2 ;; esac
done
files=(SmolLM2-135M-Instruct.Q4_1.gguf gemma-3-270m-q4_k_m.gguf)
if has gsm && [ -z "$questions" ]; then fail "the part gsm needs --questions FILE; --only nupa,arithmetic-bench asks what needs no file" 2; fi
if has dnc && [ -z "$dnc" ]; then fail "the part dnc needs --dnc DIR; --only leaves parts out" 2; fi
if [ -z "$plan" ]; then
  [ -x "$program" ] || fail "there is no program $program: cargo build --release, or name one with --program" 2
  for file in "${files[@]}"; do
    [ -f "$models/$file" ] || fail "there is no $models/$file: scripts/fetch-models.sh --to $models all brings it, or name a folder with --models" 2
  done
  if has gsm && [ ! -e "$questions" ]; then fail "--questions $questions: there is no such file" 2; fi
  if has dnc && [ ! -f "$dnc/asdiv-a.test.jsonl" ]; then fail "--dnc $dnc: there is no asdiv-a.test.jsonl" 2; fi
fi

failed=0
# Runs SUITE with OPTIONS for each model; a run that fails does not keep the others from theirs.
ask() {
  for file in "${files[@]}"; do
    command=("$program" run "$@" ${limit:+--limit "$limit"} --model "$models/$file" --compute int8 --results "$results" --quiet)
    if [ -n "$plan" ]; then
      printf '%q ' "${command[@]}"; echo
    else
      echo "$(date +%H:%M) $file: $*" >&2
      "${command[@]}" > /dev/null || { failed=1; echo "not finished: $file on $*" >&2; }
    fi
  done
}

if has gsm; then
  for prompt in ${prompts//,/ }; do
    ask gsm-symbolic --data "$questions" --instances 10 --prompt "$prompt" --scorer study --eos tokenizer --max-tokens 384
  done
fi
if has nupa; then ask nupa --prompt raw --shots 3 --lengths 1-10 --per-length 4; fi
if has arithmetic-bench; then ask arithmetic-bench --prompt raw --lengths 1-10 --max-tokens 256; fi
if has dnc; then ask dnc --data "$dnc" --prompt raw,answer --demonstrations 4 --splits valid,test --kinds language,type,noise,distribution,verbosity,extra; fi
[ -z "$plan" ] || exit 0

mkdir -p "$out"
"$program" runs list --results "$results" --json | sed -n 's/^ *"\(run\|status\)": "\(.*\)",*$/\1 \2/p' > "$out/.runs"
run=
while read -r key value; do
  case $key in
    run) run=$value ;;
    status)
      [ "$value" = finished ] || { echo "not written, because it is $value: $run" >&2; continue; }
      "$program" export "$run" --results "$results" --format parquet --outcomes -o "$out/$run.parquet" || { failed=1; echo "not written: $run" >&2; }
      ;;
  esac
done < "$out/.runs"
rm "$out/.runs"
[ "$failed" = 0 ] || echo "error: something is not finished; the same command goes on" >&2
exit "$failed"
