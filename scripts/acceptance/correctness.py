"""The first command: right or wrong, and where the time goes."""
import functools
import json
import os
import shutil
import subprocess

from harness import Beside, NotRun, document, phases, reference_checkpoints

# What bf16 may change in a reference checkpoint: its logits and the lead of a greedy token that is lost, in units of the spread (standard deviation) of its logits,
# 0.16 to 2.7. Twice the most that correct roundings changed: `dev golden --device cpu` over all 47 with matrices in bf16 and in f16, with products in bf16 and f32,
# and with keys and values in bf16 and f32. Logits that have nothing to do with the recorded ones are about 4 apart somewhere in the vocabulary;
# with weights in q4k, 46 of the 47 are beyond these limits.
# Dense: 0.11 (phi4-mini; another rounding 0.14, gemma3-vl-sparse-config) and 0.056 (phi4-mini).
DENSE = (0.28, 0.12)
# Experts: 0.157 (gpt-oss-bf16) and 0.325 (gpt-oss-bf16; qwen3-moe 0.23, mixtral 0.22): another rounding gives a token other experts where scores are close.
MIXTURE = (0.35, 0.65)
# Where it gave others to the last token too, or errors are larger: granite3-moe 0.83 and 0.44, deepseek-v3 0.61 and 0.20, gemma4-moe 0.88 and 0.34, gpt-oss-bf16 0.34
# on the twins, gemma4-e2b 0.18 and 0.14, gemma3n-text 0.18 and 0.05, qwen3.5 0.17 and 0.33. A GPU computes granite3-moe and gpt-oss-bf16 of these.
OTHERS = {
    "granite3-moe": (1.7, 0.9),
    "deepseek-v3": (1.25, 0.5),
    "gemma4-moe": (1.8, 0.7),
    "gpt-oss-bf16": (0.7, 0.65),
    "gemma4-e2b": (0.4, 0.3),
    "gemma3n-text": (0.4, 0.12),
    "qwen3.5": (0.35, 0.7),
}
# Another rounding gives a token other experts where scores are close: few tokens, far away. So mixtures are judged by the root mean square of the differences
# of log-probabilities, in units of their spread: most of it for each. Beside f32, bf16 is at 0.02 with 8 and with 128 experts and at 0.2 with gpt-oss's
# (a model of these shapes in PyTorch); what has nothing to do with the reference is at 1.4.
MIXTURES = {"mixtral-8x7b-2": 0.1, "qwen3-30b-a3b-4": 0.1, "gpt-oss-20b-4": 0.4}
VARIANTS = ["--cuda-variant", "attention-warps,fused-norms"]
# Steps of reference checkpoints. The default's kernels in 16 bits: sums of normed branches, factors of a norm over all heads (olmo3), caps of scores and logits
# (gemma2), norms with offsets and biases of every product (phi2, in f16), routed experts with biases and sinks (gpt-oss). Then those of the variants of attention
# and norms, with biases, norms of queries, and experts. Not among them: quantised weights and 8-bit floats, ALiBi, and heads of more than 32 dimensions; the checks of
# single kernels have some of these.
DECODERS = {
    "gpt-oss-mxfp4": ("gpt-oss-mxfp4", []),
    "gemma2": ("gemma2", ["--dtype", "bf16"]),
    "olmo3": ("olmo3-yarn", ["--dtype", "bf16"]),
    "phi2": ("phi2", ["--dtype", "f16"]),
    "gpt-oss-mxfp4-variants": ("gpt-oss-mxfp4", VARIANTS),
    "qwen2-variants": ("qwen2", ["--dtype", "bf16", *VARIANTS]),
    "qwen3-variants": ("qwen3", VARIANTS),
}
# Tools and what they check, in their order: races first, which no twin can show, and small decoders before all checks of kernels.
SANITIZED = [
    (tool, what)
    for tools in (("racecheck", "memcheck"), ("initcheck", "synccheck"))
    for what in [*DECODERS, "kernels"]
    for tool in tools
]
PROFILED = ["qwen2.5-0.5b", "llama-3.2-1b", "llama-3-8b-4"]
# Seconds that a profile needs.
PROFILE_S = 30
# An engine takes all memory that is free, if it is not told; here two share it.
SHARED_MEMORY, LITTLE_MEMORY = ["--kv-memory", "4GiB"], ["--kv-memory", "64MiB"]


