"""The steps of run.sh: correctness first, then the sanitizers, then speed; a fault takes the time of what comes after it.

Every step is a command with a limit of its own. Its output is kept in files as it comes, its verdict is a line of steps.jsonl, and a step that has no time left is
named as not run. If a step of correctness fails, its command runs again with EARNEST_CUDA_SYNC=1 and under memcheck, and of the measurements only the first is made.
"""
import argparse
import glob
import importlib.util
import json
import os
import shutil
import signal
import site
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# In a bundle the program lies beside the script; in a checkout cargo has built it.
BUNDLE = os.path.exists(os.path.join(HERE, "earnest-dev.xz"))
ROOT = HERE if BUNDLE else os.path.abspath(os.path.join(HERE, "..", ".."))
LITTLE = ["--kv-memory", "256MiB"]
SANITIZERS = {
    "memcheck kernels": ("memcheck", "kernels", []),
    "racecheck kernels": ("racecheck", "kernels", []),
    "racecheck batch-invariant": ("racecheck", "qwen2", ["--batch-invariant"]),
    "memcheck graphs": ("memcheck", "qwen3", []),
    "racecheck wgmma": ("racecheck", "qwen2", ["--cuda-variant", "wgmma"]),
    # Of our own products too: what cublasLt's kernels write, which are not checked, would count as never written.
    "initcheck": ("initcheck", "qwen2", ["--batch-invariant"]),
    "racecheck experts": ("racecheck", "gpt-oss-mxfp4", ["--batch-invariant"]),
    "memcheck norms": ("memcheck", "gemma2", []),
    "synccheck kernels": ("synccheck", "kernels", []),
}


class Step:
    """A command: its name, its limit in seconds, variables, and what its output must be. `missing` is why it cannot run here."""

    def __init__(self, name, command, limit, judge=None, missing=None, **variables):
        self.name, self.command, self.limit, self.judge = name, command, limit, judge or exited
        self.missing, self.variables = missing, variables


def exited(session, step, code):
    return code == 0, ""


def lines(path):
    """The JSON documents of a file, one a line; what is none is left out."""
    found = []
    with open(path, errors="replace") as file:
        for line in file:
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
    return found


def wrong_in(row):
    """What a check or checkpoint found wrong, in words."""
    if "broken" in row:
        return row["broken"]
    if "error" in row:
        return f"error {row['error']:.3g}, same bits {row['same_bits']}"
    (logits, lead), r = row["accepted"], row
    return f"logits {r['largest_difference']:.3g} of {logits:.3g}, lead {r['largest_lost_margin']:.3g} of {lead:.3g}"


def checked(session, step, code):
    """Kernels and checkpoints: a line each, and a summary without a wrong one."""
    rows = lines(session.path(step, "out"))
    whole = bool(rows) and "wrong" in rows[-1]
    wrong = sorted((row for row in rows if row.get("passed") is False), key=lambda row: "broken" not in row)
    names = "; ".join(f"{row.get('name') or row.get('checkpoint')}: {wrong_in(row)}" for row in wrong[:6])
    refused = sum("refused" in row for row in rows)
    worst = max((row["largest_difference"] for row in rows if row.get("largest_difference") is not None), default=None)
    said = f"{max(0, len(rows) - 1)} lines, {len(wrong)} wrong, {refused} refused" + (f", logits within {worst:.6f}" if worst is not None else "") + (f": {names}" if names else "")
    # Stand-ins compute nothing: in a dry run the form is judged.
    broken = any("broken" in row for row in rows)
    return whole and not broken and (session.dry or code == 0), said


