"""Runs of a results folder: starting, listing, reading."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _program
from ._program import Option
from .errors import ResultsError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: A file or folder.
Location = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Run:
    """A stored run.

    Accuracies are fractions, 0 to 1. None is unknown: nothing scored yet.
    """

    #: The run's name, which ends in a hash of its settings.
    name: str
    #: ``finished``, ``interrupted``, ``working``, or ``partial`` for an import whose file lacked samples.
    status: str
    #: Time of the start, UTC, ISO 8601; of a log as its tool wrote it, None if it says none.
    started: Optional[str]
    suite: str
    model: str
    #: Results folder.
    results: Path
    #: Samples with a row, and samples in the plan.
    recorded: int
    planned: int
    #: Samples without an answer, e.g. because their prompt does not fit the context.
    failed: int
    #: Completions that the token budget cut off.
    truncated: int
    #: Samples that are right, of those with a score.
    correct: int
    scored: int
    #: Scorers that decide whether a sample is right.
    primary: Tuple[str, ...]
    #: Accuracy over all samples with its 95 % Wilson interval and its standard error, which are robust to clusters of items.
    accuracy: Optional[float]
    low: Optional[float]
    high: Optional[float]
    standard_error: Optional[float]
    #: Tokens of all prompts and completions.
    prompt_tokens: int
    completion_tokens: int
    #: Seconds of generation, without loading, times the number of devices.
    device_seconds: float

    def document(self) -> Dict[str, Any]:
        """Reads everything about the run, as ``earnest runs show --json`` prints it: manifest, totals, failures, summary, tables."""
        return _dictionary(_program.document(["runs", "show", "--json", f"--results={self.results}", "--", self.name], quiet=True)[1])

    def __str__(self) -> str:
        if self.accuracy is None:
            accuracy = ""
        elif self.low is None or self.high is None:
            accuracy = f", mean {self.accuracy:.4g}"
        else:
            accuracy = f", {100 * self.accuracy:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}] right"
        return f"{self.name}: {self.status}, {self.recorded} samples{accuracy}"


def run(
    suite: Optional[Location] = None,
    *,
    model: Optional[Location] = None,
    prompt: Union[None, str, Sequence[str]] = None,
    tasks: Union[None, str, Sequence[str]] = None,
    lengths: Optional[str] = None,
    limit: Optional[int] = None,
    samples: Optional[int] = None,
    seed: Optional[int] = None,
    temperature: Optional[float] = None,
    max_tokens: Optional[int] = None,
    new: bool = False,
    results: Optional[Location] = None,
    quiet: bool = False,
    **options: Option,
) -> Run:
    """Evaluates a model on a suite, or on a file of questions, and returns the stored run.

    Every option of ``earnest run`` is a keyword argument: ``max_tokens=8`` is ``--max-tokens 8``, ``recommended=True`` is
    ``--recommended``, ``tasks=["add", "mul"]`` is ``--tasks add,mul``, ``from_=RUN`` is ``--from RUN``. ``earnest run SUITE --help``
    lists them. Without ``model`` the small model inside the program is evaluated.

    The same call continues an interrupted run and returns a finished one at once. Ctrl-C stops it after what it has is stored.

    Args:
        suite: Name of a suite, or a file of questions or of a task.
        model: A Hugging Face folder, a GGUF file, a name of ``earnest models list``, or ``org/repo@<commit>``.
        results: Results folder (default: ``EARNEST_RESULTS``, else ``earnest-results``).
        quiet: No progress and no warnings on standard error.

    Returns:
        The run. ``failed`` counts samples without an answer, which are no error.

    Raises:
        EarnestError: What the program said; its subclasses are the documented exit codes.

    >>> earnest.run("nupa", tasks=["add_Integer"], limit=100)
    """
    words = ["run"] if suite is None else ["run", _program.operand("suite or file of questions", suite)]
    named: Dict[str, Option] = {
        "model": model,
        "prompt": prompt,
        "tasks": tasks,
        "lengths": lengths,
        "limit": limit,
        "samples": samples,
        "seed": seed,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "new": new,
        "results": results,
    }
    words += ["--json", *_program.arguments({**named, **options})]
    # 1: finished, but some samples have no answer.
    _, document = _program.document(words, quiet=quiet, accept=(0, 1))
    folder = Path(document["folder"]).absolute().parent
    name = document["manifest"]["run"]
    for found in runs(folder):
        if found.name == name:
            return found
    raise ResultsError(4, f"the run {name} is no longer in {folder}")


def runs(results: Optional[Location] = None) -> List[Run]:
    """Lists the runs of a results folder, the newest last.

    Args:
        results: Results folder (default: ``EARNEST_RESULTS``, else ``earnest-results``).

    Raises:
        ResultsError: No results there, or damaged ones.
    """
    folder = Path(results if results is not None else os.environ.get("EARNEST_RESULTS") or "earnest-results").absolute()
    _, rows = _program.document(["runs", "list", "--json", f"--results={folder}"])
    return [_run(row, folder) for row in rows]


@overload
def samples(
    run: Union[Run, str], as_: Literal["arrow"] = "arrow", *, results: Optional[Location] = None, texts: bool = True
) -> pyarrow.Table: ...
@overload
def samples(
    run: Union[Run, str], as_: Literal["pandas"], *, results: Optional[Location] = None, texts: bool = True
) -> pandas.DataFrame: ...
@overload
def samples(
    run: Union[Run, str], as_: Literal["polars"], *, results: Optional[Location] = None, texts: bool = True
) -> polars.DataFrame: ...


def samples(
    run: Union[Run, str],
    as_: Literal["arrow", "pandas", "polars"] = "arrow",
    *,
    results: Optional[Location] = None,
    texts: bool = True,
) -> Any:
    """Reads a run's samples, one row each.

    Columns: ``item``, ``sample``, ``task``, ``cluster``, ``question``, ``prompt``, ``gold`` (the expected answer), ``completion``,
    ``extracted``, ``correct``, tokens, timings, and one for each covariate (``covariate_length``, ...), scorer (``matcher_strict``, ...)
    and metric (``metric_...``).

    Args:
        run: A run, or a unique part of a run's name.
        as_: ``arrow`` (needs pyarrow; the manifest is in the schema's metadata), ``pandas`` (needs pandas and pyarrow) or ``polars``.
        results: Results folder of a name (default: ``EARNEST_RESULTS``, else ``earnest-results``); a Run has its own.
        texts: False leaves out questions and prompts.

    Raises:
        ImportError: The library is not installed.
        ResultsError: A damaged or edited run.
    """
    read = _reader(as_)
    words = ["export", "--format=parquet", *_program.arguments({"without_texts": not texts})]
    with tempfile.TemporaryDirectory(prefix="earnest-") as folder:
        file = os.path.join(folder, "samples.parquet")
        _program.call([*words, f"--output={file}", *_where([run], results), "--", _name(run)], quiet=True)
        return read(file)


def _reader(as_: str) -> Any:
    if as_ not in ("arrow", "pandas", "polars"):
        raise ValueError(f"as_ is {as_!r}: choose 'arrow', 'pandas' or 'polars'")
    try:
        if as_ == "polars":
            import polars

            # Read, not mapped: the file is gone when this returns.
            return lambda file: polars.read_parquet(file, memory_map=False)
        # pandas reads Parquet with it.
        import pyarrow.parquet

        if as_ == "pandas":
            import pandas

            return lambda file: pandas.read_parquet(file, engine="pyarrow")
        return lambda file: pyarrow.parquet.read_table(file)
    except ImportError as error:
        needs = "pandas and pyarrow" if as_ == "pandas" else "pyarrow" if as_ == "arrow" else as_
        raise ImportError(f"samples as {as_} need {needs} ({error}): pip install {needs.replace(' and', '')}") from error


def _run(row: Mapping[str, Any], folder: Path) -> Run:
    return Run(
        name=row["run"],
        results=folder,
        scored=row["judged"],
        primary=tuple(row["primary"]),
        **{
            name: row[name]
            for name in (
                *("status", "started", "suite", "model", "recorded", "planned", "failed", "truncated", "correct"),
                *("accuracy", "low", "high", "standard_error", "prompt_tokens", "completion_tokens", "device_seconds"),
            )
        },
    )


def _name(run: Union[Run, Location]) -> str:
    return run.name if isinstance(run, Run) else _program.operand("run", run)


def _where(runs: Sequence[Union[Run, Location]], results: Optional[Location]) -> List[str]:
    """The option --results for runs and names: their folder, which must be one."""
    folders = {Path(results).resolve()} if results is not None else set()
    folders |= {run.results.resolve() for run in runs if isinstance(run, Run)}
    if len(folders) > 1:
        raise ResultsError(
            4,
            "the runs are in different results folders: " + ", ".join(sorted(map(str, folders))),
            "`earnest merge` copies the runs of one folder into another",
        )
    return [f"--results={folder}" for folder in folders]


def _dictionary(document: Any) -> Dict[str, Any]:
    if not isinstance(document, dict):
        raise ResultsError(4, "the program printed a document that this package does not know", "install a newer earnest")
    return document
