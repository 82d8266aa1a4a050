"""The third command: final numbers of full shapes against measured ceilings. Every step is a process of its own, so the weights of 8B are read six times: in bf16
(all decoding, prefill and prompts after one load), for NUPA, in q8_0, q4k and 8-bit floats, and with our own products."""
import functools
import importlib.util
import os
import shutil
import sys

from correctness import on_gpu
from harness import NotRun, ceiling, document, shares, timed


def share(rows, batch):
    """Share of the roofline at a batch size."""
    found = [row.fraction for row in timed(rows) if row.batch == batch]
    return found[0] if found else 0.0


def run(s):
    s.make(
        ("llama-3-8b", "llama-3-8b", None, False),
        ("llama-3.2-1b", "llama-3.2-1b", None, False),
        ("qwen2.5-0.5b", "qwen2.5-0.5b", None, False),
        ("llama-3-70b-2", "llama-3-70b", 2, True),
        ("mixtral-8x7b-2", "mixtral-8x7b", 2, True),
        ("qwen3-30b-a3b-4", "qwen3-30b-a3b", 4, True),
        ("gpt-oss-20b-4", "gpt-oss-20b", 4, True),
    )
    full(s)
    nupa(s)
    beside(s)
    for name, title in [("llama-3.2-1b", "1B"), ("qwen2.5-0.5b", "0.5B")]:
        speed(s, f"speed-{name}", f"speed of {title}", name, ["--short", "8,12,3" if s.dry else "1000,60,20"], "1,8,64,512", "64")
    sampled = ["--temperature", "0.8", "--top-p", "0.9", "--short", "8,12,3" if s.dry else "1000,60,20"]
    speed(s, "speed-top-p", "1,000 short prompts with top-p 0.9, 1B", "llama-3.2-1b", sampled, "", "")
    speed(s, "speed-q8_0", "8B in q8_0", "llama-3-8b", ["--quant", "q8_0"], "1,32,256", "16")
    speed(s, "speed-q4k", "8B in q4k", "llama-3-8b", ["--quant", "q4k"], "1,32,256", "16", limit=120)
    fp8(s)
    speed(s, "speed-invariant", "8B, --batch-invariant", "llama-3-8b", ["--batch-invariant"], "1,32,256", "16")
    speed(s, "speed-70b-q4k", "two layers of 70B in q4k", "llama-3-70b-2", ["--quant", "q4k"], "1,8,64,256", "16")
    speed(s, "speed-mixture", "two layers of Mixtral", "mixtral-8x7b-2", [], "1,32,256", "16")
    speed(s, "speed-128-experts", "four layers with 128 experts", "qwen3-30b-a3b-4", [], "1,32,256", "16")
    speed(s, "speed-gpt-oss", "four layers of gpt-oss", "gpt-oss-20b-4", [], "1,32,256", "16")


def chosen(names, on):
    """Options for variants, which only a GPU has: a dry run's commands on the CPU go without."""
    return ["--cuda-variant", ",".join(names)] if names and on != "cpu" else []


def named(s, name):
    """A step's name with the chosen variants, so that the default's numbers are kept beside theirs."""
    return "+".join([name, *s.variants])


def titled(s, title, on):
    left_out = ", left out on the CPU" if on == "cpu" else ""
    return f"{title} (variants {', '.join(s.variants)}{left_out})" if s.variants else title


def device(s, checkpoint, name, options, on, variants):
    command = [s.binary, "dev", "device", "--model", s.checkpoint(checkpoint), "--device", on, *chosen(variants, on), *options]
    return [*command, "--save", s.path(name + "-saved.json"), "--json"]


def fp8(s):
    """8B with products of 8-bit floats: by warp groups where the device has them, for no other instruction of it has their full rate."""
    capability = tuple(document(s.path("doctor.json")).cuda.capability or ())
    if not s.dry and capability < (8, 9):
        return
    hopper = s.dry or capability == (9, 0)
    variants = list(dict.fromkeys([*s.variants, *(["wgmma"] if hopper else [])]))
    title = f"8B in 8-bit floats{', by warp groups' if hopper else ''}"
    speed(s, "speed-fp8", title, "llama-3-8b", ["--compute", "fp8"], "1,32,256", "16", limit=120, variants=variants, gpu_only=True)


