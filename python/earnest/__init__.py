"""The evaluator earnest from Python: starts the program, reads what it stored.

>>> import earnest
>>> run = earnest.run("nupa", tasks=["add_Integer"], limit=100)
>>> print(run)
>>> earnest.samples(run, as_="pandas").groupby("covariate_length").correct.mean()
>>> print(earnest.compare(run, earnest.runs()[0]))

The program is the one that the wheel installed, the one that ``EARNEST_PROGRAM`` names, or the one in ``PATH``.
"""

from ._compare import Comparison, Difference, compare
from ._program import Option, program
from ._runs import Run, run, runs, samples
from .errors import (
    EarnestError,
    EngineError,
    Interrupted,
    ModelError,
    ProgramNotFound,
    ResultsError,
    TooManyFailures,
    UsageError,
)

__all__ = [
    "Comparison",
    "Difference",
    "EarnestError",
    "EngineError",
    "Interrupted",
    "ModelError",
    "Option",
    "ProgramNotFound",
    "ResultsError",
    "Run",
    "TooManyFailures",
    "UsageError",
    "compare",
    "program",
    "run",
    "runs",
    "samples",
]
