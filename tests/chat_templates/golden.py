"""Writes golden.json: every template of this folder on every conversation of conversations.json, as transformers renders
it. Needs `pip install transformers`; today is 26 July 2024, the day that the program gives to templates.

    python3 tests/chat_templates/golden.py [--published FOLDER]
    python3 tests/chat_templates/golden.py --other FOLDER

With --published, a folder of the published templates (`llama2.jinja`, ...), our wordings are compared with them first. With
--other, golden.json is written to a folder of any templates; EARNEST_CHAT_TEMPLATES=FOLDER makes the test read it, too."""

import datetime
import json
import pathlib
import sys

import transformers
import transformers.utils.chat_template_utils as utils
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
FAMILIES = {
    # BOS and EOS of the family's tokenizer.
    "llama2": ("<s>", "</s>"),
    "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
    "llama31": ("<|begin_of_text|>", "<|eot_id|>"),
    "mistral_v01": ("<s>", "</s>"),
    "mistral_v03": ("<s>", "</s>"),
    "gemma": ("<bos>", "<eos>"),
    "qwen25": (None, "<|im_end|>"),
    "qwen3": (None, "<|im_end|>"),
    "phi3": ("<s>", "<|endoftext|>"),
    "dialect": ("<s>", "</s>"),
}


class FixedDay(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26)


utils.datetime = FixedDay


def tokenizer(bos, eos):
    inner = Tokenizer(models.WordLevel({"x": 0}, unk_token="x"))
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=bos, eos_token=eos)


def render(family, source, messages, prompt, thinking):
    chosen = {} if thinking is None else {"enable_thinking": thinking}
    try:
        text = tokenizer(*FAMILIES.get(family, ("<s>", "</s>"))).apply_chat_template(
            messages, chat_template=source, tokenize=False, add_generation_prompt=prompt, **chosen
        )
    except Exception as error:  # Jinja's own errors and those that templates raise.
        return {"error": str(error)}
    return {"text": text}


def other(folder, conversations):
    cases = []
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text()
        for number, messages in enumerate(conversations):
            for thinking in [None, True, False] if "enable_thinking" in source else [None]:
                prompt = messages[-1]["role"] != "assistant"
                case = render(path.stem, source, messages, prompt, thinking)
                cases.append(
                    {
                        "family": path.stem, "bos": "<s>", "eos": "</s>", "conversation": number, "prompt": prompt,
                        "thinking": thinking, **case,
                    }
                )
    write(folder, cases)


def write(folder, cases):
    made = {"transformers": transformers.__version__, "cases": cases}
    (folder / "golden.json").write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n")
    print(f"{len(cases)} cases, {sum('error' in c for c in cases)} of them errors")


def main():
    conversations = json.loads((HERE / "conversations.json").read_text())
    if sys.argv[1:2] == ["--other"]:
        return other(pathlib.Path(sys.argv[2]), conversations)
    published = pathlib.Path(sys.argv[2]) if sys.argv[1:2] == ["--published"] else None
    cases = []
    compared = 0
    for family, (bos, eos) in FAMILIES.items():
        source = (HERE / f"{family}.jinja").read_text()
        original = published and published / f"{family}.jinja"
        original = original.read_text() if original and original.exists() else None
        for number, messages in enumerate(conversations):
            for thinking in [None, True, False] if family == "qwen3" else [None]:
                prompt = messages[-1]["role"] != "assistant"
                case = render(family, source, messages, prompt, thinking)
                if original is not None:
                    theirs = render(family, original, messages, prompt, thinking)
                    assert case == theirs, f"{family} {number}:\n{case}\n{theirs}"
                    compared += 1
                cases.append(
                    {
                        "family": family, "bos": bos, "eos": eos, "conversation": number, "prompt": prompt,
                        "thinking": thinking, **case,
                    }
                )
    write(HERE, cases)
    print(f"{compared} compared with published templates")


main()
