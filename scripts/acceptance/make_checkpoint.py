"""Writes a checkpoint of random weights in the shape of a published model: python3 make_checkpoint.py OUT TOKENIZER_FOLDER --shape NAME

    --shape NAME  qwen2.5-0.5b, llama-3.2-1b, llama-3-8b (the default), llama-3-70b, mixtral-8x7b, qwen3-30b-a3b
    --layers N    so many layers instead of all
    --vocab N     so many tokens instead of all
    --tiny        a small model of the same kind, for trying the scripts

Needs nothing but Python. The values are bf16 numbers of a standard deviation of about 0.02, cut from one list of 40,000,003 of them:
its length has no common divisor with a row's, so no two rows are alike. The tokenizer is that of a small checkpoint: prompts
are token ids. Prints JSON: bytes and seconds.
"""
import argparse
import json
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
}
ARCHITECTURES = {
    "qwen2": "Qwen2ForCausalLM",
    "llama": "LlamaForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
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
block[0::2] = source.randbytes(count)
block = bytes(block)
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


index, total = {}, 0


def write(shard, tensors):
    """A file of tensors: (name, shape); a vector is a norm's scale, unless its name says that it is a bias."""
    global total
    name = f"model-{shard:05d}.safetensors"
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for key, shape in tensors:
        n = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[key] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + n]}
        index[key] = name
        at += n
    total += at
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(a.out, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for key, shape in tensors:
            if len(shape) == 1 and not key.endswith(".bias"):
                file.write(ones * shape[0])
            else:
                values(file, shape[0] * (shape[1] if len(shape) > 1 else 1))


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
    if family == "qwen2":
        tensors += [(p + f"self_attn.{name}_proj.bias", [n]) for name, n in [("q", q), ("k", kv), ("v", kv)]]
    if family == "qwen3_moe":
        tensors += [(p + f"self_attn.{name}_norm.weight", [width]) for name in ("q", "k")]
    return tensors + feed_forward(p)


for first in range(0, layers, 4):
    write(first // 4 + 2, [tensor for i in range(first, min(first + 4, layers)) for tensor in layer(i)])
write_json("model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": index})
print(json.dumps({"seconds": time.time() - started, "bytes": total}))
