"""Writes a checkpoint of random weights in the shape of Llama 3 8B: python3 make_checkpoint.py OUT TOKENIZER_FOLDER

The values are made on the GPU if there is one. The tokenizer is that of a small checkpoint: prompts are token ids.
`--tiny` writes a small one of the same kind, for trying the script.
"""
import json
import os
import shutil
import sys
import time

import torch
from safetensors.torch import save_file

arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
tiny = "--tiny" in sys.argv
out, tokenizer = arguments
os.makedirs(out, exist_ok=True)
config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256 if tiny else 4096,
    "intermediate_size": 512 if tiny else 14336,
    "num_hidden_layers": 2 if tiny else 32,
    "num_attention_heads": 4 if tiny else 32,
    "num_key_value_heads": 2 if tiny else 8,
    "head_dim": 64 if tiny else 128,
    "vocab_size": 2048 if tiny else 128256,
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
}
json.dump(config, open(os.path.join(out, "config.json"), "w"), indent=1)
for name in ["tokenizer.json", "tokenizer_config.json"]:
    path = os.path.join(tokenizer, name)
    if os.path.exists(path):
        shutil.copy(path, out)
json.dump({"bos_token_id": 1, "eos_token_id": 2}, open(os.path.join(out, "generation_config.json"), "w"))

device = "cuda" if torch.cuda.is_available() else "cpu"
generator = torch.Generator(device=device).manual_seed(1)
hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
q = config["num_attention_heads"] * config["head_dim"]
kv = config["num_key_value_heads"] * config["head_dim"]


def matrix(rows, columns):
    values = torch.empty(rows, columns, device=device, dtype=torch.bfloat16)
    return values.normal_(0, 0.02, generator=generator).cpu()


started = time.time()
index, total, shard_number = {}, 0, 0
shards = config["num_hidden_layers"] // 4 + 1 if not tiny else 2


def write(tensors):
    global total, shard_number
    shard_number += 1
    name = f"model-{shard_number:05d}.safetensors"
    save_file(tensors, os.path.join(out, name), metadata={"format": "pt"})
    for key, value in tensors.items():
        index[key] = name
        total += value.numel() * value.element_size()


write(
    {
        "model.embed_tokens.weight": matrix(vocab, hidden),
        "lm_head.weight": matrix(vocab, hidden),
        "model.norm.weight": torch.ones(hidden, dtype=torch.bfloat16),
    }
)
for first in range(0, config["num_hidden_layers"], 4):
    tensors = {}
    for i in range(first, min(first + 4, config["num_hidden_layers"])):
        p = f"model.layers.{i}."
        tensors[p + "input_layernorm.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
        tensors[p + "post_attention_layernorm.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
        tensors[p + "self_attn.q_proj.weight"] = matrix(q, hidden)
        tensors[p + "self_attn.k_proj.weight"] = matrix(kv, hidden)
        tensors[p + "self_attn.v_proj.weight"] = matrix(kv, hidden)
        tensors[p + "self_attn.o_proj.weight"] = matrix(hidden, q)
        tensors[p + "mlp.gate_proj.weight"] = matrix(inner, hidden)
        tensors[p + "mlp.up_proj.weight"] = matrix(inner, hidden)
        tensors[p + "mlp.down_proj.weight"] = matrix(hidden, inner)
    write(tensors)
json.dump(
    {"metadata": {"total_size": total}, "weight_map": index},
    open(os.path.join(out, "model.safetensors.index.json"), "w"),
)
print(json.dumps({"seconds": time.time() - started, "bytes": total}))
