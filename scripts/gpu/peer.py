"""transformers on prompts of the measurement's shape, random weights in the shape of Llama 3 8B: python3 peer.py [PROMPTS [ROWS]]

Prompts of 900 common and 100 further tokens, 120 new tokens each, in bf16 with SDPA. Prints JSON; the time for 5,100 prompts is in proportion.
"""
import json
import sys
import time

import torch
import transformers

prompts, rows = (int(text) for text in (sys.argv[1:] + ["256", "256"])[:2])
config = transformers.LlamaConfig(
    vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
    max_position_embeddings=8192, rope_theta=500000.0, rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0,
)
started = time.time()
with torch.device("cuda"):
    torch.set_default_dtype(torch.bfloat16)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
load = time.time() - started
generator = torch.Generator().manual_seed(7)
common = torch.randint(3, config.vocab_size, (1, 900), generator=generator).expand(rows, -1)


def run(new):
    own = torch.randint(3, config.vocab_size, (rows, 100), generator=generator)
    ids = torch.cat([common, own], dim=1).cuda()
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)
    assert out.shape[1] == 1000 + new
    torch.cuda.synchronize()


run(2)
started = time.time()
for _ in range(max(1, prompts // rows)):
    run(120)
seconds = time.time() - started
done = max(1, prompts // rows) * rows
print(json.dumps({"load_s": load, "prompts": done, "rows": rows, "seconds": seconds, "for_5100_s": seconds * 5100 / done, "transformers": transformers.__version__, "torch": torch.__version__}))
