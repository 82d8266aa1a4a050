"""The program: where it is, its command lines, its processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Union

from .errors import ProgramNotFound, UsageError, of_process

#: Value of an option. ``True`` gives the option alone; ``False`` and ``None`` leave it out; a list is joined with commas, a mapping as
#: ``NAME=VALUE`` with commas.
Option = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Union[int, float, str]], Mapping[str, object]]


class Output(NamedTuple):
    """What a finished process left."""

    code: int
    stdout: str


def program() -> str:
    """Finds the program: ``EARNEST_PROGRAM``, the folder of scripts that the wheel was installed to, then ``PATH``.

    Raises ProgramNotFound.
    """
    named = os.environ.get("EARNEST_PROGRAM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProgramNotFound(-1, f"EARNEST_PROGRAM names {named}, which is no program", "name the program earnest, or unset it")
        return found
    name = "earnest.exe" if os.name == "nt" else "earnest"
    package = Path(__file__).resolve().parent
    folders = [
        Path(sysconfig.get_path("scripts")),
        # `pip install --user`
        Path(sysconfig.get_path("scripts", scheme="nt_user" if os.name == "nt" else "posix_user")),
        # `pip install --target`
        package.parent / "bin",
    ]
    for folder in folders:
        if os.access(folder / name, os.X_OK) and (folder / name).is_file():
            return str(folder / name)
    found = shutil.which(name)
    if found is None:
        places = ", ".join(str(folder) for folder in folders)
        raise ProgramNotFound(
            -1, f"there is no program earnest in {places} or PATH", "install the wheel, or name the program in EARNEST_PROGRAM"
        )
    return found


def operand(what: str, value: Union[str, "os.PathLike[str]"]) -> str:
    """Checks an argument that is no option, so that it cannot be read as one."""
    text = os.fspath(value)
    if not text or text.startswith("-"):
        raise UsageError(2, f"{text!r} is no {what}", "a path that begins with '-' can be written as ./-...")
    return text


def arguments(options: Mapping[str, Option]) -> List[str]:
    """Writes options as a command line: ``max_tokens=8`` as ``--max-tokens=8``; a trailing ``_`` avoids Python's keywords (``from_``)."""
    written = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            written.append(option)
        elif isinstance(value, (str, os.PathLike)):
            written.append(f"{option}={os.fspath(value)}")
        elif isinstance(value, Mapping):
            written.append(f"{option}=" + ",".join(f"{key}={item}" for key, item in value.items()))
        elif isinstance(value, (int, float)):
            written.append(f"{option}={value}")
        elif isinstance(value, bytes):
            raise UsageError(2, f"{name} is bytes; an option is a text, a number, True, or a list of them")
        elif isinstance(value, Sequence):
            written.append(f"{option}=" + ",".join(str(item) for item in value))
        else:
            raise UsageError(2, f"{name} is a {type(value).__name__}; an option is a text, a number, True, or a list of them")
    return written


def call(words: Sequence[str], *, quiet: bool = False, accept: Sequence[int] = (0,)) -> Output:
    """Runs the program and passes on what it writes to standard error before an error, line by line, unless ``quiet``.

    Ctrl-C stops the program as in a terminal: once, so that it stores what it has; KeyboardInterrupt is raised when it has ended.

    Raises the error of the exit code unless it is in ``accept``.
    """
    command = [program(), *words]
    # A group of its own: the terminal's Ctrl-C would reach the program besides ours, and its second signal ends it at once.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    said: List[str] = []
    output: List[str] = []
    readers = [
        threading.Thread(target=_pass_on, args=(process.stderr, said, quiet), daemon=True),
        threading.Thread(target=_collect, args=(process.stdout, output), daemon=True),
    ]
    for reader in readers:
        reader.start()
    interrupt: Optional[KeyboardInterrupt] = None
    while True:
        try:
            process.wait()
            break
        except KeyboardInterrupt as caught:
            # A second one ends the program at once, as in a terminal.
            interrupt = caught
            process.send_signal(signal.SIGINT)
        except BaseException:
            process.kill()
            process.wait()
            raise
    for reader in readers:
        reader.join()
    if interrupt is not None:
        raise interrupt
    if process.returncode not in accept:
        raise of_process(process.returncode, "".join(said), command)
    return Output(process.returncode, "".join(output))


def document(words: Sequence[str], *, quiet: bool = False, accept: Sequence[int] = (0,)) -> "tuple[int, Any]":
    """Runs the program and reads the JSON document that it prints; returns the exit code and the document."""
    output = call(words, quiet=quiet, accept=accept)
    try:
        return output.code, json.loads(output.stdout)
    except ValueError as error:
        begin = output.stdout[:200]
        raise ProgramNotFound(
            output.code, f"{program()} printed no JSON document ({error}): {begin!r}", "is it the earnest of this package's version?", words
        ) from error


def _pass_on(stream: Any, said: List[str], quiet: bool) -> None:
    with stream:
        for line in stream:
            said.append(line)
            # What follows is the text of the exception.
            quiet = quiet or line.startswith("error: ")
            if not quiet and sys.stderr is not None:
                sys.stderr.write(line)
                sys.stderr.flush()


def _collect(stream: Any, output: List[str]) -> None:
    with stream:
        output.append(stream.read())
