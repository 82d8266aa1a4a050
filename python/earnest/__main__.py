"""``python -m earnest`` is the program."""

import os
import subprocess
import sys

from ._program import program
from .errors import EarnestError

try:
    command = [program(), *sys.argv[1:]]
except EarnestError as error:
    sys.exit(f"error: {error}")
if os.name == "posix":
    os.execv(command[0], command)
sys.exit(subprocess.call(command))
