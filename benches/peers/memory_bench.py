#!/usr/bin/env python3
"""Memory and speed of earnest's arithmetics beside llama.cpp on one GGUF file, in turns.

    cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target llama-batched-bench     # in llama.cpp; native by default
    python3 benches/peers/memory_bench.py --earnest target/release/earnest --llama build/bin/llama-batched-bench --model MODEL.gguf

needs: nothing beyond Python; Linux. Every program decodes --new-tokens for each of --batch sequences after prompts of --prompt-tokens, on
--threads threads. In every round each program runs once, one after the other; memory is that of a run of its own with the largest batch. `resident`
is the largest resident memory that was seen (files that are mapped count), `anonymous` the part that is no file's. `..._of_peak` is the least time
that the machine's peaks allow for earnest's work, as a share of the time it took; `peaks` are those that each of earnest's runs measured for itself.
Prints one JSON document.
"""
import argparse, json, os, statistics, subprocess, sys, time


def run(words, environment=None):
    """Output, largest resident and anonymous memory in bytes, seconds of processor."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    most = dict(VmRSS=0, RssAnon=0)
    os.set_blocking(process.stdout.fileno(), False)
    output = b""
    while process.poll() is None:
        try:
            status = open(f"/proc/{process.pid}/status").read()
        except OSError:
            break
        for line in status.splitlines():
            name, _, value = line.partition(":")
            if name in most:
                most[name] = max(most[name], int(value.split()[0]) * 1024)
        output += process.stdout.read() or b""
        time.sleep(0.02)
    os.set_blocking(process.stdout.fileno(), True)
    output += process.stdout.read()
    if process.wait() != 0:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    return output.decode(), most["VmRSS"], most["RssAnon"]


def llama(args, batches):
    context = max(batches) * (args.prompt_tokens + args.new_tokens) + 64
    words = [args.llama, "-m", args.model, "-t", str(args.threads), "-tb", str(args.threads), "-c", str(context), "-npp", str(args.prompt_tokens),
             "-ntg", str(args.new_tokens), "-npl", ",".join(map(str, batches)), "--output-format", "jsonl"]
    output, resident, anonymous = run(words)
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {row["pl"]: dict(prefill=row["speed_pp"], decode=row["speed_tg"]) for row in rows}, resident, anonymous


def earnest(args, options, batches):
    words = [args.earnest, "bench", "engine", "--model", args.model, "--device", "cpu", "--threads", str(args.threads), "--sweep", "--repeat", "1", "--json",
             "--batch", ",".join(map(str, batches)), "--prompt-tokens", str(args.prompt_tokens), "--shared", "0", "--new-tokens", str(args.new_tokens), *options]
    document = json.loads(run(words)[0])
    rows = {row["batch"]: dict(prefill=row["prefill_tokens_per_s"], decode=row["decode_tokens_per_s"], prefill_of_peak=row["prefill_of_roofline"],
                               decode_of_peak=row["decode_of_roofline"]) for row in document["sweep"]}
    return rows | {"peaks": document["peaks"]}


def memory_of_earnest(args, options):
    words = [args.earnest, "bench", "engine", "--model", args.model, "--device", "cpu", "--threads", str(args.threads), "--repeat", "1", "--json", "--workload",
             "zero-shot", "--prompts", str(max(args.batch)), "--max-batch", str(max(args.batch)), "--new-tokens", str(args.new_tokens), *options]
    document, resident, anonymous = run(words)
    return resident, anonymous, json.loads(document)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--earnest", required=True)
    parser.add_argument("--llama", required=True, help="llama-batched-bench, compiled for this machine")
    parser.add_argument("--model", required=True)
    parser.add_argument("--arithmetic", nargs="+", default=["f32", "a8"], help="options of each arithmetic, e.g. a8 or a8,--kv,bf16")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-memory", action="store_true", help="speed only")
    args = parser.parse_args()
    options = {name: ["--compute", *name.split(",")] for name in args.arithmetic}
    speeds, memory = {}, {}
    for _ in range(args.rounds):
        one, resident, anonymous = llama(args, args.batch)
        speeds.setdefault("llama.cpp", []).append(one)
        memory["llama.cpp"] = dict(resident=resident, anonymous=anonymous)
        for name, words in options.items():
            speeds.setdefault(name, []).append(earnest(args, words, args.batch))
        print({name: runs[-1] for name, runs in speeds.items()}, os.getloadavg(), file=sys.stderr)
    for name, words in options.items() if not args.no_memory else ():
        resident, anonymous, document = memory_of_earnest(args, words)
        memory[name] = dict(resident=resident, anonymous=anonymous, weights=document["engine"]["weight_bytes"], load_s=document["load_s"])
    median = lambda name, batch, what: statistics.median(run[batch][what] for run in speeds[name])
    ratios = {name: {f"batch {batch}": {what: median(name, batch, what) / median("llama.cpp", batch, what) for what in ("prefill", "decode")}
                     for batch in args.batch} for name in options}
    print(json.dumps(dict(model=os.path.basename(args.model), file=os.path.getsize(args.model), threads=args.threads, prompt_tokens=args.prompt_tokens,
                          new_tokens=args.new_tokens, load_average=os.getloadavg(), speeds=speeds, memory=memory, ratios=ratios), indent=1))


if __name__ == "__main__":
    main()
