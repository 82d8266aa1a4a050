#!/usr/bin/env python3
"""The prompts of `earnest bench engine` through llama.cpp's server with continuous batching.

    cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target llama-server     # in llama.cpp; native by default
    earnest bench engine --model MODEL.gguf --repeat 1 --dump prompts.json
    python3 benches/peers/llama_cpp_bench.py --server build/bin/llama-server --model MODEL.gguf --prompts prompts.json --slots 8 16

needs: nothing beyond Python. The model runs in the file's own quantisation, as llama.cpp's users run it. Every slot is given the
prompts' shared beginning before the clock starts (`cache_prompt`), so no slot computes it in the time that is measured; earnest
computes it once within its time. Greedy, end of sequence ignored, exactly the same number of new tokens each. Loading is not counted.
Prints one JSON document: for each workload and number of slots the seconds of every repetition.
"""
import argparse, concurrent.futures, http.client, itertools, json, os, platform, statistics, subprocess, sys, threading, time

local = threading.local()


def post(port, body):
    if not hasattr(local, "connection"):
        local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    local.connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
    answer = local.connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"llama-server answered {answer.status}: {text[:400]!r}")
    return json.loads(text)


def ask(port, ids, new, slot=-1):
    answer = post(port, dict(prompt=ids, n_predict=new, temperature=0.0, top_k=1, ignore_eos=True, cache_prompt=True, id_slot=slot))
    if answer["tokens_predicted"] != new:
        raise SystemExit(f"expected {new} new tokens: {json.dumps(answer)[:400]}")
    return answer["timings"]


def server(args, slots, longest, flash_attention, kv):
    words = [args.server, "-m", args.model, "--host", "127.0.0.1", "--port", str(args.port), "-np", str(slots), "-c", str(slots * longest),
             "--kv-unified" if kv == "unified" else "--no-kv-unified", "-b", "2048", "-ub", "512", "-t", str(args.threads), "-tb", str(args.threads), "-fa", flash_attention,
             "--cache-ram", "0", "--ctx-checkpoints", "0", "--no-webui", "--log-disable"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", args.port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return process, words
        except OSError:
            pass
        time.sleep(0.1)
    process.kill()
    raise SystemExit("llama-server did not come up within a minute")


def seconds_of_cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="llama-server, compiled for this machine")
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True, help="file written by `earnest bench engine --dump`")
    parser.add_argument("--slots", type=int, nargs="+", default=[16])
    parser.add_argument("--workload", choices=["few-shot", "zero-shot"], help="only this one")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--flash-attention", nargs="+", choices=["auto", "on", "off"], default=["auto"])
    parser.add_argument("--kv", nargs="+", choices=["streams", "unified"], default=["streams"], help="a cache for each slot, or one for all")
    parser.add_argument("--port", type=int, default=8642)
    args = parser.parse_args()
    version = subprocess.run([args.server, "--version"], capture_output=True, text=True)
    document = dict(engine="llama.cpp, llama-server", version=(version.stdout + version.stderr).strip().splitlines(),
                    threads=args.threads, machine=platform.processor() or platform.machine(), model=args.model, measurements=[])
    for workload in json.load(open(args.prompts)):
        if args.workload and workload["kind"] != args.workload:
            continue
        prompts, new = workload["ids"], workload["new_tokens"]
        shared = list(os.path.commonprefix([tuple(ids) for ids in prompts]))
        longest = max(map(len, prompts)) + new + 8
        for kv, flash_attention in itertools.product(args.kv, args.flash_attention):
            for slots in args.slots:
                process, words = server(args, slots, longest, flash_attention, kv)
                try:
                    with concurrent.futures.ThreadPoolExecutor(slots) as pool:
                        times, cpu = [], []
                        for _ in range(args.repeat):
                            for slot in range(slots):
                                if len(shared) > 1:
                                    ask(args.port, shared, 1, slot)
                            used, began = seconds_of_cpu(process.pid), time.perf_counter()
                            answers = list(pool.map(lambda ids: ask(args.port, ids, new), prompts))
                            times.append(time.perf_counter() - began)
                            cpu.append(seconds_of_cpu(process.pid) - used)
                finally:
                    process.terminate()
                    process.wait()
                    vars(local).clear()
                document["measurements"].append(dict(
                    workload=workload["kind"], slots=slots, flash_attention=flash_attention, kv=kv, prompts=len(prompts), new_tokens=new,
                    seconds=times, cpu_seconds=cpu, prompt_tokens_computed=sum(a["prompt_n"] for a in answers),
                    samples_per_s=len(prompts) / statistics.median(times), command=words))
                print(f"{workload['kind']}, {slots} slots, flash attention {flash_attention}, kv {kv}: {times}", file=sys.stderr)
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
