"""Writes a checkpoint of random weights in the shape of a published model: python3 make_checkpoint.py OUT TOKENIZER_FOLDER --shape NAME

    --shape NAME  qwen2.5-0.5b, llama-3.2-1b, llama-3-8b (the default), llama-3-70b, mixtral-8x7b, qwen3-30b-a3b, gpt-oss-20b
    --layers N    so many layers instead of all
    --vocab N     so many tokens instead of all
    --tiny        a small model of the same kind, for trying the scripts

Needs nothing but Python. The values are bf16 numbers of a standard deviation of about 0.02, cut from one list of 40,000,003 of them:
its length has no common divisor with a row's, so no two rows are alike. Experts of gpt-oss are in MXFP4, as published. The tokenizer is that of a small checkpoint: prompts
are token ids. Prints JSON: bytes and seconds.
"""
import argparse
import json
import math
import os
import random
import shutil
import struct
import time

# Published configurations: (family, hidden, feed-forward, heads, key heads, dimensions of a head, layers, tokens, experts, of a token).
SHAPES = {
    "qwen2.5-0.5b": ("qwen2", 896, 4864, 14, 2, 64, 24, 151936, 0, 0),
    "llama-3.2-1b": ("llama", 2048, 8192, 32, 8, 64, 16, 128256, 0, 0),
    "llama-3-8b": ("llama", 4096, 14336, 32, 8, 128, 32, 128256, 0, 0),
    "llama-3-70b": ("llama", 8192, 28672, 64, 8, 128, 80, 128256, 0, 0),
    "mixtral-8x7b": ("mixtral", 4096, 14336, 32, 8, 128, 32, 32000, 8, 2),
    "qwen3-30b-a3b": ("qwen3_moe", 2048, 768, 32, 4, 128, 48, 151936, 128, 8),
    "gpt-oss-20b": ("gpt_oss", 2880, 2880, 64, 8, 64, 24, 201088, 32, 4),
}
ARCHITECTURES = {
    "qwen2": "Qwen2ForCausalLM",
    "llama": "LlamaForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
}

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("tokenizer")
parser.add_argument("--shape", choices=SHAPES, default="llama-3-8b")
parser.add_argument("--layers", type=int)
parser.add_argument("--vocab", type=int)
parser.add_argument("--tiny", action="store_true")
a = parser.parse_args()
started = time.time()
family, hidden, inner, heads, kv_heads, width, layers, vocab, experts, chosen = SHAPES[a.shape]
if a.tiny:
    hidden, inner, heads, kv_heads, width = 256, 256 if experts else 512, 4, 2, 64
    layers, vocab, experts = 2, 2048, min(experts, 16)
else:
    layers, vocab = a.layers or layers, a.vocab or vocab
tied = a.shape in ("qwen2.5-0.5b", "llama-3.2-1b")
os.makedirs(a.out, exist_ok=True)


def write_json(name, value):
    with open(os.path.join(a.out, name), "w") as file:
        json.dump(value, file, indent=1)


