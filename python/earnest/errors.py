"""Errors of the program, with its exit codes."""

from __future__ import annotations

import re
from typing import Dict, Optional, Sequence, Tuple, Type


class EarnestError(RuntimeError):
    """Failure of the program.

    ``str(error)`` is what the program said, help included. ``code`` is its exit code: each code that the program documents has a
    class of its own, an undocumented one has this. It is negative for a process that a signal ended.
    """

    code: int
    #: The error without the help.
    message: str
    #: The next step, if the program named one.
    help: Optional[str]
    #: The command line that failed.
    command: Sequence[str]

    def __init__(self, code: int, message: str, help: Optional[str] = None, command: Sequence[str] = ()) -> None:
        super().__init__(message if help is None else f"{message}\nhelp: {help}")
        self.code = code
        self.message = message
        self.help = help
        self.command = tuple(command)

    def __reduce__(self) -> Tuple[Type[EarnestError], Tuple[int, str, Optional[str], Sequence[str]]]:
        return type(self), (self.code, self.message, self.help, self.command)


class ProgramNotFound(EarnestError):
    """No program ``earnest`` on this machine, or one that does not fit this package."""


class UsageError(EarnestError):
    """Invalid arguments: an unknown option, suite, task, item or run (exit code 2)."""


class ModelError(EarnestError):
    """A checkpoint that cannot be used (exit code 3)."""


class ResultsError(EarnestError):
    """Results that cannot be read or written: a full disk, permissions, a locked, damaged or edited run (exit code 4)."""


class EngineError(EarnestError):
    """An engine that failed, or model-written Python that cannot be confined here (exit code 5)."""


class TooManyFailures(EarnestError):
    """More failed samples than ``fail_on_error`` allows; the same call continues after them (exit code 6)."""


class Interrupted(EarnestError):
    """A run that was stopped from outside; the same call continues it (exit code 130)."""


CLASSES: Dict[int, Type[EarnestError]] = {
    2: UsageError,
    3: ModelError,
    4: ResultsError,
    5: EngineError,
    6: TooManyFailures,
    130: Interrupted,
}


def of_process(code: int, stderr: str, command: Sequence[str]) -> EarnestError:
    """Makes the error of a process from its exit code and what it wrote to standard error."""
    lines = stderr.splitlines()
    begin = max((at for at, line in enumerate(lines) if line.startswith("error: ")), default=None)
    if begin is None:
        said = stderr.strip() or "it said nothing"
        how = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
        return CLASSES.get(code, EarnestError)(code, f"earnest {how}: {said}", None, command)
    lines = lines[begin:]
    lines[0] = lines[0][len("error: ") :]
    helps = [line[len("help: ") :] for line in lines if line.startswith("help: ")]
    message = "\n".join(line for line in lines if not line.startswith("help: ")).strip()
    unknown = re.match(r"unexpected argument '--([\w-]+)' found", message)
    if unknown:
        # In the words of the call, not of a command line.
        near = re.search(r"similar argument exists: '--([\w-]+)'", message)
        message = f"there is no option {unknown[1].replace('-', '_')}"
        helps = [f"did you mean {near[1].replace('-', '_')}?"] if near else []
    return CLASSES.get(code, EarnestError)(code, message, "\n".join(helps) or None, command)
