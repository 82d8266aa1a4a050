"""Writes a checkpoint of random weights in the shape of Llama 3 8B: python3 make_checkpoint.py OUT TOKENIZER_FOLDER

    --layers N    so many layers instead of 32
    --vocab N     so many tokens instead of 128256
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

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("tokenizer")
parser.add_argument("--layers", type=int, default=32)
parser.add_argument("--vocab", type=int, default=128256)
parser.add_argument("--tiny", action="store_true")
a = parser.parse_args()
started = time.time()
hidden, inner, heads, kv_heads, width = (256, 512, 4, 2, 64) if a.tiny else (4096, 14336, 32, 8, 128)
layers, vocab = (2, 2048) if a.tiny else (a.layers, a.vocab)
os.makedirs(a.out, exist_ok=True)


def write_json(name, value):
    with open(os.path.join(a.out, name), "w") as file:
        json.dump(value, file, indent=1)


write_json(
    "config.json",
    {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": width,
        "vocab_size": vocab,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
)
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
    """A file of tensors: (name, shape); a vector is a norm's scale."""
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
        for _, shape in tensors:
            if len(shape) == 1:
                file.write(ones * shape[0])
            else:
                values(file, shape[0] * shape[1])


q, kv = heads * width, kv_heads * width
write(1, [("model.embed_tokens.weight", [vocab, hidden]), ("lm_head.weight", [vocab, hidden]), ("model.norm.weight", [hidden])])
for first in range(0, layers, 4):
    tensors = []
    for i in range(first, min(first + 4, layers)):
        p = f"model.layers.{i}."
        tensors += [
            (p + "input_layernorm.weight", [hidden]),
            (p + "post_attention_layernorm.weight", [hidden]),
            (p + "self_attn.q_proj.weight", [q, hidden]),
            (p + "self_attn.k_proj.weight", [kv, hidden]),
            (p + "self_attn.v_proj.weight", [kv, hidden]),
            (p + "self_attn.o_proj.weight", [hidden, q]),
            (p + "mlp.gate_proj.weight", [inner, hidden]),
            (p + "mlp.up_proj.weight", [inner, hidden]),
            (p + "mlp.down_proj.weight", [hidden, inner]),
        ]
    write(first // 4 + 2, tensors)
write_json("model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": index})
print(json.dumps({"seconds": time.time() - started, "bytes": total}))