config = {
    "architectures": [ARCHITECTURES[family]],
    "model_type": family,
    "hidden_size": hidden,
    "intermediate_size": inner,
    "num_hidden_layers": layers,
    "num_attention_heads": heads,
    "num_key_value_heads": kv_heads,
    "vocab_size": vocab,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": tied,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
if family in ("llama", "qwen3_moe"):
    config |= {"head_dim": width, "attention_bias": False}
if family == "llama":
    config["mlp_bias"] = False
if family == "mixtral":
    config |= {"num_local_experts": experts, "num_experts_per_tok": chosen, "sliding_window": None}
if family == "qwen3_moe":
    config |= {"num_experts": experts, "num_experts_per_tok": chosen, "moe_intermediate_size": inner, "norm_topk_prob": True}
    config |= {"decoder_sparse_step": 1, "mlp_only_layers": []}
if family == "gpt_oss":
    config |= {"head_dim": width, "attention_bias": True, "num_local_experts": experts, "num_experts_per_tok": chosen, "swiglu_limit": 7.0}
    config |= {"sliding_window": 128, "layer_types": [["sliding_attention", "full_attention"][i % 2] for i in range(layers)], "rope_theta": 150000}
    yarn = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
    config |= {"rope_scaling": yarn, "max_position_embeddings": 131072}
    config["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
    }
write_json("config.json", config)
write_json("generation_config.json", {"bos_token_id": 1, "eos_token_id": 2})
for name in ["tokenizer.json", "tokenizer_config.json"]:
    if os.path.exists(os.path.join(a.tokenizer, name)):
        shutil.copy(os.path.join(a.tokenizer, name), a.out)

# The upper byte of a bf16 number is its sign and most of its exponent, which random bytes choose from a table of 256, each value with
# its negative, so that the mean is zero; the lower byte is random, and doubles every other value.
source = random.Random(1)
positive = [struct.pack(">f", abs(source.gauss(0, 0.014)))[0] for _ in range(128)]
table = bytes(positive + [byte | 0x80 for byte in positive])
count = 400_003 if a.tiny else 40_000_003
block = bytearray(2 * count)
block[1::2] = source.randbytes(count).translate(table)
lower = source.randbytes(count)
block[0::2] = lower
block, lower = bytes(block), memoryview(lower)
ones = struct.pack("<H", 0x3F80)
place = 0


def values(file, n):
    """Writes the next n values of the endless list."""
    global place
    while n > 0:
        some = min(n, count - place)
        file.write(memoryview(block)[2 * place : 2 * (place + some)])
        place = (place + some) % count
        n -= some


def codes(file, n):
    """Writes n random bytes: the lower ones of the endless list."""
    global place
    while n > 0:
        some = min(n, count - place)
        file.write(lower[place : place + some])
        place = (place + some) % count
        n -= some


index, total = {}, 0


# Two 4-bit floats a byte, and the exponent of 32 of them: 2^-7 makes random codes numbers of the same standard deviation.
EXPONENT = 120


def write(shard, tensors):
    """A file of tensors: (name, shape); a vector is a norm's scale, unless its name says that it is a bias or sinks."""
    global total
    name = f"model-{shard:05d}.safetensors"
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for key, shape in tensors:
        kind, size = ("U8", 1) if key.endswith(("_blocks", "_scales")) else ("BF16", 2)
        n = size * math.prod(shape)
        header[key] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + n]}
        index[key] = name
        at += n
    total += at
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(a.out, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for key, shape in tensors:
            n = math.prod(shape)
            if key.endswith("_scales"):
                file.write(bytes([EXPONENT]) * n)
            elif key.endswith("_blocks"):
                codes(file, n)
            elif len(shape) == 1 and not key.endswith(("bias", "sinks")):
                file.write(ones * n)
            else:
                values(file, n)


q, kv = heads * width, kv_heads * width
head = [] if tied else [("lm_head.weight", [vocab, hidden])]
write(1, [("model.embed_tokens.weight", [vocab, hidden]), *head, ("model.norm.weight", [hidden])])


def feed_forward(p):
    if family == "mixtral":
        p += "block_sparse_moe."
        tensors = [(p + "gate.weight", [experts, hidden])]
        for e in range(experts):
            names = [("w1", [inner, hidden]), ("w3", [inner, hidden]), ("w2", [hidden, inner])]
            tensors += [(f"{p}experts.{e}.{name}.weight", shape) for name, shape in names]
        return tensors
    if family == "gpt_oss":
        p += "mlp."
        tensors = [(p + "router.weight", [experts, hidden]), (p + "router.bias", [experts])]
        for name, rows, columns in [("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)]:
            p_name = f"{p}experts.{name}"
            tensors += [(p_name + "_blocks", [experts, rows, columns // 32, 16]), (p_name + "_scales", [experts, rows, columns // 32])]
            tensors.append((p_name + "_bias", [experts, rows]))
        return tensors
    names = [("gate_proj", [inner, hidden]), ("up_proj", [inner, hidden]), ("down_proj", [hidden, inner])]
    if family == "qwen3_moe":
        tensors = [(p + "mlp.gate.weight", [experts, hidden])]
        for e in range(experts):
            tensors += [(f"{p}mlp.experts.{e}.{name}.weight", shape) for name, shape in names]
        return tensors
    return [(f"{p}mlp.{name}.weight", shape) for name, shape in names]


def layer(i):
    p = f"model.layers.{i}."
    tensors = [
        (p + "input_layernorm.weight", [hidden]),
        (p + "post_attention_layernorm.weight", [hidden]),
        (p + "self_attn.q_proj.weight", [q, hidden]),
        (p + "self_attn.k_proj.weight", [kv, hidden]),
        (p + "self_attn.v_proj.weight", [kv, hidden]),
        (p + "self_attn.o_proj.weight", [hidden, q]),
    ]
    if family in ("qwen2", "gpt_oss"):
        tensors += [(p + f"self_attn.{name}_proj.bias", [n]) for name, n in [("q", q), ("k", kv), ("v", kv)]]
    if family == "gpt_oss":
        tensors += [(p + "self_attn.o_proj.bias", [hidden]), (p + "self_attn.sinks", [heads])]
    if family == "qwen3_moe":
        tensors += [(p + f"self_attn.{name}_norm.weight", [width]) for name in ("q", "k")]
    return tensors + feed_forward(p)


for first in range(0, layers, 4):
    write(first // 4 + 2, [tensor for i in range(first, min(first + 4, layers)) for tensor in layer(i)])
write_json("model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": index})
print(json.dumps({"seconds": time.time() - started, "bytes": total}))
