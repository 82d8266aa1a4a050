"""The second command: every variant of the computation beside the default, on few layers of the shapes that matter."""
from correctness import on_gpu
from harness import NotRun, document, phases

# Variants that change nothing but the products of quantised weights.
OF_QUANTISED = ("vector-dequantise", "fused-dequantise")
# Root mean square of the differences of log-probabilities in units of their spread, beside products of 16 bits (docs/cuda.md).
MOST_IN_8_BITS = 0.4


def run(s):
    shapes = {"dense": "llama-3-8b-4", "small": "qwen2.5-0.5b", "mixture": "mixtral-8x7b-2"}
    s.make(("llama-3-8b-4", "llama-3-8b", 4, True), ("qwen2.5-0.5b", "qwen2.5-0.5b", None, False), ("mixtral-8x7b-2", "mixtral-8x7b", 2, True))
    found = document(s.path("doctor.json")).cuda
    # A dry run's stand-ins have every instruction.
    runs = lambda first, only=None: s.dry or (tuple(found.capability) == tuple(only) if only else tuple(found.capability) >= first)  # noqa: E731
    table = [(v.name, v.changes, v.same_bits, ["--cuda-variant", v.name]) for v in found.variants if runs((8, 0), v.capability)]
    table.append(("batch-invariant", "all products by our own kernels", False, ["--batch-invariant"]))
    if runs((8, 9)):
        table.append(("fp8", "projections in 8-bit floats", False, ["--compute", "fp8"]))
    if runs((8, 9), (9, 0)):
        table.append(("fp8-wgmma", "projections in 8-bit floats by warp groups", False, ["--compute", "fp8", "--cuda-variant", "wgmma"]))
    # Wrong results before slow ones.
    for name, changes, same_bits, options in table:
        if name != "batch-invariant":
            weights = ["--quant", "q4k"] if name in OF_QUANTISED else []
            agree(s, name, changes, same_bits, [*options, *weights], shapes["dense"])
    same = ",".join(name for name, _, same_bits, _ in table if same_bits)
    table.append(("all-same-bits", same, True, ["--cuda-variant", same]))
    for kind, checkpoint in shapes.items():
        measure(s, f"default-{kind}", "the default", checkpoint, [])
        for name, changes, _, options in table:
            if name not in OF_QUANTISED:  # fp8 too: a mixture's experts are projections
                measure(s, f"variant-{name}-{kind}", f"{name} ({changes})", checkpoint, options, f"default-{kind}")
    for quant in ["q8_0", "q4k"]:
        weights = ["--quant", quant]
        measure(s, f"default-{quant}", f"the default in {quant}", shapes["dense"], weights)
        for name, changes, _, options in (row for row in table if not row[0].startswith("fp8")):
            measure(s, f"variant-{name}-{quant}", f"{name} in {quant} ({changes})", shapes["dense"], [*weights, *options], f"default-{quant}")


def times(d):
    """Seconds of each measurement: a step of decoding, a prefill, the workload."""
    decode = {f"decode {row.batch}": row.step_s for row in d.decode if row.step_s}
    prefill = {f"prefill {row.batch}": row.seconds for row in d.prefill}
    short = {"short prompts": d.short.seconds} if d.short else {}
    return {**decode, **prefill, **short}


def measure(s, name, title, checkpoint, options, base=None):
    sizes = ["--decode", "1,32,256", "--decode-steps", "24", "--prefill", "16", "--short", "500,60,20"]
    if s.dry:
        sizes = ["--decode", "1,3", "--decode-context", "20", "--prefill", "2", "--prefill-length", "40", "--short", "4,12,3"]
    command = [s.binary, "dev", "gpu-profile", "--model", s.checkpoint(checkpoint), "--device", "cuda", *sizes, *options, "--json"]

    def judge(d):
        mine = times(d)
        if base is None:
            return True, ", ".join(f"{what}: {1e3 * t:.2f} ms" for what, t in mine.items()) + " " + phases(d)
        try:
            other = times(document(s.path(base + ".json")))
        except (OSError, ValueError):
            raise NotRun(f"there is no measurement of the default to compare with ({base})") from None
        ratio = {what: other[what] / t for what, t in mine.items() if what in other and t > 0}
        best, worst = max(ratio.values()), min(ratio.values())
        word = "faster" if worst > 0.99 and best > 1.01 else "slower" if best < 1.01 and worst < 0.99 else "mixed" if best > 1.01 else "the same"
        return True, f"{word}: " + ", ".join(f"{what} x {r:.3f}" for what, r in ratio.items()) + " " + phases(d)

    on_gpu(s, name, f"{title}, {checkpoint}", command, judge, limit=45, least=15, checkpoint=checkpoint, base=base)


def agree(s, name, changes, same_bits, options, checkpoint):
    """A variant's results beside those of the default: the same bits where the table says so."""
    sizes = ["--prompts", "32", "--shared", "900", "--own", "100", "--new", "16"]
    if s.dry:
        sizes = ["--prompts", "3", "--shared", "40", "--own", "10", "--new", "3"]
    # Those of 8 bits are compared with those of 16. A right engine is at 0.25 of the spread on this shape, and one that has nothing to do with it at 1.4;
    # among the largest log-probabilities alone both are about 1 apart at most, and the tolerance tells them apart no more.
    eight = name.startswith("fp8")
    reference = "default-compute" if eight else "default-variants"
    tolerance = "2" if eight else "0" if same_bits else "0.15"
    command = [s.binary, "dev", "agreement", "--model", s.checkpoint(checkpoint), "--device", "cuda", "--reference", reference]
    # With cublasLt, whose products a recorded step has to repeat too: shapes are those of the default, and so are its algorithms.
    command += ["--tolerance", tolerance, *options, *sizes, "--json"]

    def judge(d):
        r = d.result
        detail = f"log-probabilities within {r.largest_difference:.6f}, all within {d.error_of_spread:.4f} of their spread"
        detail += f" (at most {MOST_IN_8_BITS})" if eight else ""
        return d.passed and not (eight and d.error_of_spread > MOST_IN_8_BITS), f"{detail}, largest lead lost {r.largest_lost_margin:.4f}"

    promised = "the same bits" if same_bits else f"the same within rounding{' to 8 bits' if eight else ''}"
    on_gpu(s, f"variant-{name}-agrees", f"{name} computes {promised} ({changes})", command, judge, limit=70, least=15, checkpoint=checkpoint)
