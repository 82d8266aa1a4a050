#!/usr/bin/env bash
# Checks and measures the engine on this machine's GPU, in the order in which a short time teaches most. Needs the driver, bash and python3.
#   run.sh [--second] [--seconds N] [--only TEXT] [--out DIR] [--program FILE] [--dry-run]
# steps.py has the steps; results are written as they come.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/steps.py" "$@"
