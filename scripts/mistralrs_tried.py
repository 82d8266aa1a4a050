#!/usr/bin/env python3
"""Tries mistral.rs as an engine: two small checkpoints, one that the native engine runs too and one that it lacks, compared with it and with
transformers (docs/engines.md). Needs torch, transformers, gguf, accelerate and safetensors.

scripts/mistralrs_tried.py make SmolLM2-135M-Instruct.Q4_1.gguf /tmp/tried
earnest run nupa --limit 53 --engine mistralrs --model /tmp/tried/smollm2 --results /tmp/tried/r
earnest run nupa --limit 53 --model /tmp/tried/smollm2 --results /tmp/tried/r
earnest run /tmp/tried/sums.jsonl --engine mistralrs --model /tmp/tried/granite --prompt raw --max-tokens 24 --results /tmp/tried/r
earnest samples RUN --json --results /tmp/tried/r > A.jsonl     (each run)
scripts/mistralrs_tried.py same A.jsonl B.jsonl                 two runs
scripts/mistralrs_tried.py transformers /tmp/tried G.jsonl      the run of Granite
"""
import json
import pathlib
import random
import sys

LAYERS = ["mamba", "attention", "mamba", "attention"]


def config(vocabulary):
    """A small Granite 4 with Mamba layers, whose answers vary."""
    from transformers import GraniteMoeHybridConfig

    return GraniteMoeHybridConfig(
        vocab_size=vocabulary, hidden_size=96, intermediate_size=64, shared_intermediate_size=128, num_hidden_layers=len(LAYERS),
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=0, num_experts_per_tok=0, layer_types=LAYERS, mamba_n_heads=12,
        mamba_d_head=16, mamba_d_state=16, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=32, tie_word_embeddings=False,
        position_embedding_type=None, max_position_embeddings=2048, embedding_multiplier=6.0, attention_multiplier=0.2,
        residual_multiplier=0.7, logits_scaling=6.0, bos_token_id=1, eos_token_id=2, pad_token_id=2)


def make(gguf, out):
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer, GraniteMoeHybridForCausalLM

    def save(folder, tensors, keys):
        folder.mkdir(parents=True)
        tokenizer.save_pretrained(folder)
        save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
        (folder / "config.json").write_text(json.dumps(keys, indent=1))
        ends = {name: keys[name] for name in ("bos_token_id", "eos_token_id")}
        (folder / "generation_config.json").write_text(json.dumps(ends))

    known = dict(gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **known)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **known)
    read = model.config.to_dict()
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size",
             "max_position_embeddings", "rms_norm_eps", "bos_token_id", "eos_token_id", "hidden_act")
    keys = {name: read[name] for name in names}
    keys.update(architectures=["LlamaForCausalLM"], model_type="llama", tie_word_embeddings=True, head_dim=64,
                rope_theta=read["rope_parameters"]["rope_theta"], torch_dtype="float32")
    save(out / "smollm2", {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}, keys)

    torch.manual_seed(1)
    shape = config(read["vocab_size"])
    granite = GraniteMoeHybridForCausalLM(shape).float()
    with torch.no_grad():
        for tensor in granite.parameters():
            if tensor.dim() >= 2:
                tensor.normal_(0, 0.12)
    # As Granite's folders are published: transformers 5 would write other names.
    left_out = ("rope_parameters", "dtype", "time_step_limit", "time_step_min", "time_step_max", "time_step_floor")
    keys = {name: value for name, value in shape.to_dict().items() if name not in left_out}
    keys.update(architectures=["GraniteMoeHybridForCausalLM"], layer_types=LAYERS, position_embedding_type="nope", rope_theta=10000.0)
    save(out / "granite", granite.state_dict(), keys)
    chance = random.Random(3)
    with (out / "sums.jsonl").open("w") as file:
        for number in range(16):
            one, other = (chance.randrange(10 ** chance.randrange(1, 7)) for _ in range(2))
            file.write(json.dumps({"id": f"q{number}", "question": f"{one} + {other} =", "answer": str(one + other)}) + "\n")


def answers(path):
    return {row["item"]: row["completion"]["ids"] for row in map(json.loads, open(path))}


def same(one, other):
    one, other = answers(one), answers(other)
    print(f"{sum(ids == other.get(item) for item, ids in one.items())} of {len(one)} answers are the same tokens")


def transformers(folder, samples):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoTokenizer, GraniteMoeHybridForCausalLM

    tensors = load_file(folder / "granite/model.safetensors")
    model = GraniteMoeHybridForCausalLM(config(tensors["model.embed_tokens.weight"].shape[0])).float().eval()
    model.load_state_dict(tensors)
    tokenizer = AutoTokenizer.from_pretrained(folder / "granite")
    questions = {row["id"]: row["question"] for row in map(json.loads, open(folder / "sums.jsonl"))}
    found = answers(samples)
    equal = 0
    for item, ids in found.items():
        prompt = tokenizer(questions[item], return_tensors="pt").input_ids
        with torch.no_grad():
            out = model.generate(prompt, max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=2)
        equal += out[0, prompt.shape[1]:].tolist()[:len(ids)] == ids
    print(f"{equal} of {len(found)} answers are the tokens of transformers, up to their ends")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", gguf, out]:
            make(pathlib.Path(gguf), pathlib.Path(out))
        case ["same", one, other]:
            same(one, other)
        case ["transformers", folder, samples]:
            transformers(pathlib.Path(folder), samples)
        case _:
            sys.exit(__doc__)
