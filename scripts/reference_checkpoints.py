#!/usr/bin/env python3
"""Reference checkpoints of other seeds and shapes, with logits and greedy tokens from transformers, for the golden test.

    python3 scripts/reference_checkpoints.py --from tests/golden/engine/checkpoints --seed 11 --out /tmp/other
    EARNEST_GOLDEN=/tmp/other cargo test --release --test golden engine

needs: torch, transformers 5.24, safetensors. Every folder of --from gets a twin whose matrices are drawn anew, each with the mean and the
deviation of the one that it replaces, under the names that its publisher uses; --wider also doubles the width of the feed-forward blocks of families with
plain ones. Granite 4 (GraniteMoeHybridForCausalLM with attention layers only, with and without experts) and Qwen 3.5 with experts are made from
their configurations. Folders that transformers cannot
load as a text model, or whose weights are quantised, are left out by name. Reference: float32, eager attention, whole sequences without a cache.
"""
import argparse, json, shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer, GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM
from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig

# Feed-forward matrices: inputs to the inner width, and back.
WIDENED = {"gate_proj.weight": 0, "up_proj.weight": 0, "down_proj.weight": 1}


def redrawn(tensors, generator, wider):
    drawn = {}
    for name, old in sorted(tensors.items()):
        axis = next((axis for end, axis in WIDENED.items() if name.endswith(end)), None) if wider else None
        shape = list(old.shape)
        if axis is not None:
            shape[axis] *= 2
        values = old.float()
        deviation = float(values.std()) if values.numel() > 1 else 0.0
        new = torch.randn(shape, generator=generator) * deviation + float(values.mean())
        drawn[name] = new.to(old.dtype).contiguous()
    return drawn


def reference(folder, name):
    config = AutoConfig.from_pretrained(folder)
    kind = AutoModelForImageTextToText if "ForConditionalGeneration" in config.architectures[0] else AutoModelForCausalLM
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    answer(model, folder, name)


@torch.no_grad()
def answer(model, folder, name):
    """Writes golden.json: the logits after each prompt, and 24 greedy tokens."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        top = torch.topk(logits, 32)
        sequence, margins = list(ids), []
        for _ in range(24):
            best = torch.topk(model(torch.tensor([sequence]), use_cache=False).logits[0, -1], 2)
            margins.append(round(float(best.values[0] - best.values[1]), 6))
            sequence.append(int(best.indices[0]))
        greedy = sequence[len(ids):]
        rows.append(dict(text=prompt, ids=ids, greedy=greedy, margins=margins, greedy_text=tokenizer.decode(greedy),
                         logits_last=[[int(i), round(float(v), 6)] for i, v in zip(top.indices, top.values)],
                         logits_stats=dict(mean=float(logits.mean()), std=float(logits.std()), argmax=int(logits.argmax()))))
    json.dump(dict(name=name, architecture=json.load(open(folder / "config.json"))["architectures"], prompts=rows),
              open(folder / "golden.json", "w"))


def granite4(folder, experts, source, generator):
    """Granite 4's attention layers, with `experts` experts beside the shared block."""
    config = GraniteMoeHybridConfig(
        vocab_size=512, hidden_size=64, intermediate_size=96, shared_intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=experts, num_experts_per_tok=2 if experts else 0, layer_types=["attention"] * 3,
        max_position_embeddings=512, embedding_multiplier=12.0, residual_multiplier=0.4, attention_multiplier=0.35, logits_scaling=8.0,
        position_embedding_type="rope", rope_theta=10000.0, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=True)
    made(folder, GraniteMoeHybridForCausalLM, config, source, generator)


def qwen35_moe(folder, source, generator):
    """Qwen 3.5 with experts: linear and full attention in turns, and a gate on the shared expert."""
    config = Qwen3_5MoeTextConfig(
        vocab_size=512, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16, linear_num_key_heads=2,
        linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=8, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24,
        shared_expert_intermediate_size=40, full_attention_interval=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2,
        pad_token_id=0, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))
    made(folder, Qwen3_5MoeForCausalLM, config, source, generator)


def made(folder, kind, config, source, generator):
    """A checkpoint of drawn weights, of the tokenizer of another, with its answers."""
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            scale = 0.1 if "embed" in name else 1.2 / tensor.shape[-1] ** 0.5
            middle = 0 if "norm" not in name or config.model_type.startswith("qwen3_5") and "linear_attn" not in name else 1
            tensor.copy_(middle + 0.1 * torch.randn(tensor.shape, generator=generator) if "norm" in name
                         else scale * torch.randn(tensor.shape, generator=generator))
    model.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / file, folder)
    answer(model, folder, folder.name)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--from", dest="source", type=Path, required=True, metavar="FOLDER", help="folder of reference checkpoints")
parser.add_argument("--out", type=Path, required=True, help="a golden folder; checkpoints are written below it")
parser.add_argument("--seed", type=int, default=11)
parser.add_argument("--wider", action="store_true", help="twice the width of plain feed-forward blocks")
args = parser.parse_args()

PROMPTS = [row["text"] for row in json.load(open(args.source / "llama" / "golden.json"))["prompts"]]
target = args.out / "engine" / "checkpoints"
for number, source in enumerate(sorted(path.parent for path in args.source.glob("*/golden.json"))):
    generator = torch.Generator().manual_seed(args.seed * 1000 + number)
    config = json.load(open(source / "config.json"))
    if "quantization_config" in config:
        print(f"{source.name}: left out, its weights are quantised")
        continue
    folder = target / source.name
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.suffix == ".json" and file.name != "golden.json":
            shutil.copy(file, folder)
    tensors = {}
    for file in source.glob("*.safetensors"):
        tensors |= load_file(file)
    # Only where every feed-forward block is a plain one of the configuration's width.
    plain = args.wider and isinstance(config.get("intermediate_size"), int) and not any("expert" in name for name in tensors) \
        and all(any(name.endswith(end) for name in tensors) for end in WIDENED)
    try:
        if plain:
            config["intermediate_size"] *= 2
            json.dump(config, open(folder / "config.json", "w"), indent=1)
        for old in folder.glob("*.index.json"):
            old.unlink()
        save_file(redrawn(tensors, generator, plain), folder / "model.safetensors", metadata={"format": "pt"})
        reference(folder, source.name)
        print(f"{source.name}: {'wider' if plain else 'same shape'}, seed {args.seed * 1000 + number}", flush=True)
    except Exception as error:
        shutil.rmtree(folder)
        print(f"{source.name}: left out: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)

generator = torch.Generator().manual_seed(args.seed)
for experts in (0, 4):
    folder = target / f"granite4-attention-{experts}-experts"
    folder.mkdir(parents=True, exist_ok=True)
    granite4(folder, experts, args.source / "llama", generator)
    print(f"{folder.name}: seed {args.seed}", flush=True)
folder = target / "qwen3.5-moe"
folder.mkdir(parents=True, exist_ok=True)
qwen35_moe(folder, args.source / "llama", generator)
print(f"{folder.name}: seed {args.seed}")
