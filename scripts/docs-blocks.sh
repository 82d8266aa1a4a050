#!/usr/bin/env bash
# Writes the blocks of a page that are a program's output: every text block below a line `<!-- earnest ARGUMENTS -->`.
#
#   scripts/docs-blocks.sh docs/profile.md
set -euo pipefail
cd "$(dirname "$0")/.."
page=${1:?name the page, e.g. docs/profile.md}
export COLUMNS=100 EARNEST_PROGRAM=${EARNEST_PROGRAM:-target/release/earnest}
written=$(mktemp)
trap 'rm -f "$written"' EXIT
awk '
    /^<!-- earnest .* -->$/ { print; line = $0; sub(/^<!-- earnest /, "", line); sub(/ -->$/, "", line); command = line; next }
    command != "" && /^```text$/ {
        print
        output = ENVIRON["EARNEST_PROGRAM"] " " command " 2> /dev/null"
        count = 0
        while ((output | getline line) > 0) { print line; count++ }
        if (close(output) != 0 || count == 0) { print "earnest " command " failed" > "/dev/stderr"; exit 1 }
        command = ""
        inside = 1
        next
    }
    inside && /^```$/ { inside = 0 }
    !inside { print }
' "$page" > "$written"
cat "$written" > "$page"
