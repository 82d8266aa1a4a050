"""Tests of the Python package on the real program (scripts/wheel.sh runs them on an installed wheel).

Needs pyarrow, pandas and polars; EARNEST_TEST_WITHOUT=1 says that they cannot be had here, and leaves their tests out by name.
"""

import dataclasses
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from unittest import mock

import earnest

WITHOUT = os.environ.get("EARNEST_TEST_WITHOUT") == "1"
SMALL = {"tasks": ["add_Integer", "sub_Integer"], "lengths": "1-4", "limit": 40, "quiet": True}


class Runs(unittest.TestCase):
    """Two runs of the embedded model, made once."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name) / "results"
        cls.a = earnest.run("nupa", results=cls.folder, **SMALL)
        cls.b = earnest.run("nupa", results=cls.folder, top_k=20, temperature=1.5, **SMALL)

    def test_run_is_as_its_document_says(self):
        manifest = self.a.document()["manifest"]
        self.assertEqual(manifest["run"], self.a.name)
        self.assertEqual(manifest["settings"]["suite_options"]["tasks"][0].split("_")[0], "add")
        self.assertEqual(len(manifest["settings"]["suite_options"]["tasks"]), 2)
        self.assertEqual(self.b.document()["manifest"]["settings"]["generation"]["sampling"]["top_k"], 20)
        self.assertEqual((self.a.status, self.a.recorded, self.a.planned, self.a.suite), ("finished", 40, 40, "nupa"))
        self.assertLess(self.a.low, self.a.accuracy)
        self.assertGreater(self.a.high, self.a.accuracy)
        self.assertIn(f"{100 * self.a.accuracy:.1f} %", str(self.a))

    def test_same_call_returns_the_same_run(self):
        again = earnest.run("nupa", results=self.folder, **SMALL)
        self.assertEqual(again, self.a)
        self.assertEqual(len(earnest.runs(self.folder)), 2)

    def test_runs_are_listed_from_any_folder(self):
        self.assertEqual({run.name for run in earnest.runs(self.folder)}, {self.a.name, self.b.name})
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder.parent)
        (found, _) = earnest.runs("results")
        os.chdir("/")
        self.assertEqual(found.document()["manifest"]["run"], found.name)
        with mock.patch.dict(os.environ, EARNEST_RESULTS=str(self.folder)):
            self.assertEqual(len(earnest.runs()), 2)

    def test_samples_in_each_form(self):
        if WITHOUT:
            self.skipTest("pyarrow, pandas and polars are not installed")
        arrow = earnest.samples(self.a)
        pandas = earnest.samples(self.a, "pandas")
        polars = earnest.samples(self.a.name, as_="polars", results=self.folder)
        self.assertEqual(arrow.num_rows, 40)
        self.assertEqual(sum(arrow.column("correct").to_pylist()), self.a.correct)
        self.assertEqual(int(pandas["correct"].sum()), self.a.correct)
        self.assertEqual(polars["correct"].sum(), self.a.correct)
        self.assertEqual(list(pandas["completion"]), arrow.column("completion").to_pylist())
        self.assertEqual(polars["question"].to_list(), arrow.column("question").to_pylist())
        self.assertEqual(json.loads(arrow.schema.metadata[b"earnest.manifest"])["run"], self.a.name)
        bare = earnest.samples(self.a, "arrow", texts=False)
        self.assertTrue({"question", "prompt"} <= set(arrow.column_names))
        self.assertFalse({"question", "prompt"} & set(bare.column_names))

    def test_unknown_form_and_missing_library_are_named(self):
        with self.assertRaisesRegex(ValueError, "'arrow', 'pandas' or 'polars'"):
            earnest.samples(self.a, "spark")
        with mock.patch.dict(sys.modules, polars=None), self.assertRaisesRegex(ImportError, "pip install polars"):
            earnest.samples(self.a, "polars")

    def test_comparison_is_that_of_the_program(self):
        svg = self.folder.parent / "difference.svg"
        found = earnest.compare(self.a, self.b, figure=svg, quiet=True)
        self.assertEqual((found.baseline, found.run, found.items), (self.a.name, self.b.name, 40))
        self.assertAlmostEqual(found.difference, self.b.accuracy - self.a.accuracy)
        self.assertLess(found.difference, 0)
        low, high = found.interval
        self.assertTrue(low < found.difference < high)
        self.assertEqual(found.p, found.document["overall"]["p"])
        self.assertEqual([len(found.tasks), sum(task.items for task in found.tasks)], [2, 40])
        self.assertIn(("generation.sampling.temperature", 0.0, 1.5), found.settings)
        self.assertIn(f"{100 * found.difference:+.1f} points", str(found))
        self.assertIn("<svg", svg.read_text())
        self.assertIn("different settings", found.caveats[0])
        self.assertIn("temperature", str(found))
        with self.assertRaisesRegex(earnest.UsageError, "(?s)there is no option primry.*did you mean scorer"):
            earnest.compare(self.a, self.b, primry="boundary")
        other = earnest.compare(self.a.name, self.b, task="add_Integer", quiet=True)
        self.assertEqual(other.items, 20)

    def test_runs_of_two_folders_are_refused(self):
        moved = dataclasses.replace(self.b, results=self.folder.parent / "other")
        with self.assertRaisesRegex(earnest.ResultsError, "(?s)different results folders.*earnest merge"):
            earnest.compare(self.a, moved)

    def test_run_that_ends_early_has_its_own_interval(self):
        fixed = earnest.run("gsm-mini", limit=160, results=self.folder.parent / "early", quiet=True)
        until = f"difference to {fixed.name} decided"
        early = earnest.run("gsm-mini", limit=160, temperature=1, until=until, results=fixed.results, quiet=True)
        found = earnest.compare(fixed, early, quiet=True)
        estimate = found.document["sequential"]["estimate"]
        self.assertEqual(found.interval, (estimate["low"], estimate["high"]))
        self.assertEqual(found.p, estimate["p"])

    def test_failed_samples_are_counted_and_no_error(self):
        questions = self.folder.parent / "long.jsonl"
        lines = ({"question": f"{n} + 1 = " * 5000, "answer": str(n + 1)} for n in range(2))
        questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = earnest.run(questions, results=self.folder.parent / "long", quiet=True)
        self.assertEqual((found.status, found.failed), ("finished", 2))
        self.assertIsNone(found.accuracy)

    def test_module_is_the_program(self):
        done = subprocess.run([sys.executable, "-m", "earnest", "--version"], stdout=subprocess.PIPE, check=True, encoding="utf-8")
        self.assertRegex(done.stdout, r"^earnest \d")


class Errors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    @contextmanager
    def program(self, script):
        """A program in the place of earnest."""
        path = self.folder / "program"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        with mock.patch.dict(os.environ, EARNEST_PROGRAM=str(path)):
            yield

    def test_errors_are_what_the_program_said(self):
        cases = [
            (earnest.UsageError, 2, "there is no suite nupx", lambda: earnest.run("nupx", quiet=True)),
            (earnest.UsageError, 2, "there is no option nosuch", lambda: earnest.run("nupa", nosuch=3, quiet=True)),
            (earnest.UsageError, 2, "'--help' is no suite", lambda: earnest.run("--help")),
            (earnest.UsageError, 2, "set", lambda: earnest.run("nupa", tasks={"add_Integer"})),
            (earnest.ModelError, 3, "'-x' is not a file", lambda: earnest.run("nupa", model="-x", quiet=True)),
            (earnest.ResultsError, 4, "there are no results", lambda: earnest.runs(self.folder / "none")),
        ]
        for kind, code, text, attempt in cases:
            with self.subTest(text), mock.patch.dict(os.environ, EARNEST_RESULTS=str(self.folder)):
                with self.assertRaises(earnest.EarnestError) as caught:
                    attempt()
                self.assertIs(type(caught.exception), kind)
                self.assertEqual(caught.exception.code, code)
                self.assertIn(text, caught.exception.message)
        self.assertIn("--results", str(caught.exception))
        self.assertIn("--results", caught.exception.help)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_each_documented_code_has_a_class(self):
        kinds = {5: earnest.EngineError, 6: earnest.TooManyFailures, 130: earnest.Interrupted, 101: earnest.EarnestError}
        for code, kind in kinds.items():
            script = f"echo 'a warning' >&2; echo 'error: it broke' >&2; echo 'help: mend it' >&2; exit {code}"
            said = StringIO()
            with self.subTest(code), self.program(script), redirect_stderr(said), self.assertRaises(earnest.EarnestError) as caught:
                earnest.run("nupa")
            self.assertIs(type(caught.exception), kind)
            self.assertEqual((caught.exception.message, caught.exception.help), ("it broke", "mend it"))
            self.assertEqual(said.getvalue(), "a warning\n")
            again = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((str(again), again.code, again.command), (str(caught.exception), code, caught.exception.command))

    def test_signal_and_foreign_program_are_named(self):
        with self.program("kill -9 $$"), self.assertRaisesRegex(earnest.EarnestError, "signal 9") as caught:
            earnest.runs()
        self.assertEqual(caught.exception.code, -9)
        with self.program("echo hello"), self.assertRaisesRegex(earnest.ProgramNotFound, "no JSON.*hello"):
            earnest.runs()
        with mock.patch.dict(os.environ, EARNEST_PROGRAM="/nowhere/earnest"):
            with self.assertRaisesRegex(earnest.ProgramNotFound, "/nowhere/earnest"):
                earnest.runs()

    def test_arguments_are_one_word_each(self):
        echo = self.folder / "words"
        with self.program(f"""printf '%s\\n' "$@" > '{echo}'; exit 2"""), self.assertRaises(earnest.UsageError):
            earnest.run("q.jsonl", model="a b; --limit 3", columns={"id": "n", "answer": "a"}, new=True, offline=False, from_="x")
        self.assertEqual(
            echo.read_text().splitlines(),
            ["run", "q.jsonl", "--json", "--model=a b; --limit 3", "--new", "--columns=id=n,answer=a", "--from=x"],
        )

    def test_ctrl_c_stores_what_there_is(self):
        # A shell starts what runs in the background with this signal ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

        def interrupt():
            for _ in range(600):
                time.sleep(0.1)
                try:
                    if any(run.recorded for run in earnest.runs(self.folder)):
                        break
                except earnest.EarnestError:
                    continue
            os.kill(os.getpid(), signal.SIGINT)

        watcher = threading.Thread(target=interrupt)
        watcher.start()
        with redirect_stderr(StringIO()), self.assertRaises(KeyboardInterrupt):
            earnest.run("nupa", results=self.folder, per_length=1000, limit=53000)
        watcher.join()
        (found,) = earnest.runs(self.folder)
        self.assertEqual(found.status, "interrupted")
        self.assertGreater(found.recorded, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
