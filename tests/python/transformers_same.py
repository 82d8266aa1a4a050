"""Holds the greedy output of transformers against a run of earnest, token by token. Exit code 77: a library is missing.

Usage: transformers_same.py MODEL_FOLDER SAMPLES.jsonl
       transformers_same.py --refused MODEL_FOLDER

SAMPLES.jsonl is `earnest export RUN --format jsonl` of a run of nupa on integers with `--prompt raw --dtype f32`. Prompts are put
together again from prompts/nupa.json and tokenised by transformers; the SHA-256 of their ids must be the one of the run. With --refused, the model must not load at all.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

try:
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

print(f"torch {torch.__version__}, transformers {transformers.__version__}")
if sys.argv[1] == "--refused":
    try:
        AutoModelForCausalLM.from_pretrained(sys.argv[2])
    except Exception as error:
        print(f"refused: {type(error).__name__}: {str(error).splitlines()[0]}")
        sys.exit(0)
    sys.exit("it was loaded, though its architecture is not known there")

PROMPTS = json.loads((Path(__file__).parents[2] / "prompts" / "nupa.json").read_text())


def prompt(row):
    operation, given = row["covariates"]["operation"], row["covariates"]
    text = f"{PROMPTS['format']['Integer']} {PROMPTS['task'][operation]}"
    return text.replace("{a}", given["a"]).replace("{b}", given.get("b", ""))


folder = sys.argv[1]
rows = [json.loads(line) for line in Path(sys.argv[2]).read_text().split("\n") if line]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
print(f"{type(model).__name__}, {sum(p.numel() for p in model.parameters())} parameters")
end = model.generation_config.eos_token_id
different, tokens = [], 0
for row in rows:
    ids = tokenizer(prompt(row), return_tensors="pt")
    prompt_ids = ids["input_ids"][0].tolist()
    digest = hashlib.sha256(struct.pack(f"<{len(prompt_ids)}I", *prompt_ids)).hexdigest()
    assert digest == row["prompt_sha256"], (row["item"], prompt_ids)
    ours = row["completion"]["ids"]
    with torch.no_grad():
        out = model.generate(**ids, max_new_tokens=len(ours), do_sample=False, pad_token_id=0)
    theirs = out[0, ids["input_ids"].shape[1] :].tolist()
    tokens += len(ours)
    text = tokenizer.decode([i for i in theirs if i != end])
    if theirs != ours or text.strip() != row["completion"]["text"].strip():
        different.append((row["item"], ours, theirs, row["completion"]["text"], text))
for case in different[:10]:
    print("different:", *case)
print(f"{len(rows) - len(different)} of {len(rows)} answers the same, {tokens} tokens")
sys.exit(1 if different else 0)
