#!/usr/bin/env python3
"""A folder with random weights in the shape and packing of a published checkpoint, to measure memory where the real one is not at hand.

random_checkpoint.py awq-8b --like tests/golden/engine/checkpoints/llama-awq-gemm --out /tmp/awq-8b
random_checkpoint.py gptq-8b --like tests/golden/engine/checkpoints/llama-gptq-desc-act --out /tmp/gptq-8b
random_checkpoint.py gpt-oss-20b --like tests/golden/engine/checkpoints/gpt-oss-mxfp4 --out /tmp/gpt-oss-20b
/usr/bin/time -v earnest run nupa --tasks add_Integer --lengths 1 --limit 4 --max-tokens 4 --model /tmp/awq-8b
"""
import argparse
import json
import pathlib
import shutil
import struct

import numpy as np

BYTES = {"U8": 1, "F16": 2, "BF16": 2, "I32": 4}


def around(hidden, layers, vocabulary):
    """Embedding, head and norms, which every decoder has in bf16."""
    yield "model.embed_tokens.weight", "BF16", [vocabulary, hidden]
    yield "lm_head.weight", "BF16", [vocabulary, hidden]
    norms = [f"layers.{layer}.{norm}" for layer in range(layers) for norm in ("input_layernorm", "post_attention_layernorm")]
    for norm in ["norm", *norms]:
        yield f"model.{norm}.weight", "BF16", [hidden]


LLAMA_8B = dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, head_dim=128)
LLAMA_1B = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64)


def awq(name, rows, columns):
    """AutoAWQ: 4 bits in groups of 128."""
    yield f"{name}.qweight", "I32", [columns, rows // 8]
    yield f"{name}.qzeros", "I32", [columns // 128, rows // 8]
    yield f"{name}.scales", "F16", [columns // 128, rows]


def gptq(name, rows, columns):
    """GPTQ with act order: 4 bits in groups of 128, each input in any of them."""
    yield f"{name}.qweight", "I32", [columns // 8, rows]
    yield f"{name}.qzeros", "I32", [columns // 128, rows // 8]
    yield f"{name}.scales", "F16", [columns // 128, rows]
    yield f"{name}.g_idx", "I32", [columns]


def llama(sizes, packed):
    """Llama with packed projections, embedding and head in bf16."""
    def tensors(config):
        config.update(sizes, vocab_size=128256, tie_word_embeddings=False)
        config["quantization_config"]["group_size"] = 128
        hidden, inner, heads, kv_heads, width = (sizes[name] for name in (
            "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim"))
        yield from around(hidden, sizes["num_hidden_layers"], 128256)
        for layer in range(sizes["num_hidden_layers"]):
            at = f"model.layers.{layer}."
            for name, rows, columns in (("self_attn.q_proj", heads * width, hidden), ("self_attn.k_proj", kv_heads * width, hidden),
                                        ("self_attn.v_proj", kv_heads * width, hidden), ("self_attn.o_proj", hidden, heads * width),
                                        ("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden), ("mlp.down_proj", hidden, inner)):
                yield from packed(at + name, rows, columns)
    return tensors


def gpt_oss_20b(config):
    """gpt-oss-20b as OpenAI publishes it: experts in MXFP4, the rest in bf16."""
    hidden, inner, layers, heads, kv_heads, width, vocabulary, experts = 2880, 2880, 24, 64, 8, 64, 201088, 32
    config.update(hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
                  num_key_value_heads=kv_heads, head_dim=width, vocab_size=vocabulary, num_local_experts=experts, experts_per_token=4,
                  num_experts_per_tok=4, sliding_window=128, layer_types=["sliding_attention", "full_attention"] * (layers // 2))
    yield from around(hidden, layers, vocabulary)
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for name, rows in (("q", heads * width), ("k", kv_heads * width), ("v", kv_heads * width)):
            yield f"{at}self_attn.{name}_proj.weight", "BF16", [rows, hidden]
            yield f"{at}self_attn.{name}_proj.bias", "BF16", [rows]
        yield f"{at}self_attn.o_proj.weight", "BF16", [hidden, heads * width]
        yield f"{at}self_attn.o_proj.bias", "BF16", [hidden]
        yield f"{at}self_attn.sinks", "BF16", [heads]
        yield f"{at}mlp.router.weight", "BF16", [experts, hidden]
        yield f"{at}mlp.router.bias", "BF16", [experts]
        for name, rows, columns in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
            yield f"{at}mlp.experts.{name}_blocks", "U8", [experts, rows, columns // 32, 16]
            yield f"{at}mlp.experts.{name}_scales", "U8", [experts, rows, columns // 32]
            yield f"{at}mlp.experts.{name}_bias", "BF16", [experts, rows]


SHAPES = {"awq-8b": llama(LLAMA_8B, awq), "awq-1b": llama(LLAMA_1B, awq), "gptq-8b": llama(LLAMA_8B, gptq), "gptq-1b": llama(LLAMA_1B, gptq),
          "gpt-oss-20b": gpt_oss_20b}


def source(name, dtype, shape, random):
    """A few MiB that are repeated: ones for norms, plausible scales, groups of inputs, and random bits or small numbers for the rest."""
    if name.endswith(".g_idx"):
        return random["generator"].permutation(np.arange(shape[0], dtype=np.int32) // 128).tobytes()
    if "norm" in name:
        return np.full(1 << 12, 0x3F80, np.uint16).tobytes()
    if name.endswith("_scales"):
        return bytes([120]) * (1 << 20)
    if dtype == "F16":
        return np.full(1 << 20, 0x1800, np.uint16).tobytes()
    return random["bits" if dtype in ("I32", "U8") else "bf16"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--like", type=pathlib.Path, required=True, help="folder of the same architecture and packing, for config and tokenizer")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to make")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True)
    config = json.loads((asked.like / "config.json").read_text())
    tensors = list(SHAPES[asked.shape](config))
    (asked.out / "config.json").write_text(json.dumps(config))
    for file in asked.like.glob("*"):
        if file.name.startswith(("tokenizer", "generation_config", "special_tokens", "chat_template")):
            shutil.copy(file, asked.out)
    generator = np.random.default_rng(1)
    small = generator.normal(0, 0.02, 1 << 22).astype(np.float32)
    random = {"bits": generator.bytes(1 << 24), "bf16": (small.view(np.uint32) >> 16).astype(np.uint16).tobytes(),
              "generator": generator}
    header, end = {}, 0
    for name, dtype, shape in tensors:
        size = int(np.prod(shape)) * BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (asked.out / "model.safetensors").open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, dtype, shape in tensors:
            left, piece = int(np.prod(shape)) * BYTES[dtype], source(name, dtype, shape, random)
            while left > 0:
                left -= out.write(piece[:left])
    print(f"{asked.out}: {end / 1e9:.2f} GB of weights")


if __name__ == "__main__":
    main()