def run(s):
    s.make(
        ("llama-3-8b-4", "llama-3-8b", 4, True),
        ("qwen2.5-0.5b", "qwen2.5-0.5b", None, False),
        ("mixtral-8x7b-2", "mixtral-8x7b", 2, True),
        ("llama-3.2-1b", "llama-3.2-1b", None, False),
        ("llama-3-70b-1", "llama-3-70b", 1, True),
        ("qwen3-30b-a3b-4", "qwen3-30b-a3b", 4, True),
        ("gpt-oss-20b-4", "gpt-oss-20b", 4, True),
    )
    # What is not timed shares the GPU with compute-sanitizer, whose checks take minutes; profiles have it alone.
    sanitizers = [functools.partial(sanitize, s, tool, what) for tool, what in SANITIZED]
    beside = Beside(s, sanitizers if shares_gpu() else [])
    kernels(s)
    golden(s)
    for model in s.real:
        real_model(s, model)
    agreements(s)
    profiles = [name for name in PROFILED if s.only in f"profile-{name}" and s.known.get(f"profile-{name}", {}).get("verdict") != "pass"]
    left = beside.end(keep=PROFILE_S * len(profiles)) if shares_gpu() else sanitizers
    for name in PROFILED:
        profile(s, name)
    for check in left:
        check()


def shares_gpu():
    """False if the GPU takes one process at a time (nvidia-smi -c EXCLUSIVE_PROCESS)."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return True
    asked = subprocess.run([program, "--query-gpu=compute_mode", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    return "Exclusive" not in asked.stdout


def memory(s):
    """Options of an engine beside compute-sanitizer's."""
    return [] if s.dry else SHARED_MEMORY


def stand_ins(s):
    """Variables that put stand-ins of NVIDIA's libraries in their place: kernels compute nothing there. For dry runs."""
    folder = os.path.join(s.work, "stand-ins")
    compiler = next((name for name in [os.environ.get("CC"), "cc", "gcc", "clang"] if name and shutil.which(name)), None)
    if compiler is None:
        raise NotRun("a dry run needs a C compiler for this")
    os.makedirs(folder, exist_ok=True)
    for number, name in [(1, "libcuda.so.1"), (2, "libnvrtc.so.13"), (3, "libcublasLt.so.13")]:
        if not os.path.exists(os.path.join(folder, name)):
            options = ["-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-w", f"-DLIBRARY={number}", "-o", os.path.join(folder, name)]
            subprocess.run([compiler, *options, "tests/cuda_twin/libraries.c"], check=True)
    return {"EARNEST_CUDA_LIBRARIES": folder}


def on_gpu(s, name, title, command, judge, **options):
    """A step of a command that needs a GPU: in a dry run on the stand-ins, where only its document's form is judged."""
    if not s.dry:
        return s.step(name, title, command, judge, **options)

    def act():
        status = s.run(name, command, options.get("limit", 60), stand_ins(s))
        return status in (0, 5), formed(document(s.path(name + ".json")))[1]

    def formed(d):
        return True, f"on stand-ins, which compute nothing: {judge(d)[1]}"

    return s.act(name, title, act, command, checkpoint=options.get("checkpoint"), base=options.get("base"), judge=formed)


def kernels(s):
    def judge(d):
        wrong = "" if s.dry else "".join(f"; WRONG: {c.name}: {c.error:.3g}, same bits {c.same_bits}" for c in d.checks if not c.passed)
        return d.passed, f"{len(d.checks)} checks{wrong}"

    on_gpu(s, "kernels", "kernels", [s.binary, "dev", "kernels", "--device", "cuda", "--json"], judge, limit=150, least=20)


def rounding(s, name):
    """What bf16 may change in a reference checkpoint: its logits, and the lead of a greedy token that is lost."""
    folder = os.path.join(s.golden, name)
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    texts = [config, config.get("text_config") or {}]
    experts = any(text.get(field) for text in texts for field in ("num_local_experts", "num_experts", "n_routed_experts"))
    spread = max(prompt.logits_stats.std for prompt in document(os.path.join(folder, "golden.json")).prompts)
    return [spread * most for most in OTHERS.get(name, MIXTURE if experts else DENSE)]


def golden(s):
    """The reference checkpoints: f32 closely, bf16 within its rounding, with cublasLt and with our own products. Every folder is compared or
    named: some architectures are refused on a GPU."""
    folders = len(reference_checkpoints(s.golden))

    def judge(d, dtype):
        wrong = ""
        for r in d.results:
            logits, lead = rounding(s, r.name) if dtype == "bf16" else (d.tolerance, d.tolerance)
            if r.largest_difference > logits or r.largest_lost_margin > lead:
                wrong += f"; WRONG: {r.name}: logits within {r.largest_difference:.5f} (at most {logits:.3g}), lead lost {r.largest_lost_margin:.4f} (at most {lead:.3g})"
        worst = max(r.largest_difference for r in d.results)
        refused = "".join(f"; not on this device: {r.name}" for r in d.refused)
        lead = max(r.largest_lost_margin for r in d.results)
        detail = f"{len(d.results)} checkpoints, logits within {worst:.5f}, largest lead lost {lead:.4f}{refused}{wrong}"
        return not wrong and len(d.results) >= 14 and len(d.results) + len(d.refused) == folders, detail

    for own in [[], ["--batch-invariant"]]:
        for dtype, tolerance in [("f32", "0.001"), ("bf16", "1")]:
            command = [s.binary, "dev", "golden", s.golden, "--device", s.device, "--dtype", dtype, "--tolerance", tolerance, *own, *memory(s), "--json"]
            name = f"golden {dtype}{' own products' if own else ''}"
            # The exit code is of one tolerance for all. A difference that is no number is null, at which `judge` fails.
            s.step(name.replace(" ", "-"), name, command, lambda d, dtype=dtype: judge(d, dtype), limit=120, codes=(0, 5))


