#!/usr/bin/env bash
# The program without its cargo features, and with each of them alone: all compile without warnings; one without any is built and says of every
# command that was left out which feature has it.
#
#   scripts/features.sh            what CI runs
#   scripts/features.sh --measure  sizes and packages of the usual program and of smaller ones, built in an empty folder: half an hour
set -euo pipefail
cd "$(dirname "$0")/.."

features=(figures python serve train view)
target=${CARGO_TARGET_DIR:-target}

# Packages that a build of these features compiles on this machine.
packages() {
  cargo tree --locked -p earnest -e normal,build --prefix none --no-dedupe --no-default-features --features "$1" \
    | awk '{ print $1, $2 }' | sort -u | wc -l
}

if [ "${1:-}" = --measure ]; then
  all=$(IFS=,; echo "${features[*]}")
  printf '%-36s %9s %12s %8s %9s\n' features packages 'bytes, stripped' minutes 'CPU min.'
  for set in "$all" serve,view ''; do
    folder=$(mktemp -d)
    TIMEFORMAT='%R %U %S'
    { time cargo build --release --locked --quiet -p earnest --no-default-features --features "$set" --target-dir "$folder" 2> "$folder/err"; } 2> "$folder/times" || {
      echo "${set:-none}: not built" >&2
      cat "$folder/err" >&2
      exit 1
    }
    read -r wall user system < "$folder/times"
    strip -o "$folder/stripped" "$folder/release/earnest"
    printf '%-36s %9s %12s %8.1f %9.1f\n' "${set:-none}" "$(packages "$set")" "$(stat -c %s "$folder/stripped")" \
      "$(echo "$wall / 60" | bc -l)" "$(echo "($user + $system) / 60" | bc -l)"
    rm -rf "$folder"
  done
  exit 0
fi

for set in '' "${features[@]}"; do
  echo "features: ${set:-none}"
  cargo clippy --locked --release --quiet -p earnest --no-default-features --features "$set" -- -D warnings
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Unoptimised and in a folder of its own: what it says does not depend on that, and it is built in a third of the time. `--measure` builds it as users do.
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
cargo build --locked --quiet -p earnest --no-default-features --target-dir "$target/features"
cp "$target/features/debug/earnest" "$folder/earnest"

# Tests of what a crate without its feature says.
tests=$(cargo test --locked --quiet -p earnest-report --no-default-features --lib --target-dir "$target/features" a_format_that_is_not_built)
echo "$tests"
grep -q '1 passed' <<< "$tests"

failed=0
# Arguments of the program, and words that its error must have; it exits with 2.
refused() {
  local words=$1 code=0
  shift
  "$folder/earnest" "$@" > "$folder/out" 2> "$folder/err" < /dev/null || code=$?
  if [ "$code" -ne 2 ] || ! grep -qF -- "$words" "$folder/err"; then
    echo "earnest $*: exit code $code, and \"$words\" is expected in:"
    cat "$folder/out" "$folder/err"
    failed=1
  fi
}

for command in serve train view; do
  refused "the feature \`$command\`" "$command"
  refused "the feature \`$command\`" "$command" --help
  refused "the feature \`$command\`" help "$command" something
  refused "the feature \`$command\`" "$command" number-model --out there --port 1
done
refused 'the feature `figures`' report --figures "$folder" --figure-format pdf
refused 'SVG needs no feature' report one --figures "$folder" --figure-format png
refused 'the feature `figures`' compare one other --figure plot.png
refused 'the feature `train`' reproduce nupa --section 3
refused 'the feature `train`' reproduce dnc --experiment there
# Programs that a model writes need an interpreter; everything else needs none.
printf '%s\n' '{"question": "Write a Python function solution() that returns 2 * 21.", "answer": 42}' > "$folder/questions.jsonl"
printf '%s\n' 'name = "functions"' 'scorers = ["python"]' '[questions]' 'path = "questions.jsonl"' > "$folder/functions.toml"
results=(--results "$folder/results")
refused 'its feature `python`' run "$folder/functions.toml" --max-tokens 4 "${results[@]}"
# A CPython of the machine runs those of a suite; a stored run does not start it by itself.
cpython=$(command -v python3)
"$folder/earnest" run gsm-mini --prompt simple-code --python "$cpython" --limit 1 --max-tokens 4 --quiet --unconfined "${results[@]}" > "$folder/out"
"$folder/earnest" runs verify --allow-python "$cpython" --unconfined "${results[@]}" > "$folder/out" 2> "$folder/err"
if grep -q 'not scored again' "$folder/out" || ! "$folder/earnest" runs verify "${results[@]}" > "$folder/out" 2> "$folder/err" || ! grep -q 'not scored again' "$folder/out"; then
  echo "earnest runs verify with and without an interpreter:"
  cat "$folder/out" "$folder/err"
  failed=1
fi
"$folder/earnest" run arithmetic-bench --limit 2 --max-tokens 4 --quiet "${results[@]}" > "$folder/out"
grep -q 'built without *figures, python, serve, train, view' <("$folder/earnest" doctor "${results[@]}") || {
  echo "earnest doctor does not say what was left out"
  failed=1
}
[ "$failed" = 0 ] && echo "a program without features: $(packages '') packages"
exit "$failed"
