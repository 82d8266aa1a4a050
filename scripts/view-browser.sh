#!/usr/bin/env bash
# Tries `earnest view` in headless Chromium with clicks and keys: leaderboard, a run, samples, a comparison, copying, what a phone shows.
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
cleanup() {
  [ -z "$viewer" ] || kill "$viewer" 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
small=(--tasks add_Integer,max_Integer,length_Integer,add_Float --lengths 1-6 --per-length 4 --max-tokens 40 --quiet)
"$program" run nupa "${small[@]}" > /dev/null
"$program" run nupa "${small[@]}" --dtype f32 > /dev/null
"$program" run nupa "${small[@]}" --temperature 1.5 > /dev/null
"$program" view > address &
viewer=$!
for _ in $(seq 100); do [ -s address ] && break; sleep 0.1; done
address=$(sed -n 's/^listening on //p' address)
[ -n "$address" ] || fail "the viewer did not start"
[ -z "$shots" ] || mkdir -p "$shots"
cp "$here/view_browser.mjs" "$node/view_browser.mjs"
node "$node/view_browser.mjs" "$address" "$shots"