def sanitized(session, step, code):
    text = "".join(open(session.path(step, end), errors="replace").read() for end in ("out", "err"))
    lines = [line.strip("= \n") for line in text.splitlines()]
    if session.dry:
        # The command itself, without the tool.
        return code in (0, 5), "a dry run has nothing to check"
    said = [line for line in lines if "SUMMARY" in line]
    words = ("Invalid", "Error:", "Race", "Uninitialized", "Barrier", "Warning", "Internal Sanitizer Error")
    errors = [line for line in lines if line.startswith(words) or '"broken"' in line]
    done = sum('"passed":true' in line for line in lines)
    wrong = sum('"passed":false' in line for line in lines)
    if code == "time" and not errors and not wrong:
        return (True, f"clean until its time was over: {done} lines") if done else (None, "nothing was done in its time")
    clean = bool(said) and not errors and not wrong and all(" 0 errors" in line or " 0 hazards" in line for line in said)
    return clean and code in (0, 5), "; ".join([*said, *errors[:3]])[:600] + f"; {done} lines"


def measured(session, step, code):
    """A document of `earnest-dev device`, whose numbers are told."""
    path = session.path(step, "json")
    if not os.path.exists(path):
        return False, "nothing was measured"
    with open(path) as file:
        d = json.load(file)
    told = [f"batch {r['batch']} after {r['context']}: {1e3 * r['step_s']:.2f} ms ({100 * r['fraction']:.0f} %)" for r in d["decode"] if r["step_s"]]
    told += [f"prefill {r['batch']}: {r['tokens_per_s']:.0f} tokens/s ({100 * r['fraction']:.0f} %)" for r in d["prefill"]]
    for name in ("shared", "ragged", "short"):
        r = d.get(name)
        if r:
            told.append(f"{name} {r['prompts']} prompts: {r['seconds']:.2f} s, {r['steps']} steps ({100 * r['fraction']:.0f} %)")
    return code == 0, f"load {d['load_s']:.1f} s; " + "; ".join(told)


def agreed(session, step, code):
    with open(session.path(step, "out")) as file:
        d = json.load(file)
    r = d["result"]
    said = f"within {r['largest_difference']:.5f}, {d['error_of_spread']:.5f} of the spread, {r['tokens']} tokens before the first difference, lead lost {r['largest_lost_margin']:.4f}, {d['distinct_tokens']} distinct"
    # Another arithmetic is judged by all log-probabilities together, not by the largest difference.
    if "default-compute" in step.command:
        return d["error_of_spread"] <= 0.4, said
    return code == 0, said


