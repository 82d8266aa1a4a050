"""transformers on prompts of the acceptance's shape: python3 transformers_run.py CHECKPOINT PROMPTS BATCH

Prompts of 900 common and 100 further tokens, 120 new tokens each, in bf16. Prints JSON; the time for 5,100 prompts is in proportion.
"""
import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM

path, prompts, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
started = time.time()
model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16).cuda().eval()
load = time.time() - started
vocab = model.config.vocab_size
generator = torch.Generator().manual_seed(7)
common = torch.randint(3, vocab, (1, 900), generator=generator).expand(batch, -1)


def run():
    own = torch.randint(3, vocab, (batch, 100), generator=generator)
    ids = torch.cat([common, own], dim=1).cuda()
    with torch.inference_mode():
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=120, min_new_tokens=120, do_sample=False, pad_token_id=0
        )
    assert out.shape[1] == 1120
    torch.cuda.synchronize()


run()
started = time.time()
for _ in range(max(1, prompts // batch)):
    run()
seconds = time.time() - started
done = max(1, prompts // batch) * batch
print(json.dumps({"load_s": load, "prompts": done, "batch": batch, "seconds": seconds, "for_5100_s": seconds * 5100 / done}))
