"""Steps of the acceptance: commands with limits of time, verdicts that survive an interruption, checkpoints made on the way."""
import ctypes
import glob
import hashlib
import json
import os
import shutil
import signal
import site
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import types

# The committed reference checkpoints.
GOLDEN = "tests/golden/engine/checkpoints"
# Bytes of all checkpoints that the three commands make, in GB.
CHECKPOINTS_GB = 42
# Folder of the archive that `pack` writes, and where the program lies in it: where this script looks for it.
PACKED, PROGRAM = "earnest-acceptance", "target/release/earnest"
# What the commands read besides the program; kernels for EARNEST_KERNELS.
NEEDED = ["scripts/gpu_acceptance.py", "scripts/acceptance/*.py", "tests/cuda_twin/libraries.c"]
NEEDED += ["crates/engine/src/cuda/kernels/*.cu", "crates/engine/src/cuda/kernels/*.cuh"]


def golden_folder():
    """The folder of reference checkpoints: below EARNEST_GOLDEN if it is set, else the committed ones."""
    root = os.environ.get("EARNEST_GOLDEN")
    folder = os.path.join(root, "engine", "checkpoints") if root else os.path.abspath(GOLDEN)
    if not reference_checkpoints(folder):
        raise OSError(f"{folder} has no reference checkpoints" + (": correct or unset EARNEST_GOLDEN" if root else ""))
    return folder


def reference_checkpoints(folder):
    """Names of the reference checkpoints of a folder."""
    return sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(folder, "*", "golden.json")))


def pack(binary, to, golden):
    """Writes one archive of the stripped program and all that the commands read."""
    # The committed ones too: one of them gives the large checkpoints their tokenizer.
    checkpoints = {name: os.path.join(folder, name) for folder in (GOLDEN, golden) for name in reference_checkpoints(folder)}
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, binary], check=True)
        os.chmod(stripped.name, 0o755)
        with tarfile.open(to, "w:xz", preset=6) as archive:
            archive.add(stripped.name, os.path.join(PACKED, PROGRAM))
            for path in sorted(path for pattern in NEEDED for path in glob.glob(pattern)):
                archive.add(path, os.path.join(PACKED, path))
            for name, folder in sorted(checkpoints.items()):
                archive.add(folder, os.path.join(PACKED, GOLDEN, name))
    size = os.path.getsize(to) / 1e6
    print(f"{to}: {size:.1f} MB with {len(checkpoints)} reference checkpoints; on the other machine: tar xf {os.path.basename(to)} && {PACKED}/scripts/gpu_acceptance.py correctness")
    return 0


def document(path):
    """A JSON document whose fields are attributes."""
    with open(path) as file:
        return json.load(file, object_hook=lambda fields: types.SimpleNamespace(**fields))


def steps(text):
    """The last row of every step in lines of JSON."""
    known = {}
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # cut off while it was written
        known[row["step"]] = row
    return known


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()


def roomy(gigabytes, folders):
    """The first of some folders with so many GB free, or None."""
    for folder in folders:
        if os.path.isdir(folder) and os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= gigabytes * 1e9:
            return folder
    return None


def libraries_of_pytorch():
    """Folders of NVRTC and cublasLt that Python packages brought."""
    folders = []
    for base in [*site.getsitepackages(), site.getusersitepackages(), *sys.path, *glob.glob("/opt/*/.venv/lib/python3*/site-packages")]:
        for name in ("libnvrtc.so.1*", "libcublasLt.so.1*"):
            for path in glob.glob(os.path.join(base, "nvidia", "*", "lib", name)):
                if os.path.dirname(path) not in folders:
                    folders.append(os.path.dirname(path))
    return ":".join(folders)


# Loaded before any fork: a child does as little as it can.
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1


def own_group():
    """In a child: makes it the first of a group, with which what it starts is ended too; ends it when this script is killed, so that nothing keeps
    the GPU's memory."""
    os.setpgid(0, 0)
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def signal_group(child, number):
    """Signals a child and what it started."""
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass  # it has just ended


