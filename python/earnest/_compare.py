"""Comparisons of two runs."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from . import _program
from ._program import Option
from ._runs import Location, Run, _name, _where
from .errors import UsageError


@dataclasses.dataclass(frozen=True)
class Difference:
    """A paired difference of accuracies, run minus baseline, as fractions; of means for scores that are no shares."""

    #: ``all``, or the task.
    name: str
    items: int
    clusters: int
    baseline: float
    run: float
    difference: float
    #: 95 % interval, robust to clusters of items; None with fewer than two clusters, or if nothing differs.
    interval: Optional[Tuple[float, float]]
    #: p value of the same t test, and after Holm's adjustment over the tests of the comparison.
    p: Optional[float]
    p_holm: Optional[float]
    #: Standard error that is robust to clusters.
    standard_error: Optional[float]
    #: Smallest difference that a test of this size finds with 80 % power.
    detectable: Optional[float]
    #: True if the numbers are shares, 0 to 1.
    shares: bool

    def __str__(self) -> str:
        return f"{self.name}: {_in_words(self.difference, self.interval, self.p, self.shares)}, {self.items} items"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A run compared with a baseline, over the items that both answered."""

    #: Names of the baseline and of the run.
    baseline: str
    run: str
    #: Number of pairs of items.
    items: int
    #: All items together, and each task (empty if there is one only). Intervals and p values take the number of items as fixed
    #: beforehand: for runs with ``until`` see `interval` and `p` of the comparison.
    overall: Difference
    tasks: Tuple[Difference, ...]
    #: Settings besides the model in which the runs differ: name, value of the baseline, value of the run.
    settings: Tuple[Tuple[str, Any, Any], ...]
    #: Everything, as ``earnest compare --json`` prints it: mixed model, scorers, flips, McNemar's test, anytime-valid differences.
    document: Mapping[str, Any] = dataclasses.field(repr=False)

    @property
    def difference(self) -> float:
        """Difference of the accuracies, run minus baseline."""
        return self.overall.difference

    @property
    def interval(self) -> Optional[Tuple[float, float]]:
        """95 % interval of the difference: the anytime-valid one if a run had the option ``until``; None if there is no valid one."""
        sequential = self.document.get("sequential")
        if sequential is None:
            return self.overall.interval
        estimate = sequential["estimate"]
        return None if estimate is None else (estimate["low"], estimate["high"])

    @property
    def p(self) -> Optional[float]:
        """p value of the difference, valid as `interval` is."""
        sequential = self.document.get("sequential")
        if sequential is None:
            return self.overall.p
        estimate = sequential["estimate"]
        return None if estimate is None else float(estimate["p"])

    @property
    def caveats(self) -> Tuple[str, ...]:
        """Sentences about what else differs than the models: settings, prompts, scorers. Empty if nothing does."""
        return tuple(self.document["caveats"])

    def __str__(self) -> str:
        found = _in_words(self.difference, self.interval, self.p, self.overall.shares)
        lines = [f"{self.run} - {self.baseline}: {found}, {self.items} items"]
        return "\n".join([*lines, *(f"note: {caveat}" for caveat in self.caveats)])


def compare(
    a: Union[Run, Location],
    b: Union[Run, Location],
    *,
    task: Optional[str] = None,
    scorer: Optional[str] = None,
    primary: Optional[str] = None,
    cluster: Optional[str] = None,
    figure: Optional[Location] = None,
    results: Optional[Location] = None,
    quiet: bool = False,
    **options: Option,
) -> Comparison:
    """Compares run ``b`` with the baseline ``a``, paired by item, with intervals that are robust to clusters of items.

    Args:
        a: The baseline: a run, a unique part of a run's name, or a file or folder with one model's logs of another tool.
        b: The run that is compared with it.
        task: Only this task.
        scorer: The scorer to compare by (default: that of each run).
        primary: Former name of ``scorer``.
        cluster: Field of the questions whose equal values make a cluster.
        figure: File to draw the differences into: .svg, .pdf or .png.
        results: Results folder of names (default: ``EARNEST_RESULTS``, else ``earnest-results``); a Run has its own.
        quiet: No warnings on standard error, e.g. of different settings.

    Raises:
        UsageError: No such run, no common item, or logs of several models.
    """
    named: Dict[str, Option] = {"task": task, "scorer": scorer, "primary": primary, "cluster": cluster, "figure": figure}
    words = ["compare", "--json", *_program.arguments({**named, **options}), *_where([a, b], results), "--", _name(a), _name(b)]
    # 1: something was left out, as `keep_going=True` allows.
    _, found = _program.document(words, quiet=quiet, accept=(0, 1))
    if len(found) != 1:
        names = ", ".join(f"{one['run']} - {one['baseline']}" for one in found) or "none"
        raise UsageError(2, f"these paths have {len(found)} comparisons: {names}", "name the logs of one model on each side", words)
    return _comparison(found[0])


def _comparison(document: Mapping[str, Any]) -> Comparison:
    return Comparison(
        baseline=document["baseline"],
        run=document["run"],
        items=document["items"],
        overall=_difference(document["overall"]),
        tasks=tuple(_difference(task) for task in document["tasks"]),
        settings=tuple((change["name"], change["one"], change["other"]) for change in document["settings"]),
        document=document,
    )


def _difference(document: Mapping[str, Any]) -> Difference:
    fields = {field.name: document[field.name] for field in dataclasses.fields(Difference)}
    if fields["interval"] is not None:
        fields["interval"] = tuple(fields["interval"])
    return Difference(**fields)


def _in_words(difference: float, interval: Optional[Tuple[float, float]], p: Optional[float], shares: bool) -> str:
    def number(value: float) -> str:
        return f"{100 * value:+.1f}" if shares else f"{value:+.4g}"

    unit = " points" if shares else ""
    between = "" if interval is None else f" [{number(interval[0])}, {number(interval[1])}]"
    tested = "" if p is None else ", p < 0.0001" if p < 0.0001 else f", p = {p:.2g}"
    return f"{number(difference)}{unit}{between}{tested}"