def full(s):
    """Everything of 8B in bf16, after one load."""
    name, checkpoint = named(s, "speed-8b"), "llama-3-8b"
    options = ["--decode", "1,2,4,8,16,32,64,128,256,512", "--decode-context", "512,7600", "--prefill", "1,2,4,8,16,32,64,128,256,512"]
    options += ["--prefill-length", "256", "--shared", "5100,900,100,120", "--short", "1000,60,20"]
    if s.dry:
        options = ["--decode", "1,4", "--decode-context", "20,60", "--prefill", "1,3", "--prefill-length", "64", "--shared", "8,60,10,4", "--short", "6,12,3"]
    batch, least, most = (4, 0.0, 0.0) if s.dry else (256, 0.5, 0.34)

    def judge(d):
        shared, short = d.shared, d.short
        decode = [row for row in d.decode if row.context == d.decode[0].context]
        detail = (
            f"decode {shares(d.decode)}; prefill {shares(d.prefill)} of the roofline, at least {100 * least:.0f} % at {batch}; "
            f"5,100 prompts {shared.seconds:.1f} s, {100 * shared.fraction:.0f} % of the roofline (at least {100 * most:.0f}), "
            f"{shared.prefilled_tokens} prompt tokens computed, {shared.preemptions} set back; "
            f"1,000 short prompts {short.seconds:.2f} s, {100 * short.fraction:.0f} %; loaded in {d.load_s:.0f} s; {ceiling(d)}"
        )
        prefill = share(d.prefill, batch if not s.dry else 3)
        return share(decode, batch) >= least and prefill >= least and shared.fraction >= most, detail

    title = titled(s, "8B in bf16: decoding, prefill, 5,100 and 1,000 prompts", s.device)
    s.step(name, title, device(s, checkpoint, name, options, s.device, s.variants), judge, limit=260, least=60, checkpoint=checkpoint)


def speed(s, name, title, checkpoint, options, decode, prefill, limit=70, variants=None, gpu_only=False):
    on = "cuda" if gpu_only else s.device
    name, title = named(s, name), titled(s, title, on)
    if s.dry:
        decode, prefill = decode and "1,3", prefill and "2"
    sizes = ["--decode", decode, "--prefill", prefill]
    sizes += ["--decode-context", "20", "--prefill-length", "40"] if s.dry else []

    def judge(d):
        steps = ", ".join(f"{row.batch}: {1e3 * row.step_s:.2f} ms ({100 * row.fraction:.0f} %)" for row in timed(d.decode))
        prefills = "".join(f"; prefill {row.tokens_per_s:.0f} tokens/s ({100 * row.fraction:.0f} %)" for row in timed(d.prefill))
        workload = f"; {d.short.prompts} short prompts {d.short.seconds:.2f} s ({100 * d.short.fraction:.0f} %)" if d.short else ""
        detail = f"{steps}{prefills}{workload}; {d.engine.weight_bytes / 1e9:.2f} GB as {d.engine.weights_dtype}, loaded in {d.load_s:.0f} s; {ceiling(d)}"
        form = options[options.index("--quant") + 1] if "--quant" in options else "e4m3" if "fp8" in options else ""
        as_asked = s.dry or form in d.engine.weights_dtype
        return len(timed(d.decode)) == len(d.decode) and as_asked and (d.short is not None or len(d.decode) > 0), detail

    command = device(s, checkpoint, name, [*sizes, *options], on, s.variants if variants is None else variants)
    step = functools.partial(on_gpu, s) if gpu_only else s.step
    step(name, title, command, judge, limit=limit, least=25, checkpoint=checkpoint)


def nupa(s):
    """A thousand short prompts of a suite through the whole program: questions, tokenizer, engine, scoring, store."""
    limit = "12" if s.dry else "1060"
    for checkpoint, title in [("llama-3.2-1b", "1B"), ("llama-3-8b", "8B")]:
        name = named(s, f"nupa-{checkpoint}")
        results = os.path.join(s.work, "runs", name)
        command = [s.binary, "run", "nupa", "--model", s.checkpoint(checkpoint), "--device", s.device, *chosen(s.variants, s.device), "--limit", limit, "--max-tokens", "20"]
        command += ["--prompt", "raw", "--results", results, "--json"]

        def act():
            shutil.rmtree(results, ignore_errors=True)
            status = s.run(name, command, 90)
            if status == "time" and s.left() <= 1:
                raise NotRun("it was not done when the time of this command was over")
            if status not in (0, 1):
                return False, f"exit code {status}: {s.tail(name)}"
            m = document(s.path(name + ".json")).manifest
            return True, f"{limit} questions in {m.generation_s:.1f} s after {m.engine.load_s:.1f} s of loading"

        s.act(name, titled(s, f"{limit} NUPA questions, {title}", s.device), act, command, least=30, checkpoint=checkpoint)


def beside(s):
    """The same prompts by vLLM or transformers, if they are installed, beside this command's own time."""
    ours = named(s, "speed-8b")

    def judge(d):
        path = s.path(ours + ".json")
        mine = f"; ours {document(path).shared.seconds:.1f} s" if os.path.exists(path) else ""
        return True, f"{d.for_5100_s:.1f} s for 5,100 prompts, from {d.prompts}{mine}"

    for module, script, sizes in [("vllm", "vllm_run.py", ["5100"]), ("transformers", "transformers_run.py", ["64", "32"])]:

        def act():
            if s.dry:
                raise NotRun("a dry run has no GPU for it")
            if any(importlib.util.find_spec(needed) is None for needed in ("torch", module)):
                raise NotRun(f"python3 has no {module}")
            status = s.run(module, [sys.executable, f"scripts/acceptance/{script}", s.checkpoint("llama-3-8b"), *sizes], 200)
            if status != 0:
                raise NotRun(f"{status}: {s.tail(module)}")
            return judge(document(s.path(module + ".json")))

        s.act(module, f"{module} on the same prompts", act, [module, *sizes], least=60, checkpoint="llama-3-8b", base=ours, judge=judge)