class NotRun(Exception):
    """A step can not run here; the reason."""


class Session:
    """One call of the script."""

    def __init__(self, args):
        self.started = time.monotonic()
        self.command, self.dry, self.seconds = args.command, args.dry, args.seconds
        self.only, self.again, self.real, self.variants = args.only, args.again, args.real, args.variant
        self.temporary = None
        self.binary = os.path.abspath(args.binary)
        if self.command != "summary":  # which only reads results
            self.program, self.kernels, self.golden = digest(self.binary), self._kernels(), golden_folder()
        if os.environ.get("OUT"):
            os.makedirs(os.environ["OUT"], exist_ok=True)
        work = args.work
        if work is None and self.dry:
            work = self.temporary = tempfile.mkdtemp(prefix="earnest-acceptance.")
        elif work is None:
            parents = ["/dev/shm", tempfile.gettempdir()]
            known = [parent for parent in parents if os.path.isdir(os.path.join(parent, "earnest-acceptance"))]
            parent = (known or [roomy(CHECKPOINTS_GB, parents) or parents[-1]])[0]
            work = os.path.join(parent, "earnest-acceptance")
        self.work = os.path.abspath(work)
        self.results = os.path.join(self.work, "results")
        os.makedirs(self.results, exist_ok=True)
        self.device = "cpu" if self.dry else "cuda"
        self.environment = {**os.environ, "EARNEST_CACHE": os.path.join(self.work, "cache")}
        self.environment.pop("EARNEST_DEVICE", None)
        if not self.environment.get("EARNEST_CUDA_LIBRARIES"):
            self.environment["EARNEST_CUDA_LIBRARIES"] = libraries_of_pytorch()
        self.lines = os.path.join(self.results, "steps.jsonl")
        self.known = self._known()
        self.now = {}
        self.machine = None
        self.children = {}  # by the thread that waits for them
        self.stopped = set()
        self.closed = False
        self.lock = threading.RLock()  # the handler of signals closes too
        self.checkpoints = {}
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stopped)

    def _kernels(self):
        """Digest of the folder of EARNEST_KERNELS, or None."""
        folder = os.environ.get("EARNEST_KERNELS")
        if not folder:
            return None
        files = sorted(os.listdir(folder))
        return hashlib.sha256("".join(name + digest(os.path.join(folder, name)) for name in files if name.endswith((".cu", ".cuh"))).encode()).hexdigest()

    def _known(self):
        return steps(open(self.lines).read()) if os.path.exists(self.lines) else {}

    def _stopped(self, number, frame):
        self.close()
        self.archive()
        self.discard()
        os._exit(128 + number)

    def left(self):
        return self.seconds - (time.monotonic() - self.started)

    def has_device(self):
        """True if there is a GPU, or this is a dry run."""
        try:
            status = self.run("doctor", [self.binary, "doctor", "--json"], 60)
        except OSError as error:
            print(f"gpu_acceptance: the program does not start: {error}", file=sys.stderr)
            return False
        try:
            found = document(self.path("doctor.json"))
        except (OSError, ValueError):
            print(f"gpu_acceptance: `earnest doctor` failed ({status}): {self.tail('doctor')}", file=sys.stderr)
            return False
        self.machine = next(iter(found.cuda.libraries), None)
        if self.dry or found.cuda.ready:
            print("device: " + "; ".join(found.cuda.libraries), flush=True)
            print(f"{len(reference_checkpoints(self.golden))} reference checkpoints in {self.golden}", flush=True)
            return True
        print("gpu_acceptance: no GPU can be used: " + "; ".join(found.cuda.libraries), file=sys.stderr)
        print("gpu_acceptance: --dry-run tries every command on the CPU", file=sys.stderr)
        return False

    def path(self, name):
        return os.path.join(self.results, name)

    def tail(self, name, lines=3):
        try:
            with open(self.path(name + ".log"), errors="replace") as file:
                return " ".join(line.strip() for line in file.readlines()[-lines:])
        except OSError:
            return ""

    def run(self, name, command, limit, environment=None):
        """Runs a command: stdout to NAME.json, stderr to NAME.log. Returns its exit status, or "time" if its limit stopped it. NotRun if `stop` did."""
        limit = max(1, min(limit, self.left()))
        with open(self.path(name + ".command"), "w") as file:
            file.write(" ".join(command) + "\n")
        with open(self.path(name + ".json"), "w") as out, open(self.path(name + ".log"), "w") as log:
            with self.lock:
                if self.closed:
                    return "closed"
                all_variables = {**self.environment, **(environment or {})}
                child = subprocess.Popen(command, stdout=out, stderr=log, env=all_variables, preexec_fn=own_group)
                self.children[threading.get_ident()] = child
            try:
                status = child.wait(limit)
            except subprocess.TimeoutExpired:
                signal_group(child, signal.SIGTERM)
                try:
                    child.wait(8)
                except subprocess.TimeoutExpired:
                    signal_group(child, signal.SIGKILL)
                    child.wait()
                status = "time"
            finally:
                with self.lock:
                    del self.children[threading.get_ident()]
        if child in self.stopped:
            raise NotRun("stopped, so that what is timed has the GPU alone; the same command tries again")
        return status

    def stop(self, thread):
        """Ends the command that a thread waits for."""
        with self.lock:
            child = self.children.get(thread.ident)
            if child is not None:
                self.stopped.add(child)
                signal_group(child, signal.SIGKILL)

    def note(self, step, title, verdict, detail, key=None, base=None):
        """Records a verdict at once; `base` is the digest of the document that it was compared with."""
        detail = " ".join(str(detail).split())[:900]
        seconds = round(time.monotonic() - self.started, 1)
        row = {"step": step, "command": self.command, "title": title, "verdict": verdict, "detail": detail, "key": key, "at": seconds}
        row["machine"], row["base"] = self.machine, base
        with self.lock:
            self._keep(row)
            print(f"{seconds:5.0f} s  {verdict:8} {title}: {detail}", flush=True)
            self.archive()

    def _keep(self, row):
        with open(self.lines, "a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.known[row["step"]] = self.now[row["step"]] = row

    def resume(self, archive):
        """Takes over the results of an earlier machine: an archive that OUT got. Its GPU has to be of this one's kind. Returns why not, or None."""
        with tarfile.open(archive) as tar:
            members = {os.path.basename(member.name): member for member in tar if member.isfile()}
            if "steps.jsonl" not in members:
                return f"{archive} has no steps.jsonl: it is no archive of results"
            rows = steps(tar.extractfile(members.pop("steps.jsonl")).read().decode())
            rows = {step: row for step, row in rows.items() if row["verdict"] != "not run"}
            kind = lambda machine: str(machine).split(",")[0]  # noqa: E731
            other = next((kind(row["machine"]) for row in rows.values() if kind(row["machine"]) != kind(self.machine)), None)
            if other is not None:
                return f"{archive} has results of {other}, and this machine has {kind(self.machine)}: they do not belong together"
            taken = {step: row for step, row in rows.items() if self.known.get(step, {"verdict": "not run"})["verdict"] == "not run"}
            for name, member in members.items():
                # A step's files begin with its name, which may begin with another's.
                owner = max((step for step in rows if name.startswith(step)), key=len, default=None)
                if not os.path.exists(self.path(name)) or owner in taken:
                    with open(self.path(name), "wb") as file:
                        shutil.copyfileobj(tar.extractfile(member), file)
        for row in taken.values():
            self._keep(row)
        self.now.clear()  # steps of this command join when it comes to them
        print(f"{archive}: {len(taken)} results taken over", flush=True)
        return None

    def step(self, name, title, command, judge, limit=60, least=10, environment=None, checkpoint=None, codes=(0,), base=None):
        """Runs a command and judges its document.

        `judge` gets the document and returns (passed, detail). `least` are the seconds that have to be left for it to start, `checkpoint` what has
        to be made before, `codes` the exit codes with which there is a document to judge, `base` the step whose document `judge` reads too.
        """

        def act():
            status = self.run(name, command, limit, environment)
            if status == "time":
                if self.left() <= 1:
                    raise NotRun(f"it was not done when the {self.seconds} s of this command were over")
                return False, f"stopped at its limit of {limit} s: {self.tail(name)}"
            try:
                found = document(self.path(name + ".json"))
            except ValueError:
                return False, f"exit code {status}, no document: {self.tail(name)}"
            passed, detail = judge(found)
            if status not in codes:
                return False, f"exit code {status}; {detail} {self.tail(name)}"
            return passed, detail

        key = [command, environment]
        return self.act(name, title, act, key, least, checkpoint, base, judge)

    def act(self, name, title, act, key, least=10, checkpoint=None, base=None, judge=None):
        """Runs a step's function, which returns (passed, detail); true if it passed now or before. If only the step that it is compared with, `base`, was
        measured again, `judge` gets the document of before."""
        if self.only not in name:
            return False
        # Wherever the folders lie: another machine takes results over. More reference checkpoints are another command.
        text = json.dumps([key, self.program, self.kernels, self.dry]).replace(self.work, "WORK").replace(self.binary, "PROGRAM")
        text = text.replace(self.golden, " ".join(reference_checkpoints(self.golden)))
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        before = self.known.get(name)
        compared = digest(self.path(base + ".json")) if base and os.path.exists(self.path(base + ".json")) else None
        if before and before["key"] == key and before["verdict"] != "not run" and not self.again:
            if before.get("base") == compared:
                self.now[name] = before
                print(f"        {before['verdict']:8} {title}: done before", flush=True)
                return before["verdict"] == "pass"
            if before["verdict"] == "pass":
                title += f", measured earlier than {base}"
                act, least, checkpoint = lambda: judge(document(self.path(name + ".json"))), 0, None
        if self.left() < least:
            self.note(name, title, "not run", f"the {self.seconds} s of this command were over", key)
            return False
        try:
            if checkpoint is not None:
                self.await_checkpoint(checkpoint)
            passed, detail = act()
            verdict = "pass" if passed else "FAIL"
        except NotRun as reason:
            verdict, detail = "not run", str(reason)
        except Exception as error:  # a document without what the judge looks for fails the step, not the script
            verdict, detail = "FAIL", f"{type(error).__name__}: {error}; {self.tail(name)}"
        self.note(name, title, verdict, detail, key, compared)
        return verdict == "pass"

    def make(self, *wanted):
        """Makes random checkpoints in the background, one after the other: (name, shape, layers or None for all, small vocabulary)."""
        for name, *_ in wanted:
            self.checkpoints[name] = (threading.Event(), [])

        def work():
            for name, shape, layers, small in wanted:
                event, problem = self.checkpoints[name]
                folder = self.checkpoint(name)
                if not os.path.exists(os.path.join(folder, "whole")):
                    command = [sys.executable, "scripts/acceptance/make_checkpoint.py", folder, f"{GOLDEN}/llama", "--shape", shape]
                    command += ["--layers", str(layers)] if layers else []
                    command += ["--vocab", "16384"] if small else []
                    command += ["--tiny"] if self.dry else []
                    shutil.rmtree(folder, ignore_errors=True)
                    status = self.run("make-" + name, command, 200)
                    if status == 0:
                        open(os.path.join(folder, "whole"), "w").close()
                    else:
                        problem.append(f"{status}: {self.tail('make-' + name)}")
                event.set()

        threading.Thread(target=work, daemon=True).start()

    def checkpoint(self, name):
        return os.path.join(self.work, "tiny" if self.dry else "checkpoints", name)

    def await_checkpoint(self, name):
        event, problem = self.checkpoints[name]
        if not event.wait(max(1, self.left())):
            raise NotRun(f"the checkpoint {name} was not made in time")
        if problem:
            raise NotRun(f"the checkpoint {name} could not be made: {problem[0]}")

    def discard(self):
        """Removes the folder of a dry run that named none."""
        if self.temporary:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def close(self):
        """Ends what still runs; nothing starts any more."""
        with self.lock:
            self.closed = True
            for child in self.children.values():
                signal_group(child, signal.SIGKILL)

    def archive(self):
        """Keeps one archive of all results in the folder OUT."""
        out = os.environ.get("OUT")
        if not out:
            return
        partial = os.path.join(self.work, "archive.partial")
        with tarfile.open(partial, "w:gz", compresslevel=1) as tar:
            for name in sorted(os.listdir(self.results)):
                path = self.path(name)
                if os.path.isfile(path) and os.path.getsize(path) < 20_000_000:
                    tar.add(path, arcname=name)
        shutil.move(partial, os.path.join(out, "gpu-acceptance.tar.gz"))

    def summary(self, of_all=False):
        """Prints the summary as JSON; returns the exit code."""
        rows = list((self.known if of_all else self.now).values())
        if of_all:
            for row in rows:
                print(f"{row['command']:12} {row['verdict']:8} {row['title']}: {row['detail']}")
        short = [{field: row[field] for field in ("step", "title", "verdict", "detail")} for row in rows]
        text = json.dumps({"command": self.command, "seconds": round(time.monotonic() - self.started), "items": short})
        with open(self.path(f"summary-{self.command}.json"), "w") as file:
            file.write(text + "\n")
        print(text)
        self.archive()
        verdicts = [row["verdict"] for row in rows]
        return 1 if "FAIL" in verdicts else 3 if "not run" in verdicts or not verdicts else 0


class Beside:
    """Steps in a thread of their own, one after the other, beside those of the command."""

    def __init__(self, session, steps):
        self.session, self.left, self.ending = session, list(steps), False
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while self.left and not self.ending:
            self.left[0]()
            if not self.ending:
                self.left.pop(0)

    def end(self, keep):
        """Waits until all are done, or only `keep` seconds are left; then ends the one that runs. Returns those that are not done."""
        self.thread.join(max(0, self.session.left() - keep))
        self.ending = True
        while self.thread.is_alive():
            self.session.stop(self.thread)  # again, if it was about to start
            self.thread.join(0.1)
        return self.left


def timed(rows):
    """Rows of a measurement in which something was timed."""
    return [row for row in rows if row.fraction is not None]


def shares(rows):
    """Shares of the roofline by batch size (and context, where there are several)."""
    several = len({getattr(row, "context", 0) for row in rows}) > 1
    name = lambda row: f"{row.batch}" + (f" at {row.context}" if several else "")  # noqa: E731
    untimed = "".join(f"; batch {name(row)}: no step was timed" for row in rows if row.fraction is None)
    return ", ".join(f"{name(row)}: {100 * row.fraction:.0f} %" for row in timed(rows)) + untimed


def ceiling(d):
    """The measured ceiling that a document's shares are of."""
    return f"of {d.machine.bandwidth / 1e12:.3g} TB/s and {d.machine.arithmetic / 1e12:.4g} TFLOP/s measured"


def phases(d):
    """The largest rows of a document's profiles."""
    texts = []
    for phase in d.profile:
        p = phase.profile
        full = f", {1e3 * phase.step_s:.2f} ms at full speed" if phase.step_s else ""
        rows = "; ".join(
            f"{row.kernel} {100 * row.fraction:.0f} %" + (f" at {100 * row.share_of_peak:.0f} % of peak" if row.share_of_peak else "")
            for row in p.rows[:4]
        )
        texts.append(f"[{phase.phase}: busy {1e3 * p.busy_s:.2f} ms a step{full}; {rows}]")
    return " ".join(texts)
