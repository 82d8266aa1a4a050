#!/usr/bin/env bash
# Tries `earnest view` in headless Chromium with clicks and keys: leaderboard, a run, samples, a comparison, copying, what a phone
# shows; then thinking that is folded, a sample token by token, continuations tinted by their log-likelihood, and a run while it works;
# at last the pages of a numeracy profile and of two.
#
#   scripts/view-browser.sh [--program PATH] [--node DIR] [--shots DIR]
#
#   --program   the program (default: target/release/earnest)
#   --node      where to install the browser; kept for the next time (default: a cache folder)
#   --shots     keeps screenshots of every page there
#
# Needs node and the npm registry, once; exit code 77 if there is none.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "error: $1" >&2; exit "${2:-1}"; }

here=$(cd "$(dirname "$0")" && pwd)
program=${CARGO_TARGET_DIR:-$here/../target}/release/earnest
node=${XDG_CACHE_HOME:-$HOME/.cache}/earnest-browser
shots=
while [ $# -gt 0 ]; do
  case $1 in
    --program) [ $# -ge 2 ] || fail "--program needs a path" 2; program=$2; shift ;;
    --node) [ $# -ge 2 ] || fail "--node needs a folder" 2; node=$2; shift ;;
    --shots) [ $# -ge 2 ] || fail "--shots needs a folder" 2; shots=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail "unknown argument $1" 2 ;;
  esac
  shift
done
[ -x "$program" ] || fail "there is no program $program: cargo build --release, or name one with --program"
program=$(realpath "$program")

skip() { echo "skipped: $1" >&2; exit 77; }
command -v npm > /dev/null || skip "there is no npm"
if [ ! -d "$node/node_modules/@sparticuz/chromium" ] || [ ! -d "$node/node_modules/puppeteer-core" ]; then
  mkdir -p "$node"
  timeout 600 npm install --prefix "$node" --silent --no-audit --no-fund @sparticuz/chromium@147.0.0 puppeteer-core@24.43 ||
    skip "the browser cannot be installed; is the npm registry reachable?"
fi

work=$(mktemp -d)
viewer=
others=
working=
cleanup() {
  for one in $viewer $others $working; do kill "$one" 2> /dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
small=(--tasks add_Integer,max_Integer,length_Integer,add_Float --lengths 1-6 --per-length 4 --max-tokens 40 --quiet)
"$program" run nupa "${small[@]}" > /dev/null
"$program" run nupa "${small[@]}" --dtype f32 > /dev/null
"$program" run nupa "${small[@]}" --temperature 1.5 > /dev/null
# Runs of other kinds have a folder of their own: the leaderboard of the first is counted.
cat > capitals.jsonl << 'END'
{"question": "The capital of France is", "choices": ["Paris", "Rome", "Oslo"], "answer": 0}
{"question": "The capital of Italy is", "choices": ["Paris", "Rome", "Oslo"], "answer": 1}
END
cat > capitals.toml << 'END'
name = "capitals"
scorers = ["likelihood"]
[questions]
path = "capitals.jsonl"
choices = "choices"
gold = "index"
[prompt]
mode = "raw"
END
echo '{"a": "3", "b": "4", "task": "add_Integer", "completion": "<think>three and four make seven</think> The answer is 7."}' > thought.jsonl
"$program" run capitals.toml --results other --quiet > /dev/null
"$program" import nupa --completions thought.jsonl --name thinker --results other > /dev/null
# Long enough to be seen at work.
"$program" run gsm-mini --limit 400 --results other --quiet > /dev/null 2>&1 &
working=$!
address_of() { # FILE: the address that a viewer wrote
  for _ in $(seq 100); do [ -s "$1" ] && break; sleep 0.1; done
  sed -n 's/^listening on //p' "$1"
}
"$program" view > address &
viewer=$!
"$program" view --results other > address-other &
others=$!
address=$(address_of address)
other=$(address_of address-other)
[ -n "$address" ] && [ -n "$other" ] || fail "a viewer did not start"
[ -z "$shots" ] || mkdir -p "$shots"
cp "$here/view_browser.mjs" "$node/view_browser.mjs"
failed=0
node "$node/view_browser.mjs" "$address" "$other" "$shots" || failed=1
for seed in 1 2; do
  "$program" profile --budget 12 --seed "$seed" --results profiles -o "profile-$seed.html" --quiet > "profile-$seed.txt"
done
"$program" runs list --results profiles --json > profiles.json
mapfile -t profiles < <(sed -n 's/.*"run": *"\(profile-[^"]*\)".*/\1/p' profiles.json | sort -u)
"$program" profile --compare "${profiles[0]}" "${profiles[1]}" --results profiles -o both.html --quiet > /dev/null
for one in profile-1 both; do
  EARNEST_BROWSER=$node node "$here/../tests/browser/profile.mjs" "$one.html" ${shots:+"$shots/$one"} || failed=1
done
exit $failed
