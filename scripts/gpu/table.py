"""Tables of what run.sh measured.

    table.py --collect OUT > FILE.jsonl    one line a step, with its document, from the folder that run.sh filled
    table.py FILE.jsonl                    the tables in Markdown; benches/results/gpu.md has them
"""
import json
import sys
import tarfile

# Of steps whose output is long and says nothing when all is well.
SHORT = ("memcheck", "racecheck", "initcheck", "synccheck")


def collect(out):
    """Steps with their documents: JSON where there is one, else lines, else text."""
    with tarfile.open(f"{out}/results.tar.xz") as archive:
        files = {member.name.removeprefix("results/"): archive.extractfile(member).read().decode(errors="replace") for member in archive if member.isfile()}
    for line in open(f"{out}/steps.jsonl"):
        row = json.loads(line)
        name = row["step"].replace(" ", "-")
        text = files.get(name + ".json") or files.get(name + ".out", "")
        try:
            row["document"] = json.loads(text)
        except ValueError:
            lines = text.splitlines()
            if lines and all(line.startswith("{") for line in lines):
                row["document"] = [json.loads(line) for line in lines]
            else:
                row["document"] = "\n".join(lines[-40:] if name.startswith(SHORT) else lines)
        print(json.dumps(row, separators=(",", ":")))


def table(head, rows):
    if not rows:
        return
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def measured(steps):
    return [(name, d) for name, d in steps.items() if isinstance(d, dict) and "decode" in d]


def correctness(rows):
    kinds = ("kernels", "golden", "agreement", *SHORT)
    table(["Step", "Verdict", "What was found"], [(r["step"], r["verdict"], r["said"].split(" computing ")[0].replace("exit 5; ", "").replace("|", "/")[:170]) for r in rows if r["step"].startswith(kinds)])


def speed(steps):
    rows, work = [], []
    for name, d in measured(steps):
        if d["profile"]:
            continue
        decode = {(r["batch"], r["context"]): r for r in d["decode"]}
        for (batch, context), r in decode.items():
            rows.append((name, f"decode {batch} after {context}", f"{1e3 * r['step_s']:.2f} ms", f"{r['tokens_per_s']:.0f}", f"{100 * r['fraction']:.0f} %"))
        for r in d["prefill"]:
            rows.append((name, f"prefill {r['batch']} prompts", f"{1e3 * r['seconds']:.0f} ms", f"{r['tokens_per_s']:.0f}", f"{100 * r['fraction']:.0f} %"))
        for kind in ("shared", "ragged", "short"):
            r = d.get(kind)
            if r:
                new = f"{r['new_tokens'] // 3} to {r['new_tokens'] * 5 // 3}" if kind == "ragged" else r["new_tokens"]
                work.append((name, f"{r['prompts']} prompts of {r['shared']} + {r['own']}, {new} new", f"{r['seconds']:.2f} s", r["steps"], f"{100 * r['fraction']:.0f} %"))
    table(["Step", "Size", "Time", "Tokens/s", "Of the roofline"], rows)
    table(["Step", "Workload", "Time", "Steps", "Of the roofline"], work)


def profiles(steps):
    for name, d in measured(steps):
        for phase in d["profile"]:
            p = phase["profile"]
            print(f"{name}, {phase['phase']}: {1e3 * p['busy_s']:.2f} ms busy a step\n")
            rows = []
            for r in p["rows"][:10]:
                each = r["seconds"] / r["launches"]
                share = f"{100 * r['share_of_peak']:.0f} %" if r["share_of_peak"] is not None else "-"
                rows.append((r["kernel"], r["shape"], r["launches"], f"{1e6 * each:.1f} us", f"{100 * r['fraction']:.1f} %", share))
            table(["Kernel", "Shape", "Launches", "Each", "Share", "Of peak"], rows)


def ceilings(steps):
    rows = [r for r in steps.get("products of torch", []) if "shape" in r]
    table(["Product", "Rows", "PyTorch", "TFLOP/s", "TB/s"], [(f"{r['shape']} ({r['n']} x {r['k']})", r["m"], f"{1e6 * r['seconds']:.1f} us", f"{r['tflops']:.0f}", f"{r['tb_per_s']:.2f}") for r in rows])


def main():
    if sys.argv[1] == "--collect":
        return collect(sys.argv[2])
    rows = [json.loads(line) for line in open(sys.argv[1])]
    steps = {row["step"]: row["document"] for row in rows}
    correctness(rows)
    speed(steps)
    profiles(steps)
    ceilings(steps)


main()
