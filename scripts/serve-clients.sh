#!/usr/bin/env bash
# Tries `earnest serve` with the clients that people use: OpenAI's Python client, lm-evaluation-harness and Inspect.
#
#   scripts/serve-clients.sh [--program PATH] [--venv DIR] [CLIENT ...]
#
#   --program   the program to serve with (default: target/release/earnest)
#   --venv      where to install the clients; kept for the next time (default: a cache folder)
#   CLIENT      openai, lm-eval, inspect (default: all)
#
# The server has the embedded model with a small chat template. Needs python3 and the Python index, once; exit code 77 if the index cannot be reached.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "error: $1" >&2; exit "${2:-1}"; }

here=$(cd "$(dirname "$0")" && pwd)
program=${CARGO_TARGET_DIR:-$here/../target}/release/earnest
venv=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-clients
clients=()
while [ $# -gt 0 ]; do
  case $1 in
    --program) [ $# -ge 2 ] || fail "--program needs a path" 2; program=$2; shift ;;
    --venv) [ $# -ge 2 ] || fail "--venv needs a folder" 2; venv=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    openai | lm-eval | inspect) clients+=("$1") ;;
    *) usage >&2; fail "unknown argument $1" 2 ;;
  esac
  shift
done
[ ${#clients[@]} -gt 0 ] || clients=(openai lm-eval inspect)
[ -x "$program" ] || fail "there is no program $program: cargo build --release, or name one with --program"

packages=()
for client in "${clients[@]}"; do
  case $client in
    openai) packages+=(openai) ;;
    # Its client for completions counts tokens with a tokenizer of transformers.
    lm-eval) packages+=("lm-eval[api]" transformers) ;;
    inspect) packages+=(inspect-ai openai) ;;
  esac
done
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if ! "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"; then
  echo "skipped: the clients cannot be installed; is the Python index reachable?" >&2
  exit 77
fi

work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
model=$work/abacus
cp -r "$here/../embedded/earnest-abacus-1.4m" "$model"
printf '%s' '{% for message in messages %}{{ message.content }}{% endfor %}' > "$model/chat_template.jinja"

: > "$work/address" # read before the server may have opened it
EARNEST_SERVE_KEY=sesame-sesame "$program" serve --model "$model" --port 0 --quiet > "$work/address" &
server=$!
for _ in $(seq 100); do
  address=$(sed -n 's/^listening on //p' "$work/address")
  [ -z "$address" ] || break
  kill -0 "$server" 2> /dev/null || fail "the server ended"
  sleep 0.1
done
[ -n "$address" ] || fail "the server did not say where it listens"
"$venv/bin/python" "$here/serve_clients.py" "$address" sesame-sesame "$model" "${clients[@]}"
