#!/usr/bin/env python3
"""The prompts of `earnest bench engine` through llama.cpp's server with continuous batching, in one process.

    earnest bench engine --model MODEL.gguf --repeat 1 --dump prompts.json
    python3 benches/peers/llama_cpp_bench.py --model MODEL.gguf --prompts prompts.json --slots 16 64

needs: xllamacpp (llama.cpp's server as a module). The model runs in the file's own quantisation, as llama.cpp's users run it. Every slot is
given the prompts' shared beginning before the clock starts (`cache_prompt`), so no slot computes it in the time that is measured; earnest
computes it once within its time. Greedy, end of sequence ignored, exactly the same number of new tokens each. Loading is not counted.
Prints one JSON document: for each workload and number of slots the seconds of every repetition.
"""
import argparse, concurrent.futures, json, os, platform, resource, statistics, time

import xllamacpp


def server(args, slots, longest):
    p = xllamacpp.CommonParams()
    p.model.path = args.model
    p.n_parallel = slots
    p.n_ctx = slots * longest
    p.kv_unified = True
    p.n_batch = 2048
    p.n_ubatch = 512
    p.cpuparams.n_threads = args.threads
    p.cpuparams_batch.n_threads = args.threads
    p.n_gpu_layers = 0
    p.flash_attn_type = getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{args.flash_attention.upper()}")
    p.warmup = True
    p.verbosity = 1
    p.n_ctx_checkpoints = 0
    p.cache_ram_mib = 0
    return xllamacpp.Server(p)


def ask(s, ids, new, slot=-1):
    body = dict(prompt=ids, max_tokens=new, n_predict=new, temperature=0.0, top_k=1, ignore_eos=True, cache_prompt=True, id_slot=slot)
    answer = s.handle_completions(body)
    if isinstance(answer, (str, bytes)):
        answer = json.loads(answer)
    if answer.get("usage", {}).get("completion_tokens") != new:
        raise SystemExit(f"expected {new} new tokens: {json.dumps(answer)[:400]}")
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True, help="file written by `earnest bench engine --dump`")
    parser.add_argument("--slots", type=int, nargs="+", default=[16])
    parser.add_argument("--workload", choices=["few-shot", "zero-shot"], help="only this one")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--flash-attention", choices=["auto", "enabled", "disabled"], default="auto")
    args = parser.parse_args()
    document = dict(engine=f"llama.cpp (xllamacpp {getattr(xllamacpp, '__version__', '?')})", system=xllamacpp.get_system_info(),
                    threads=args.threads, machine=platform.processor() or platform.machine(), model=args.model, measurements=[])
    for workload in json.load(open(args.prompts)):
        if args.workload and workload["kind"] != args.workload:
            continue
        prompts, new = workload["ids"], workload["new_tokens"]
        shared = list(os.path.commonprefix([tuple(ids) for ids in prompts]))
        longest = max(map(len, prompts)) + new + 8
        for slots in args.slots:
            s = server(args, slots, longest)
            with concurrent.futures.ThreadPoolExecutor(slots) as pool:
                times, cpu = [], []
                for _ in range(args.repeat):
                    for slot in range(slots):
                        if len(shared) > 1:
                            ask(s, shared, 1, slot)
                    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
                    answers = list(pool.map(lambda ids: ask(s, ids, new), prompts))
                    after = resource.getrusage(resource.RUSAGE_SELF)
                    times.append(time.perf_counter() - began)
                    cpu.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
            usage = [a["usage"] for a in answers]
            computed = sum(u["prompt_tokens"] - u["prompt_tokens_details"]["cached_tokens"] for u in usage)
            document["measurements"].append(dict(
                workload=workload["kind"], slots=slots, prompts=len(prompts), new_tokens=new, seconds=times, cpu_seconds=cpu,
                prompt_tokens_computed=computed, samples_per_s=len(prompts) / statistics.median(times)))
            del s
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
