#!/usr/bin/env python3
"""Shares of a program's time by kind of work, from a recording of perf.

    perf record -F 499 -D 2000 -o run.perf -- earnest bench engine --model MODEL.gguf --compute int8 --workload few-shot
    python3 benches/profile/shares.py run.perf [--symbols 15] [--json]

-D leaves loading out (milliseconds). A sample counts for the function it was taken in, so a share is that of the function's own
instructions; what is inlined counts for its caller. Threads: the main thread, named like the program, schedules, writes results and computes
its part of every step; `earnest-N` compute the others; `prompts` makes questions and their tokens, `judge` scores.
"""
import argparse, collections, json, re, subprocess, sys

# The first that matches counts.
KINDS = [
    ("rounding or arranging operands of products", r"quantise|arrange|pack_row|::gather"),
    ("keys and values, rotary", r"attention::bytes::write_on|rotary|::kv::|forward::place"),
    ("attention", r"attention"),
    ("matrix products", r"kernels::(matmul|tile|bytes)"),
    ("activation function", r"silu|gelu|elementwise"),
    ("norms", r"norm::"),
    ("sampling", r"sampler|largest"),
    ("questions", r"suite::.*(generat|items|draw|question)|number::"),
    ("tokeniser and prompts", r"tokenizers|tokenizer|regex|aho_corasick|onig|unicode_norm|minijinja|prompt::"),
    ("scoring", r"score|judge|answer::"),
    ("results", r"sqlite|btree|Btree|pager|[vV]dbe|run::store|serde|sha2|crc"),
    ("scheduling", r"scheduler|flight|prefix_wait|native::stop|native::engine|native::decoding"),
    ("handing work to threads, waiting", r"native::crew|rayon|crossbeam|sched|futex|task_switch|spin_unlock|softirq|syscall|thread_start|switch_mm|rcu|wake"),
    ("memory", r"malloc|free|calloc|realloc|mem(cpy|move|set|cmp)|page|alloc|cgroup|zap_|folio|fault"),
]


def kind(symbol):
    for name, pattern in KINDS:
        if re.search(pattern, symbol):
            return name
    return "other"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording")
    parser.add_argument("--symbols", type=int, default=12, help="functions to name")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    words = ["perf", "report", "-i", args.recording, "--stdio", "--no-children", "-g", "none", "-F", "sample,comm,sym", "--sort", "comm,sym",
             "--percent-limit", "0", "--field-separator", ";"]
    try:
        run = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("perf is not installed: it comes with the kernel's tools (linux-perf, linux-tools)")
    if run.returncode != 0:
        sys.exit(f"perf cannot read {args.recording}: {run.stderr.strip() or 'it says nothing'}")
    text = run.stdout
    kinds, threads, functions = collections.Counter(), collections.Counter(), collections.Counter()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        count, comm, symbol = (part.strip() for part in line.split(";", 2))
        count, symbol = int(count), re.sub(r"^\[.\] ", "", symbol)
        kinds[kind(symbol)] += count
        threads[re.sub(r"-\d+$", "-N", comm)] += count
        functions[symbol] += count
    total = sum(kinds.values())
    if total == 0:
        sys.exit(f"{args.recording} has no samples")
    share = lambda counter, most=None: {name: round(100 * count / total, 2) for name, count in counter.most_common(most)}
    document = dict(samples=total, kinds=share(kinds), threads=share(threads), functions=share(functions, args.symbols))
    if args.json:
        print(json.dumps(document, indent=1))
        return
    for title in ("kinds", "threads", "functions"):
        print(f"{title} (of {total} samples)")
        for name, percent in document[title].items():
            print(f"  {percent:6.2f} %  {name[:150]}")


if __name__ == "__main__":
    main()
