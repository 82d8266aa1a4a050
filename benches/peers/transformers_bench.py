#!/usr/bin/env python3
"""The prompts of `earnest bench engine` through Hugging Face transformers.

    earnest bench engine --model MODEL.gguf --repeat 1 --dump prompts.json
    python3 benches/peers/transformers_bench.py --model MODEL.gguf --prompts prompts.json --dtype bfloat16 --batch 16 32 64

needs: torch, transformers, gguf, accelerate (for a GGUF file). MODEL is a GGUF file or a Hugging Face folder; a GGUF file is
dequantised to float32 and then cast, so that the weights are those that earnest uses. Prompts are padded on the left and
batched in the order of their lengths; every prompt gets exactly the same number of new tokens, greedy, end of sequence ignored.
Loading is not counted. Prints one JSON document: for each workload and batch size the seconds of every repetition.
"""
import argparse, json, os, platform, statistics, time

import torch
import transformers
from transformers import AutoModelForCausalLM


def load(path, dtype):
    if path.endswith(".gguf"):
        model = AutoModelForCausalLM.from_pretrained(os.path.dirname(path) or ".", gguf_file=os.path.basename(path), dtype=torch.float32)
    else:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    return model.to(getattr(torch, dtype)).eval()


def generate(model, ids, new_tokens, batch):
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    out = [None] * len(ids)
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        width = max(len(ids[i]) for i in part)
        tokens = torch.zeros(len(part), width, dtype=torch.long)
        mask = torch.zeros(len(part), width, dtype=torch.long)
        for row, i in enumerate(part):
            tokens[row, width - len(ids[i]) :] = torch.tensor(ids[i])
            mask[row, width - len(ids[i]) :] = 1
        with torch.inference_mode():
            answer = model.generate(tokens, attention_mask=mask, max_new_tokens=new_tokens, min_new_tokens=new_tokens,
                                    do_sample=False, eos_token_id=None, pad_token_id=0)
        for row, i in enumerate(part):
            out[i] = answer[row, width:].tolist()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True, help="file written by `earnest bench engine --dump`")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--batch", type=int, nargs="+", default=[32])
    parser.add_argument("--workload", choices=["few-shot", "zero-shot"], help="only this one")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = load(args.model, args.dtype)
    document = dict(engine=f"transformers {transformers.__version__}, torch {torch.__version__}", dtype=args.dtype,
                    threads=args.threads, machine=platform.processor() or platform.machine(), model=args.model, measurements=[])
    for workload in json.load(open(args.prompts)):
        if args.workload not in (None, workload["kind"]):
            continue
        for batch in args.batch:
            seconds = []
            for _ in range(args.repeat):
                start = time.perf_counter()
                generate(model, workload["ids"], workload["new_tokens"], batch)
                seconds.append(time.perf_counter() - start)
            middle = statistics.median(seconds)
            document["measurements"].append(dict(workload=workload["kind"], prompts=len(workload["ids"]), new_tokens=workload["new_tokens"],
                                                 batch=batch, seconds=seconds, samples_per_s=len(workload["ids"]) / middle))
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
