"""vLLM on prompts of the acceptance's shape: python3 vllm_run.py CHECKPOINT PROMPTS

Prompts of 900 common and about 100 further tokens, 120 new tokens each, in bf16, with the prefix cache. Prints JSON.
"""
import json
import random
import sys
import time

from vllm import LLM, SamplingParams

path, prompts = sys.argv[1], int(sys.argv[2])
started = time.time()
model = LLM(model=path, dtype="bfloat16", enable_prefix_caching=True, skip_tokenizer_init=True, max_model_len=2048)
load = time.time() - started
vocab = model.llm_engine.get_model_config().get_vocab_size()
source = random.Random(7)
common = [source.randrange(3, vocab) for _ in range(900)]
wanted = SamplingParams(temperature=0.0, max_tokens=120, min_tokens=120, ignore_eos=True, detokenize=False)


def run(count):
    own = [[source.randrange(3, vocab) for _ in range(70 + i * 37 % 61)] for i in range(count)]
    started = time.time()
    answers = model.generate([{"prompt_token_ids": common + ids} for ids in own], wanted, use_tqdm=False)
    assert all(len(answer.outputs[0].token_ids) == 120 for answer in answers)
    return time.time() - started


run(64)
seconds = run(prompts)
print(json.dumps({"load_s": load, "prompts": prompts, "seconds": seconds, "for_5100_s": seconds * 5100 / prompts}))