class Session:
    """One run of the script."""

    def __init__(self, args):
        self.started, self.dry, self.only = time.monotonic(), args.dry_run, args.only
        self.end = self.started + args.seconds
        self.out = os.path.abspath(args.out or os.environ.get("OUT") or "gpu-results")
        try:
            os.makedirs(self.out, exist_ok=True)
            # Rows of one run and documents of another would not fit together.
            self.log = open(os.path.join(self.out, "steps.jsonl"), "x")
        except OSError as error:
            sys.exit(f"{self.out} cannot take the results: {error}; name a new folder with --out")
        self.work = tempfile.mkdtemp(prefix="earnest-gpu-")
        self.children, self.rows = [], []
        self.variables = dict(os.environ, EARNEST_CACHE=os.path.join(self.work, "cache"))
        self.program = self._program(args.program)
        self.device = "cuda"
        self.golden = os.path.join(ROOT, "checkpoints") if BUNDLE else os.path.join(ROOT, "tests/golden/engine/checkpoints")
        if self.dry:
            self.golden = self._few_checkpoints()
        libraries = self._stand_ins() if self.dry else nvidia_libraries()
        if libraries and not os.environ.get("EARNEST_CUDA_LIBRARIES"):
            self.variables["EARNEST_CUDA_LIBRARIES"] = libraries

    def _program(self, named):
        if named:
            return os.path.abspath(named)
        if not BUNDLE:
            target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
            return os.path.join(target, "release", "earnest-dev")
        import lzma

        path = os.path.join(self.work, "earnest-dev")
        with lzma.open(os.path.join(HERE, "earnest-dev.xz")) as packed, open(path, "wb") as file:
            shutil.copyfileobj(packed, file)
        os.chmod(path, 0o755)
        return path

    def _few_checkpoints(self):
        folder = os.path.join(self.work, "checkpoints")
        os.makedirs(folder)
        for name in {"llama", *(what for _, what, _ in SANITIZERS.values())} - {"kernels"}:
            os.symlink(os.path.join(self.golden, name), os.path.join(folder, name))
        return folder

    def _stand_ins(self):
        """Stand-ins of NVIDIA's libraries, on which kernels compute nothing."""
        compiler = next((name for name in [os.environ.get("CC"), "cc", "gcc", "clang"] if name and shutil.which(name)), None)
        if compiler is None:
            sys.exit("a dry run needs a C compiler, for stand-ins of NVIDIA's libraries")
        source = os.path.join(ROOT, "libraries.c") if BUNDLE else os.path.join(ROOT, "tests/cuda_twin/libraries.c")
        for number, name in [(1, "libcuda.so.1"), (2, "libnvrtc.so.13"), (3, "libcublasLt.so.13")]:
            options = ["-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-w", f"-DLIBRARY={number}", "-o", os.path.join(self.work, name)]
            subprocess.run([compiler, *options, source], check=True)
        return self.work

    def path(self, step, end):
        return os.path.join(self.work, "results", step.name.replace(" ", "-") + "." + end)

    def left(self):
        return self.end - time.monotonic()

    def together(self, steps, width, seconds=None):
        """Runs steps, so many at a time, and returns those that failed. `seconds` is the most for all of them."""
        end = min(self.end, time.monotonic() + seconds) if seconds else self.end
        waiting, running, failed = [step for step in steps if self.only in step.name], [], []
        while waiting or running:
            while waiting and len(running) < width:
                step = waiting.pop(0)
                if step.missing:
                    self.tell(step, "not run", 0, step.missing)
                    continue
                if end - time.monotonic() < 5:
                    self.tell(step, "not run", 0, "no time is left")
                    continue
                running.append(self.start(step))
            time.sleep(0.02)
            for one in list(running):
                step, child, begun = one
                code = child.poll()
                if code is None and time.monotonic() <= min(begun + step.limit, end):
                    continue
                if code is None:
                    stop(child)
                    code = "time"
                running.remove(one)
                self.children.remove(child)
                if not self.judge(step, code, time.monotonic() - begun):
                    failed.append(step)
                self.keep()
        return failed

    def start(self, step):
        os.makedirs(os.path.join(self.work, "results"), exist_ok=True)
        out, err = open(self.path(step, "out"), "w"), open(self.path(step, "err"), "w")
        try:
            child = subprocess.Popen(step.command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env={**self.variables, **step.variables}, start_new_session=True)
        except OSError as error:
            err.write(f"{error}\n")
            err.flush()
            child = subprocess.Popen(["false"], start_new_session=True)
        self.children.append(child)
        return step, child, time.monotonic()

    def judge(self, step, code, seconds):
        try:
            passed, said = step.judge(self, step, code)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            passed, said = False, f"its output cannot be read: {error!r}"
        if passed is False:
            with open(self.path(step, "err"), errors="replace") as file:
                last = [line.strip() for line in file if line.strip()][-2:]
            said = f"exit {code}; {said} {' | '.join(last)}"
        self.tell(step, "not run" if passed is None else "pass" if passed else "FAIL", seconds, said)
        return passed is not False

    def tell(self, step, verdict, seconds, said):
        row = {"step": step.name, "verdict": verdict, "seconds": round(seconds, 2), "at": round(time.monotonic() - self.started, 1), "said": said, "command": " ".join(step.command)}
        self.rows.append(row)
        self.log.write(json.dumps(row) + "\n")
        self.log.flush()
        told = f"{row['at']:6.1f}  {verdict:7}  {seconds:5.1f} s  {step.name}: {said}"[:900]
        try:
            print(told, flush=True)
        except BrokenPipeError:
            # Who reads it has gone; the rows are in the file.
            sys.stdout = open(os.devnull, "w")

    def keep(self):
        """Packs all results so far; they must survive the machine."""
        results = os.path.join(self.work, "results")
        if os.path.isdir(results):
            with tarfile.open(os.path.join(self.out, "results.tar.xz.partial"), "w:xz", preset=1) as archive:
                archive.add(results, "results")
            os.replace(os.path.join(self.out, "results.tar.xz.partial"), os.path.join(self.out, "results.tar.xz"))


