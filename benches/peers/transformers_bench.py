#!/usr/bin/env python3
"""The prompts of `earnest bench engine` through Hugging Face transformers.

    earnest bench engine --model MODEL.gguf --repeat 1 --dump prompts.json
    python3 benches/peers/transformers_bench.py --model MODEL.gguf --prompts prompts.json --dtype bfloat16 --batch 16 32 64

needs: torch, transformers, gguf, accelerate (for a GGUF file). MODEL is a GGUF file or a Hugging Face folder; a GGUF file is
dequantised to float32 and then cast, so that the weights are those that earnest uses. Prompts are padded on the left and
batched in the order of their lengths; every prompt gets exactly the same number of new tokens, greedy, end of sequence ignored.
With --share-prefix, the tokens that all prompts begin with are computed once, and their keys and values are copied into every batch.
Loading is not counted. Prints one JSON document: for each workload and batch size the seconds of every repetition.
"""
import argparse, copy, json, os, platform, statistics, sys, time

import torch
import transformers
from transformers import AutoModelForCausalLM, DynamicCache


def load(path, dtype):
    if path.endswith(".gguf"):
        model = AutoModelForCausalLM.from_pretrained(os.path.dirname(path) or ".", gguf_file=os.path.basename(path), dtype=torch.float32)
    else:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    return model.to(getattr(torch, dtype)).eval()


def shared_prefix(ids):
    """The tokens that all prompts begin with; at least one token of each prompt is left."""
    length = min(len(one) for one in ids) - 1
    return ids[0][: next((i for i in range(length) if any(one[i] != ids[0][i] for one in ids)), length)]


def generate(model, ids, new_tokens, batch, prefix=()):
    """Pads between the shared prefix and the rest of a prompt."""
    prefix = list(prefix)
    cache = None
    if prefix:
        with torch.inference_mode():
            cache = model(torch.tensor([prefix]), past_key_values=DynamicCache(), use_cache=True, logits_to_keep=1).past_key_values
    ids = [one[len(prefix) :] for one in ids]
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
        own = {}
        if prefix:
            tokens = torch.cat([torch.tensor([prefix]).expand(len(part), -1), tokens], dim=1)
            mask = torch.cat([torch.ones(len(part), len(prefix), dtype=torch.long), mask], dim=1)
            own["past_key_values"] = copy.deepcopy(cache)
            own["past_key_values"].batch_repeat_interleave(len(part))
        with torch.inference_mode():
            answer = model.generate(tokens, attention_mask=mask, max_new_tokens=new_tokens, min_new_tokens=new_tokens,
                                    do_sample=False, eos_token_id=None, pad_token_id=0, **own)
        for row, i in enumerate(part):
            out[i] = answer[row, len(prefix) + width :].tolist()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True, help="file written by `earnest bench engine --dump`")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--batch", type=int, nargs="+", default=[32])
    parser.add_argument("--workload", choices=["few-shot", "zero-shot"], help="only this one")
    parser.add_argument("--share-prefix", action="store_true", help="compute what all prompts begin with once")
    parser.add_argument("--check", action="store_true", help="with --share-prefix: compare the tokens with those of whole prompts")
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
                prefix = shared_prefix(workload["ids"]) if args.share_prefix else ()
                made = generate(model, workload["ids"], workload["new_tokens"], batch, prefix)
                seconds.append(time.perf_counter() - start)
            if args.check and prefix:
                whole = generate(model, workload["ids"], workload["new_tokens"], batch)
                print(f"{sum(a == b for a, b in zip(made, whole))} of {len(made)} completions are those of whole prompts", file=sys.stderr)
            middle = statistics.median(seconds)
            document["measurements"].append(dict(workload=workload["kind"], prompts=len(workload["ids"]), new_tokens=workload["new_tokens"],
                                                 batch=batch, shared_prefix=len(prefix), seconds=seconds, samples_per_s=len(workload["ids"]) / middle))
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