def real_model(s, model):
    """Texts of a real model as on the CPU, except at small margins. In f32 only the order of sums differs, in bf16 every rounding does. Sampled texts
    draw the same random numbers."""
    sampled = ["--temperature", "0.8", "--top-p", "0.9"]
    for dtype, tenths, options in [("f32", 8, []), ("bf16", 3, []), ("f32", 6, sampled)]:
        name = f"real-{os.path.basename(model)}-{dtype}{'-sampled' if options else ''}"
        title = f"{model} in {dtype}{', top-p 0.9' if options else ''}"
        limit = "6" if s.dry else "64"
        command = [s.binary, "run", "arithmetic-bench", "--model", model, "--dtype", dtype, "--limit", limit, "--max-tokens", "24", *options, *memory(s), "--json"]

        def act():
            texts = []
            for device in ["cpu", s.device]:
                one = f"{name}-{device}"
                results = os.path.join(s.work, "runs", one)
                shutil.rmtree(results, ignore_errors=True)
                status = s.run(one, [*command, "--device", device, "--results", results], 150)
                if status == "time" and s.left() <= 1:
                    raise NotRun("it was not done when the time of this command was over")
                if status not in (0, 1):
                    return False, f"on {device}: exit code {status}: {s.tail(one)}"
                run = document(s.path(one + ".json")).manifest.run
                lines = s.path(one + ".jsonl")
                exported = s.run(one + "-export", [s.binary, "export", run, "--results", results, "--format", "jsonl", "--output", lines], 30)
                if exported != 0:
                    return False, f"export: {s.tail(one + '-export')}"
                rows = [json.loads(line) for line in open(lines)]
                texts.append({row["item"]: (row["completion"] or {}).get("ids") for row in rows})
            here, there = texts
            same = sum(ids is not None and ids == there.get(item) for item, ids in here.items())
            passed = len(here) == len(there) > 0 and 10 * same >= tenths * len(here)
            return passed, f"{same} of {len(here)} texts as on the CPU (at least {tenths} in 10)"

        s.act(name, title, act, command, least=20)