def stop(child):
    """Ends a step and what it started; what it has written is kept."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return
        try:
            child.wait(3)
            return
        except subprocess.TimeoutExpired:
            pass


def nvidia_libraries():
    """Folders of NVRTC and cublasLt that Python packages brought."""
    folders = []
    places = [*site.getsitepackages(), site.getusersitepackages(), *sys.path, *glob.glob("/opt/*/.venv/lib/python3*/site-packages")]
    for base in places:
        for name in ("libnvrtc.so.1*", "libcublasLt.so.1*"):
            for path in glob.glob(os.path.join(base, "nvidia", "*", "lib", name)):
                if os.path.dirname(path) not in folders:
                    folders.append(os.path.dirname(path))
    return ":".join(folders)


def environment(s):
    commands = ["uname -a", "nvidia-smi", "nvidia-smi -q -d CLOCK,POWER,MEMORY", "df -h /dev/shm /tmp", "free -g", "nproc", f"ldd {s.program}", f"{s.program} --version"]
    text = "; ".join(f"echo '$ {command}'; {command} 2>&1" for command in commands)
    return [Step("environment", ["bash", "-c", text + f"; echo EARNEST_CUDA_LIBRARIES=$EARNEST_CUDA_LIBRARIES; true"], 20)]


def correctness(s):
    golden = [s.program, "golden", s.golden, "--device", s.device, *LITTLE, "--json"]
    dev = [s.program, "kernels", "--json"]
    bf16 = ["--dtype", "bf16", "--rounding"]
    return [
        Step("kernels", dev, 90, checked),
        Step("golden f32", [*golden, "--dtype", "f32"], 60, checked),
        Step("golden bf16", [*golden, *bf16], 60, checked),
        Step("golden bf16 batch-invariant", [*golden, *bf16, "--batch-invariant"], 60, checked),
        Step("golden bf16 without graphs", [*golden, *bf16, "--no-graphs"], 60, checked),
        Step("golden bf16 wgmma", [*golden, *bf16, "--cuda-variant", "wgmma"], 60, checked),
        Step("golden f32 batch-invariant", [*golden, "--dtype", "f32", "--batch-invariant"], 60, checked),
        Step("golden f16", [*golden, "--dtype", "f16", "--rounding"], 60, checked),
        # Eight bits move these small models far; nothing is judged but that they are computed.
        Step("golden fp8", [*golden, "--dtype", "bf16", "--compute", "fp8", "--tolerance", "100"], 60, checked),
        Step("golden fp8 wgmma", [*golden, "--dtype", "bf16", "--compute", "fp8", "--cuda-variant", "wgmma", "--tolerance", "100"], 60, checked),
        Step("golden q8_0", [*golden, "--quant", "q8_0", "--tolerance", "100"], 60, checked),
    ]


def sanitizer_program():
    return shutil.which("compute-sanitizer", path="/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer:" + os.environ.get("PATH", ""))


def sanitizer(s, tool, what, options):
    program = sanitizer_program()
    # A dry run only tries the command.
    kernels = [s.program, "kernels", "--own", *(["--first", "64"] if s.dry else [])]
    command = kernels if what == "kernels" else [s.program, "golden", os.path.join(s.golden, what), "--device", s.device, "--dtype", "bf16", "--tolerance", "100", "--kv-memory", "64MiB", *options]
    if program is None or s.dry:
        return [*command, "--json"]
    # Only our own kernels: those of cublasLt take the time, and a tool can break on their barriers.
    own = ["--tool", tool, "--kernel-name", "kns=earnest", "--report-api-errors", "no", "--error-exitcode", "9"]
    own += ["--padding", "512"] if tool == "memcheck" else []
    own += ["--check-warpgroup-mma", "yes"] if tool == "memcheck" else []
    return [program, *own, *command, "--json"]


def sanitizers(s):
    missing = None if s.dry or sanitizer_program() else "compute-sanitizer is not there"
    return [Step(name, sanitizer(s, *how), 80, sanitized, missing) for name, how in SANITIZERS.items()]


def device(s, name, shape, options, limit):
    tiny = ["--random", "tiny"] if s.dry else ["--random", shape]
    step = Step(name, [], limit, measured)
    step.command = [s.program, "device", "--device", s.device, *tiny, "--decode", "", "--prefill", "", *options, "--save", s.path(step, "json"), "--json"]
    # An option's later value counts, and so does a smaller size in a dry run.
    sizes = {"--decode": "1,3", "--decode-context": "40", "--decode-steps": "12", "--prefill": "2", "--prefill-length": "64"}
    sizes |= {"--shared": "6,64,10,4", "--ragged": "6,64,10,12", "--short": "5,12,3"}
    kept = []
    for i, word in enumerate(step.command):
        if i and step.command[i - 1] in sizes and s.dry and word:
            word = sizes[step.command[i - 1]]
        kept.append(word)
    # Of an option given twice the first was the default.
    for option in ("--decode", "--prefill"):
        while kept.count(option) > 1:
            at = kept.index(option)
            del kept[at : at + 2]
    step.command = kept
    return step


SHARED, RAGGED = ["--shared", "5100,900,100,120"], ["--ragged", "5100,900,100,120"]
FEW = ["--decode", "1,512", "--decode-context", "512", "--prefill", "16"]


def first_measurement(s):
    options = ["--decode", "1,32,128,512", "--decode-context", "512", "--prefill", "32", *SHARED, *RAGGED, "--short", "1000,60,20"]
    return [device(s, "8B", "llama-3-8b", options, 150)]


def profile(s):
    # The layers are alike: eight of them show what a step of 32 is made of.
    options = ["--layers", "8", "--profile", "--decode", "1,512", "--decode-context", "1000", "--prefill", "16"]
    return [device(s, "8B profile", "llama-3-8b", options, 40)]


def agreements(s):
    command = [s.program, "agreement", "--device", s.device, "--random", "tiny" if s.dry else "llama-3-8b", "--json"]
    # Roundings grow from layer to layer: tolerances are for four.
    command += [] if s.dry else ["--layers", "4"]
    sizes = ["--prompts", "4", "--shared", "70", "--own", "20", "--new", "4"] if s.dry else ["--prompts", "32", "--shared", "900", "--own", "100", "--new", "16"]
    compared = [
        ("agreement batch-invariant", ["--reference", "batch-invariant", "--tolerance", "0.15"]),
        ("agreement prefix cache", ["--reference", "no-prefix-cache", "--tolerance", "0", "--batch-invariant"]),
        # With cublasLt another number of rows rounds differently, and the second engine is asked twice as much.
        ("agreement graphs", ["--reference", "no-graphs", "--tolerance", "0", "--batch-invariant"]),
        ("agreement fp8", ["--reference", "default-compute", "--tolerance", "100", "--compute", "fp8", "--cuda-variant", "wgmma"]),
    ]
    return [Step(name, [*command, *sizes, *options], 30, agreed) for name, options in compared]


def quantised(s):
    """Eight layers in q4k and q8_0, whose weights are expanded before a product of many rows."""
    return [device(s, f"8B {quant}", "llama-3-8b", ["--layers", "8", "--quant", quant, *FEW], 30) for quant in ("q4k", "q8_0")]


def absent(s, package):
    return None if s.dry or importlib.util.find_spec(package) else f"there is no {package}"


def measurements(s):
    few = [
        ("8B wgmma", ["--cuda-variant", "wgmma"]),
        ("8B fp8", ["--compute", "fp8"]),
        ("8B fp8 wgmma", ["--compute", "fp8", "--cuda-variant", "wgmma"]),
        ("8B batch-invariant", ["--batch-invariant"]),
    ]
    small = ["--decode", "1,64", "--decode-context", "256", "--short", "1000,60,20"]
    steps = [
        *profile(s),
        *agreements(s),
        *[device(s, name, "llama-3-8b", [*options, *FEW], 30) for name, options in few],
        Step("products of torch", ["true"] if s.dry else [sys.executable, os.path.join(HERE, "products.py")], 45, missing=absent(s, "torch")),
        *quantised(s),
        device(s, "0.5B", "qwen2.5-0.5b", small, 20),
        device(s, "0.5B without graphs", "qwen2.5-0.5b", ["--no-graphs", *small], 20),
        device(s, "30B-A3B", "qwen3-30b-a3b", ["--decode", "1,64", "--decode-context", "256", "--prefill", "8"], 30),
        Step("transformers", ["true"] if s.dry else [sys.executable, os.path.join(HERE, "peer.py")], 60, missing=absent(s, "transformers")),
    ]
    ncu = shutil.which("ncu", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if ncu:
        # It keeps a copy of the memory that a kernel writes, so the cache must be small.
        counters = [ncu, "--clock-control", "none", "--kernel-name", "regex:attend", "-c", "4", "--set", "basic"]
        options = ["--layers", "2", "--no-graphs", "--kv-memory", "2GiB", "--bandwidth", "1", "--arithmetic", "1", "--decode", "64", "--decode-context", "256"]
        steps.append(Step("counters of attention", [*counters, *device(s, "of counters", "llama-3-8b", options, 40).command], 40))
    return steps


def faults(s, failed):
    """The commands that failed, once more: waiting after every launch, and under memcheck."""
    again = []
    for step in failed[:3]:
        again.append(Step(f"{step.name} with waiting", step.command, 60, step.judge, EARNEST_CUDA_SYNC="1"))
        program = sanitizer_program()
        if program and not s.dry:
            check = [program, "--tool", "memcheck", "--kernel-name", "kns=earnest", "--padding", "512", "--error-exitcode", "9"]
            again.append(Step(f"{step.name} under memcheck", [*check, *step.command], 90, sanitized))
    return again


def main():
    parser = argparse.ArgumentParser(prog="run.sh")
    parser.add_argument("--seconds", type=float, help="most seconds for all steps [480, or 180 with --second]")
    parser.add_argument("--second", action="store_true", help="what tells most after a change: correctness in short, the first measurement, a profile, then the rest")
    parser.add_argument("--only", default="", help="only steps whose name has this text")
    parser.add_argument("--out", help="folder of the results [$OUT, else gpu-results]")
    parser.add_argument("--program", help="earnest-dev, if it is neither beside this script nor in cargo's folder")
    parser.add_argument("--dry-run", action="store_true", help="small sizes on stand-ins of NVIDIA's libraries, which compute nothing")
    args = parser.parse_args()
    if args.seconds is None:
        args.seconds = 180 if args.second else 480
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    s = Session(args)
    try:
        s.together(environment(s), 1)
        right = correctness(s)
        failed = s.together(right[:4] + right[5:6] if args.second else right, 1 if s.dry else 5)
        if failed:
            s.together(faults(s, failed), 2)
            s.together(first_measurement(s), 1)
        elif args.second:
            s.together([*first_measurement(s), *profile(s), *agreements(s)], 1)
            s.together(sanitizers(s), 2 if s.dry else 5, 30)
            s.together(quantised(s), 1)
        else:
            s.together(sanitizers(s), 2 if s.dry else 5, 75)
            s.together([*first_measurement(s), *measurements(s)], 1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        for child in s.children:
            stop(child)
        s.keep()
        shutil.rmtree(s.work, ignore_errors=True)
    wrong = [row["step"] for row in s.rows if row["verdict"] == "FAIL"]
    passed = sum(row["verdict"] == "pass" for row in s.rows)
    print(f"{len(s.rows)} steps, {passed} passed, {len(wrong)} failed{': ' + ', '.join(wrong) if wrong else ''}, in {time.monotonic() - s.started:.0f} s")
    # Nothing that was checked is no success.
    sys.exit(1 if wrong or not passed else 0)


main()
