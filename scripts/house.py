#!/usr/bin/env python3
"""The house in numbers: lines of Rust by crate, and a clean build by package.

    scripts/house.py lines            lines of this tree
    scripts/house.py habits           what part two of the third edition wanted less of, in the code outside of tests
    scripts/house.py build [FOLDER]   a release build of the program in an empty folder, which takes a quarter of an hour

benches/results/house.md has what they print.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["code", "documentation", "comments", "blank", "tests"]


def test_files(files):
    """Files that only tests compile: those of `#[cfg(test)] mod NAME;`, and those in folders of such modules."""
    found = set()
    for path in files:
        text = path.read_text()
        folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
        for name in re.findall(r"#\[cfg\((?:all\()?test[^\]]*\]\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", text):
            found.update([folder / f"{name}.rs", *(folder / name).rglob("*.rs")])
    return found


def lines_of(path, is_test):
    """Lines of a file by kind. A module of tests ends with the brace at its own depth, as rustfmt writes it."""
    counts = Counter()
    end = None
    lines = path.read_text().splitlines()
    for index, line in enumerate(lines):
        bare = line.strip()
        if is_test or end is not None:
            counts["tests"] += 1
            if end is not None and line == end:
                end = None
            continue
        if bare.startswith("#[cfg(test)]") and index + 1 < len(lines) and lines[index + 1].rstrip().endswith("{"):
            end = line[: len(line) - len(line.lstrip())] + "}"
            counts["tests"] += 1
        elif not bare:
            counts["blank"] += 1
        elif bare.startswith(("///", "//!")):
            counts["documentation"] += 1
        elif bare.startswith("//"):
            counts["comments"] += 1
        else:
            counts["code"] += 1
    return counts


def lines():
    crates = {"earnest": ROOT / "src"}
    crates.update({folder.name: folder / "src" for folder in sorted((ROOT / "crates").iterdir())})
    table = {}
    for name, folder in crates.items():
        files = sorted(folder.rglob("*.rs"))
        tests = test_files(files)
        table[name] = sum((lines_of(path, path in tests) for path in files), Counter(files=len(files)))
    print("| crate | files | " + " | ".join(KINDS) + " |\n|---" + "|---:" * 6 + "|")
    total = sum(table.values(), Counter())
    for name, counts in sorted(table.items(), key=lambda one: -one[1]["code"]) + [("all", total)]:
        print(f"| {name} | {counts['files']} | " + " | ".join(f"{counts[kind]:,}" for kind in KINDS) + " |")


def functions(lines):
    """First line and length of every function, by the brace at its own depth."""
    for index, line in enumerate(lines):
        if re.match(r" *(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"C\" )*fn \w", line):
            end = line[: len(line) - len(line.lstrip())] + "}"
            stop = next((at for at in range(index, len(lines)) if lines[at] == end), index)
            if not any(lines[at].endswith(";") and lines[at].startswith(end[:-1] + ")") for at in range(index, stop)):
                yield index, stop - index + 1


def outside_of_tests(path):
    """A file's lines of code outside of its modules of tests; others are empty."""
    kept, end, lines = [], None, path.read_text().splitlines()
    for index, line in enumerate(lines):
        if end is None and line.strip().startswith("#[cfg(test)]") and lines[index + 1].rstrip().endswith("{"):
            end = line[: len(line) - len(line.lstrip())] + "}"
        kept.append("" if end is not None or line.strip().startswith("//") else line)
        if line == end:
            end = None
    return kept


def habits():
    counts = Counter()
    for folder in [ROOT / "src", *sorted((ROOT / "crates").glob("*/src"))]:
        files = sorted(folder.rglob("*.rs"))
        tests = test_files(files)
        # The program and its developers' sister have options.
        library = folder.parent.name not in (ROOT.name, "dev")
        for path in files:
            if path in tests or path.name == "tests.rs" or "tests" in path.parts:
                continue
            lines = outside_of_tests(path)
            text = "\n".join(lines)
            counts["`Result<_, String>`"] += len(re.findall(r"Result<(?:[^<>;{}]|<[^<>]*(?:<[^<>]*>)?[^<>]*>)*, String>", text))
            counts["functions of more than 100 lines"] += sum(length > 100 for _, length in functions(lines))
            counts["HTML by `write!`"] += len(re.findall(r"write(?:ln)?!\([^;\"]{0,80}\"[^\"\n]*</?[a-z]+[ >]", text))
            counts["writers that cannot fail (`WRITES`)"] += len(re.findall(r"expect\(WRITES\)", text))
            if library:
                texts = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
                named = [said for said in texts if re.search(r"(?:^|[\s`(=])--[a-z]", said) and "var(--" not in said]
                commands = [said for said in named if re.search(r"`?earnest [a-z]|^(?: |--)", said)]
                counts["texts of library crates with an option"] += len(named)
                counts["of these in a command, or an argument of one"] += len(commands)
    print("| habit | places |\n|---|---:|")
    for habit, count in counts.items():
        print(f"| {habit} | {count} |")


def build(folder):
    command = ["cargo", "build", "--release", "--locked", "--timings"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{(used.ru_utime + used.ru_stime) / 60:.1f} processor minutes on {os.cpu_count()} processors\n")
    page = next((folder / "cargo-timings").glob("cargo-timing-2*.html")).read_text()
    units = json.loads(re.search(r"const UNIT_DATA = (\[.*?\]);", page, re.S).group(1))
    seconds = defaultdict(float)
    for unit in units:
        seconds[unit["name"]] += unit["duration"]
    print("| package | seconds |\n|---|---:|")
    ranked = sorted(seconds.items(), key=lambda one: -one[1])
    for name, duration in ranked[:25]:
        print(f"| {name} | {duration:.0f} |")
    rest = [duration for _, duration in ranked[25:]]
    print(f"| {len(rest)} others | {sum(rest):.0f} |")


def main():
    match sys.argv[1:]:
        case ["lines"]:
            lines()
        case ["habits"]:
            habits()
        case ["build"]:
            with tempfile.TemporaryDirectory() as folder:
                build(Path(folder))
        case ["build", folder]:
            build(Path(folder).resolve())
        case _:
            sys.exit(__doc__)


main()