def agreements(s):
    """The engine against itself in another configuration, in the shapes of published models with few layers."""
    many = ["--prompts", "4", "--shared", "70", "--own", "20", "--new", "4"] if s.dry else ["--prompts", "32", "--shared", "900", "--own", "100", "--new", "16"]
    few = ["--prompts", "3", "--shared", "40", "--own", "10", "--new", "3"] if s.dry else ["--prompts", "8", "--shared", "300", "--own", "60", "--new", "8"]
    long = few if s.dry else ["--prompts", "6", "--shared", "7000", "--own", "600", "--new", "8"]
    llama, own = "llama-3-8b-4", "batch-invariant"
    for name, title, checkpoint, reference, tolerance, options in [
        ("library", "cublasLt and our own products", llama, own, "0.15", many),
        ("cache", "with and without the prefix cache, bit for bit", llama, "no-prefix-cache", "0", [*many, "--batch-invariant"]),
        ("cache-library", "the prefix cache with cublasLt", llama, "no-prefix-cache", "0.15", many),
        ("cpu", "the CPU and the GPU", llama, "cpu", "0.15", few),
        ("8k", "contexts of 8k", llama, own, "0.15", long),
        ("8k-cache", "contexts of 8k without the prefix cache, bit for bit", llama, "no-prefix-cache", "0", [*long, "--batch-invariant"]),
        ("q8_0", "q8_0 expanded for cublasLt and our own products", llama, own, "0.15", [*few, "--quant", "q8_0"]),
        ("q4k", "q4k expanded for cublasLt and our own products", llama, own, "0.15", [*few, "--quant", "q4k"]),
        ("q6k", "q6k expanded for cublasLt and our own products", llama, own, "0.15", [*few, "--quant", "q6k"]),
        ("small", "cublasLt and our own products, 0.5B", "qwen2.5-0.5b", own, "0.25", many),
        ("small-cpu", "the CPU and the GPU, 0.5B", "qwen2.5-0.5b", "cpu", "0.25", few),
        ("mixture", "cublasLt and our own products, a mixture of experts", "mixtral-8x7b-2", own, "1", many),
        ("mixture-cpu", "the CPU and the GPU, a mixture of experts", "mixtral-8x7b-2", "cpu", "1", few),
        ("128-experts", "the CPU and the GPU, 128 experts", "qwen3-30b-a3b-4", "cpu", "1", few),
        ("gpt-oss", "the CPU and the GPU, gpt-oss's experts", "gpt-oss-20b-4", "cpu", "1", few),
        ("70b", "a layer of 70B in q4k", "llama-3-70b-1", own, "0.15", [*few, "--quant", "q4k"]),
    ]:
        command = [s.binary, "dev", "agreement", "--model", s.checkpoint(checkpoint), "--device", s.device, "--reference", reference]
        command += ["--tolerance", tolerance, *options, *memory(s), "--json"]

        def judge(d, options=options, reference=reference, checkpoint=checkpoint):
            r = d.result
            most = MIXTURES.get(checkpoint)
            detail = (
                f"log-probabilities within {r.largest_difference:.5f}, all within {d.error_of_spread:.5f} of their spread"
                f"{f' (at most {most})' if most else ''}, {r.tokens} tokens ({d.distinct_tokens} different ones) before the first difference, "
                f"largest lead lost {r.largest_lost_margin:.4f}"
            )
            # Two engines that only repeat one token agree, and both may be wrong. Some random models do that; they are compared with the CPU too. And
            # without cublasLt our products are compared with themselves.
            passed = d.passed and (s.dry or checkpoint != llama or d.distinct_tokens > 3) and (most is None or d.error_of_spread <= most)
            if not s.dry and reference == own and "--batch-invariant" not in options:
                passed = passed and d.engine.options.products == "cublasLt"
            return passed, detail

        s.step(f"agree-{name}", title, command, judge, limit=100, least=15, checkpoint=checkpoint, codes=(0, 5))


def profile(s, name):
    """Device time by kernel and shape."""
    sizes = ["--decode", "1,3", "--decode-context", "40", "--prefill", "2", "--prefill-length", "64"] if s.dry else ["--decode", "1,32,256", "--prefill", "16"]
    command = [s.binary, "dev", "gpu-profile", "--model", s.checkpoint(name), "--device", "cuda", *sizes, "--save", s.path(f"profile-{name}-saved.json"), "--json"]

    def judge(d):
        whole = all(p.profile.steps > 0 and 0 < p.profile.busy_s <= p.profile.step_s * 1.001 and p.profile.rows for p in d.profile)
        return whole and len(d.profile) == len(d.decode) + len(d.prefill) > 1, phases(d)

    on_gpu(s, f"profile-{name}", f"profile of {name}", command, judge, limit=60, least=15, checkpoint=name)


def sanitize(s, tool, what):
    """Memory errors, races, uninitialised memory and barriers: on the checks of single kernels, or on steps of small decoders, whose norms,
    activations and routing those checks do not launch."""
    program_command = ["dev", "kernels"]
    if what != "kernels":
        checkpoint, options = DECODERS[what]
        program_command = ["dev", "golden", os.path.join(s.golden, checkpoint), "--tolerance", "1", *options, *LITTLE_MEMORY]
    command = ["--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9", s.binary, *program_command, "--device", "cuda", "--json"]

    def act():
        if s.dry:
            raise NotRun("a dry run has nothing to check")
        places = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", os.environ.get("PATH", "")]
        program = shutil.which("compute-sanitizer", path=":".join(places))
        if program is None:
            raise NotRun("compute-sanitizer is not there")
        name = f"sanitize-{tool}-{what}"
        status = s.run(name, [program, *command], s.left())
        text = open(s.path(name + ".json"), errors="replace").read() + open(s.path(name + ".log"), errors="replace").read()
        lines = [line.strip("= ") for line in text.splitlines()]
        if status == "time":
            raise NotRun(f"not done in its time; the same command tries again, alone with --only sanitize-{tool}-{what}")
        broken = [line for line in lines if any(words in line.lower() for words in ("device not supported", "failed to initialize", "unable to"))]
        if broken:
            raise NotRun(f"it does not work on this machine: {broken[0]}")
        said = [line for line in lines if "SUMMARY" in line]
        clean = bool(said) and all(" 0 errors" in line or " 0 hazards" in line for line in said)
        errors = [line for line in lines if line.startswith(("Invalid", "Error", "Race", "Uninitialized", "Barrier"))]
        return status == 0 and clean, "; ".join([*said, *errors[:3]]) or f"exit code {status}: {s.tail(name)}"

    s.act(f"sanitize-{tool}-{what}", f"{tool} on {what}", act, command, least=40)
