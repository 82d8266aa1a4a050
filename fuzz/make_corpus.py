#!/usr/bin/env python3
"""Writes fuzz/corpus from the golden files of the tests and from hostile inputs, all of them this project's own.

    fuzz/make_corpus.py PROGRAM        PROGRAM: a built earnest, which writes the store

Run it again after a format has changed; inputs that fuzzing found are files whose names begin with `found-` and stay.
"""
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz/corpus"
GOLDEN = ROOT / "tests/golden"
LLAMA = GOLDEN / "engine/checkpoints/llama"


def put(target, name, data):
    data = data.encode() if isinstance(data, str) else data
    (CORPUS / target / name).write_bytes(data)


def gguf_value(kind, value):
    codes = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?"), "u64": (10, "<Q")}
    if kind == "text":
        raw = value.encode()
        return 8, struct.pack("<Q", len(raw)) + raw
    if kind.endswith("[]"):
        inner = [gguf_value(kind[:-2], item) for item in value]
        return 9, struct.pack("<IQ", inner[0][0], len(inner)) + b"".join(raw for _, raw in inner)
    code, form = codes[kind]
    return code, struct.pack(form, value)


def gguf(metadata, tensors):
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, (kind, value) in metadata.items():
        code, raw = gguf_value(kind, value)
        out += struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", code) + raw
    offset = 0
    for name, (shape, dtype, raw) in tensors.items():
        out += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(shape))
        out += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", dtype, offset)
        offset += (len(raw) + 31) // 32 * 32
    out += b"\0" * (-len(out) % 32)
    for shape, dtype, raw in tensors.values():
        out += raw + b"\0" * (-len(raw) % 32)
    return out


def checkpoints_gguf():
    hidden, rows = 32, 40
    q4_0 = struct.pack("<e", 0.01) + bytes(range(16))

    def matrix(first, second):
        return (first, second), 2, q4_0 * (first * second // 32)

    norm = ((hidden,), 0, struct.pack("<f", 1.0) * hidden)
    tensors = {"token_embd.weight": matrix(rows, hidden), "output_norm.weight": norm}
    for name in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]:
        tensors[f"blk.0.{name}.weight"] = matrix(hidden, hidden)
    tensors |= {"blk.0.attn_norm.weight": norm, "blk.0.ffn_norm.weight": norm}
    base = {"general.architecture": ("text", "llama"), "general.file_type": ("u32", 2)}
    sizes = {
        "block_count": 1, "context_length": 64, "embedding_length": hidden, "feed_forward_length": hidden,
        "attention.head_count": 2, "attention.head_count_kv": 2, "rope.dimension_count": 16,
    }
    base |= {f"llama.{key}": ("u32", value) for key, value in sizes.items()}
    base |= {"llama.rope.freq_base": ("f32", 1e4), "llama.attention.layer_norm_rms_epsilon": ("f32", 1e-5)}
    tokens = ["<unk>", "<s>", "</s>"] + [chr(33 + n) for n in range(30)] + ["Ġ", "12", "ab", "Ġa", "é", "a", "b"]
    common = {
        "tokenizer.ggml.tokens": ("text[]", tokens),
        "tokenizer.ggml.token_type": ("i32[]", [2, 3, 3] + [1] * (len(tokens) - 3)),
        "tokenizer.ggml.bos_token_id": ("u32", 1), "tokenizer.ggml.eos_token_id": ("u32", 2),
    }
    bpe = {"tokenizer.ggml.model": ("text", "gpt2"), "tokenizer.ggml.pre": ("text", "smollm"),
           "tokenizer.ggml.merges": ("text[]", ["1 2", "Ġ a"])}
    spm = {"tokenizer.ggml.model": ("text", "llama"), "tokenizer.ggml.scores": ("f32[]", [-float(n) for n in range(len(tokens))]),
           "tokenizer.ggml.add_space_prefix": ("bool", True), "tokenizer.ggml.unknown_token_id": ("u32", 0)}
    template = {"tokenizer.chat_template": ("text", "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}")}
    put("gguf", "bpe.gguf", gguf(base | common | bpe | template, tensors))
    put("gguf", "sentencepiece.gguf", gguf(base | common | spm, tensors))
    put("gguf", "header.gguf", gguf(base, {}))
    put("gguf", "counts.gguf", b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60))
    put("gguf", "nested.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 500)


def checkpoints_folder():
    weights = (LLAMA / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", weights[:8])[0]
    header = weights[8:8 + size]
    put("safetensors", "llama.header", b"0" + header)
    fields = json.loads(header)
    first = next(key for key in fields if key != "__metadata__")
    for name, change in {"end": {"data_offsets": [0, 2**63]}, "shape": {"shape": [2**32, 2**32]}, "type": {"dtype": "F8_E4M3"}}.items():
        put("safetensors", f"{name}.header", "0" + json.dumps({first: fields[first] | change}))
    put("safetensors", "length.file", b"1" + struct.pack("<Q", 2**63) + b"{}")
    put("safetensors", "empty.file", b"1")
    names = [key for key in fields if key != "__metadata__"]
    shard = "model-00001-of-00001.safetensors"
    put("index", "llama.json", json.dumps({"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, shard)}))
    put("index", "outside.json", json.dumps({"weight_map": {names[0]: "../../etc/passwd"}}))
    put("index", "absent.json", json.dumps({"weight_map": {names[0]: "other.safetensors", "x": 1}}))
    for folder in sorted((GOLDEN / "engine/checkpoints").iterdir()):
        put("config", f"{folder.name}.json", b"0" + (folder / "config.json").read_bytes())
    put("config", "tokenizer_config.json", b"1" + (LLAMA / "tokenizer_config.json").read_bytes())
    put("config", "generation_config.json", b"2" + (LLAMA / "generation_config.json").read_bytes())
    put("config", "large.json", "0" + json.dumps(json.loads((LLAMA / "config.json").read_text()) | {"num_hidden_layers": 2**31, "vocab_size": 2**31}))


def tokenizers():
    # Short: what surrounds the vocabulary is where the variety is.
    golden = json.loads((LLAMA / "tokenizer.json").read_text())
    vocabulary = dict(list(golden["model"]["vocab"].items())[:3])
    for character in "abc0123456789+=? éĠ▁":
        vocabulary[character] = len(vocabulary)
    vocabulary["12"] = len(vocabulary)
    small = golden | {"model": golden["model"] | {"vocab": vocabulary, "merges": [["1", "2"]]}}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    split = {"type": "Split", "pattern": {"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    variants = {
        "golden": golden,
        "small": small,
        "spm": small | {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]},
                        "pre_tokenizer": None, "decoder": {"type": "Sequence", "decoders": [replace | {"content": " ", "pattern": {"String": "▁"}}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}},
        "split": small | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]}},
        "steps": small | {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}, {"type": "StripAccents"}]},
                          "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}, {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"}]}},
        "template": small | {"post_processor": template},
        "unigram": small | {"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -2.5], ["ab", -1.5], ["1", -3.0]]}},
        "wordpiece": small | {"model": {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"<unk>": 0, "a": 1, "##b": 2, "12": 3}}},
        "wordlevel": small | {"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "12": 2}}},
        "dropout": small | {"model": small["model"] | {"dropout": 0.5}},
        "empty-pattern": small | {"normalizer": replace | {"pattern": {"String": ""}}},
        "empty-match": small | {"normalizer": replace | {"pattern": {"Regex": "x*"}}},
        "absent-token": small | {"post_processor": template | {"special_tokens": {}}},
        "prefix": small | {"model": small["model"] | {"continuing_subword_prefix": "ééé"}},
        "map": small | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "BAAAAAD///9hAA=="}},
        "fixed": small | {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    }
    for name, variant in variants.items():
        put("tokenizer", f"{name}.json", json.dumps(variant, ensure_ascii=False))


def templates():
    for file in sorted((ROOT / "tests/chat_templates").glob("*.jinja")):
        put("template", file.name, file.read_bytes())
    hostile = {
        "not": "{{ " + "not " * 3000 + "true }}",
        "brackets": "{{ " + "[" * 300 + "]" * 300 + " }}",
        "ifs": "{% if 1 %}" * 200 + "{% endif %}" * 200,
        "elif": "{% if 0 %}" + "{% elif 0 %}" * 1000 + "{% endif %}",
        "macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "values": "{{ [1, 1.5, 2**70, 'é', none, true, {'a': [1]}] }}{{ messages|tojson(indent=2) }}{{ messages[0].content[::-1] }}",
        "methods": "{{ ' a '.strip().upper().split('A')|length }}{{ 'a,b'.split(',')|join('-') }}{{ 'abc'.startswith('a') }}{{ '%05d'|format(3) }}",
        "output": "{% for i in range(3000) %}{{ 'abcdefgh' * 50 }}{% endfor %}",
        "dates": "{{ strftime_now('%d %b %Y') }}{% generation %}x{% endgeneration %}{{ raise_exception('no') }}",
    }
    for name, source in hostile.items():
        put("template", f"{name}.jinja", source)


def bodies():
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "1+1=?"}]}]
    plain = {
        "text": {"prompt": "12 + 30 =", "max_tokens": 4, "temperature": 0, "n": 2, "stop": ["\n", "="], "seed": 7},
        "ids": {"prompt": [[1, 2, 3], [4]], "max_tokens": 1, "logprobs": 3, "echo": True, "top_k": -1, "top_p": 0.9},
        "options": {"prompt": ["a", "b"], "stream": True, "stream_options": {"include_usage": True}, "stop_token_ids": [2], "logit_bias": {}, "return_token_ids": True},
        "many": {"prompt": "a", "n": 256, "stop": [str(n) for n in range(2000)]},
        "large": {"prompt": "ab " * 3000},
        "numbers": {"prompt": [1e99, -1, 2**64], "max_tokens": -1, "temperature": 1e400 if False else 1e308, "n": 1.5},
    }
    for name, body in plain.items():
        put("http", f"completions-{name}.json", "0" + json.dumps({"model": "tiny"} | body))
    for name, extra in {"plain": {"messages": chat}, "options": {"messages": chat, "logprobs": True, "top_logprobs": 2, "chat_template_kwargs": {"enable_thinking": False}, "max_completion_tokens": 3},
                        "tools": {"messages": chat, "tools": [], "response_format": {"type": "json_object"}}, "none": {"messages": []}}.items():
        put("http", f"chat-{name}.json", "1" + json.dumps({"model": "tiny"} | extra))
    put("http", "deep.json", "0" + '{"prompt":' + "[" * 5000)
    put("http", "twice.json", '0{"prompt":"a","prompt":[1],"model":null}')


def stores(program):
    folder = Path(tempfile.mkdtemp())
    try:
        run = [program, "run", "arithmetic-bench", "--limit", "3", "--samples", "2", "--threads", "1", "--model", "llama"]
        # A relative path: the store has nothing of the machine that wrote it.
        shutil.copytree(LLAMA, folder / "llama")
        subprocess.run(run, cwd=folder, check=True, capture_output=True)
        import sqlite3
        path = folder / "earnest-results/earnest.sqlite"
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
        # Small pages: most tables have few rows.
        connection.execute("PRAGMA page_size=512")
        connection.execute("VACUUM")
        (manifest,) = connection.execute("SELECT manifest FROM runs").fetchone()
        connection.close()
        put("store", "run.sqlite", path.read_bytes())
        put("store", "header.sqlite", path.read_bytes()[:100])
        put("store", "empty.sqlite", b"")
        manifest = json.loads(manifest)
        put("rows", "manifest.json", "0" + json.dumps(manifest))
        for key in ["settings", "model", "planned"]:
            put("rows", f"manifest-without-{key}.json", "0" + json.dumps({k: v for k, v in manifest.items() if k != key}))
        rows = subprocess.run([program, "samples", manifest["run"], "--jsonl"], cwd=folder, capture_output=True)
        rows = rows if rows.returncode == 0 else subprocess.run([program, "export", manifest["run"], "--format", "jsonl"], cwd=folder, capture_output=True, check=True)
        put("rows", "rows.jsonl", b"1" + rows.stdout)
    finally:
        shutil.rmtree(folder)


def logs():
    endings = ["json", "jsonl", "eval", "csv", "parquet", "tsv", "json.gz"]

    def log(name, ending, data, table=False):
        kind = endings.index(ending) + (len(endings) if table else 0)
        put("logs", f"{name}.{ending}", bytes([ord("0") + kind]) + data)

    found = GOLDEN / "logs"
    for name in ["openai_errors", "vllm_output"]:
        file = next(found.glob(f"openai-batch/*.{name}.jsonl"))
        log(name, "jsonl", b"".join(file.read_bytes().splitlines(True)[:3]))
    log("inspect", "eval", min(found.glob("inspect/logs/*.eval"), key=lambda f: f.stat().st_size).read_bytes())
    eval_json = json.loads(next(found.glob("inspect/logs/*.json")).read_text())
    eval_json["samples"] = eval_json["samples"][:1]
    log("inspect", "json", json.dumps(eval_json).encode()[:40000])
    for pattern, name in [("lm-eval/**/results_*.json", "lm-eval-results"), ("lighteval/**/results_*.json", "lighteval-results")]:
        for file in sorted(found.glob(pattern))[:1]:
            log(name, "json", file.read_bytes()[:30000])
    for file in sorted(found.glob("lm-eval/**/samples_*.jsonl"))[:1]:
        log("lm-eval-samples", "jsonl", b"".join(file.read_bytes().splitlines(True)[:2]))
    for file in sorted(found.glob("lighteval/**/*.parquet"), key=lambda f: f.stat().st_size)[:1]:
        log("lighteval", "parquet", file.read_bytes())
    table = b'question,completion,score,model\n"1+1=?","2",1,m\n"a ""b""","x\ny",0.5,m\n'
    log("table", "csv", table, table=True)
    log("table", "tsv", table.replace(b",", b"\t"), table=True)
    log("table", "jsonl", b'{"question": "1+1=?", "completion": "2", "score": true}\n', table=True)
    log("packed", "json.gz", gzip.compress(b'{"results": {}, "configs": {}}', mtime=0))
    log("zeros", "json.gz", gzip.compress(b"[" * 2_000_000, mtime=0))
    log("deep", "json", b'{"a":' * 3000)


def names():
    good = ["nupa-earnest-abacus-1.4m-e8d63116", "nupa-earnest-abacus-1.4m-e8d63116.2", "a,b_c", "mine-\u6570\u5b66-00112233", "n" * 240]
    bad = ["", ".", "..", "../x", "/x", "a/b", "a\\b", ".x", "-x", "a b", "a\0b", "a\nb", "a\u202eb", "n" * 241, "\u6570" * 81, "CON:"]
    for number, name in enumerate(good + bad):
        put("name", f"{'good' if name in good else 'bad'}-{number:02}", name)


def eval_logs():
    """First bytes: 0 and 1 are archives, 2 and 3 entries with zero bytes between them; the odd ones are read to their end."""
    small = min((GOLDEN / "logs").glob("inspect/logs/*.eval"), key=lambda file: file.stat().st_size)
    put("eval_log", "golden.eval", b"1" + small.read_bytes())
    header = {
        "version": 2, "status": "success", "eval": {"task": "t", "model": "m", "dataset": {"sample_ids": [1, 2]}, "config": {"epochs": 2}},
        "results": {"scores": [{"name": "match", "scorer": "match", "reducer": "mean", "metrics": {"accuracy": {"value": 0.5}}}]},
    }
    name = "0123456789abcdef0123456789abcdef"
    sample = {
        "id": 1, "epoch": 1, "input": [{"role": "user", "content": "1+1=?"}], "target": ["2"], "choices": ["1", "2"],
        "messages": [{"role": "user", "content": "attachment://" + name}, {"role": "assistant", "content": [{"type": "text", "text": "2"}]}],
        "output": {"choices": [{"message": {"content": "2"}, "stop_reason": "stop"}], "completion": "2", "usage": {"input_tokens": 3}, "time": 0.5},
        "scores": {"match": {"value": {"a": "C", "b": 0.5}, "answer": "2"}}, "attachments": {name: "x"}, "metadata": {"n": 1e99},
    }
    plain = sample | {"id": 2, "epoch": 2, "scores": {"match": {"value": "I"}}, "error": {"message": "it broke"}}
    entries = lambda *parts: b"\0".join(json.dumps(part).encode() for part in parts)
    put("eval_log", "entries", b"3" + entries(header, sample, plain))
    put("eval_log", "version-1", b"2" + entries({"version": 1, "eval": header["eval"], "results": {"scorer": {"name": "match"}, "metrics": {"accuracy": {"value": 1}}}},
                                                {"id": "a", "input": "q", "target": "t", "score": {"value": "P"}}))
    put("eval_log", "nested", b"3" + entries(header) + b"\0" + b'{"id":1,"input":' + b"[" * 500)
    put("eval_log", "members", b"3" + entries(header, {"id": 1, "scores": {"match": {"value": {str(n): n for n in range(300)}}}}))
    put("eval_log", "numbers", b"3" + entries(header, sample | {"epoch": 2**32, "output": {"usage": {"input_tokens": 2**64 - 1, "input_tokens_cache_read": 2**64 - 1}},
                                                                  "scores": {"match": {"value": float("inf")}, "other": {"value": 1e308}}}))
    put("eval_log", "attachments", b"3" + entries(header, sample | {"input": ("attachment://" + name) * 50, "attachments": {name: "attachment://" + name}}))


def formulas():
    for name, text in {
        "plain": "correct ~ model*variant + (1+variant|template) + (1|item)",
        "powers": "y ~ (a + b + c)^3 - a:b:c + `odd name` + (0 + x || g/h)",
        "nested": "y ~ 0 + a/b + ((a)):((c + d)) + (a*b|g:h)",
        "many": "y ~ " + "*".join(f"c{n}" for n in range(20)) + " + (1|g)",
        "wrong": "y ~ a + (1|g + log(x)) # |",
    }.items():
        put("formula", name, text)


def tasks():
    for file in sorted((ROOT / "tasks").glob("*.toml")):
        put("task", file.name, file.read_bytes())
    new = (ROOT / "crates/tasks/src/suite/task/new.toml").read_text()
    put("task", "new.toml", new.replace("{name}", "questions"))
    def task(name, questions="", prompt="", more=""):
        text = f'name = "t"\n[questions]\npath = "questions.jsonl"\n{questions}\n'
        put("task", f"{name}.toml", text + (f"[prompt]\ntemplate = \'\'\'{prompt}\'\'\'\n" if prompt else "") + more)

    task("fields", 'question = "{{ question }}"\nanswer = "{{ answer }}"')
    task("choices", 'choices = "{{ [answer, 1, 2] }}"\nanswer = "{{ [answer, 1]|first }}"')
    task("values", 'id = "{{ question|length }}"\ncluster = "{{ question[:3] }}"\ncovariates = { a = "{{ answer * 2 }}", b = "{{ {\'x\': [1, [2]]} }}" }')
    task("prompt", prompt="{% for i in range(3) %}{{ loop.index }}. {{ question|upper }}\\n{% endfor %}{% if answer is defined %}{{ answer|tojson }}{% endif %}")
    task("macros", prompt="{% macro f(x) %}{{ x ~ x }}{% endmacro %}{{ f(question).replace(' ', '_').split('_')|join(', ') }}")
    task("grows", prompt="{% set n = namespace(x=question) %}{% for i in range(9) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x|length }}")
    task("nests", prompt="{% set n = namespace(x=[]) %}{% for i in range(90) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x|tojson }}", more="system = \"{{ '%5d'|format(3) }}\"\n")
    task("operators", prompt="{{ " + "not " * 50 + "(" * 20 + "1" + "+1" * 50 + ")" * 20 + " }}")
    task("examples", prompt="{{ question }}", more='[examples]\ncount = 1\nanswer = "{{ answer }}!"\n')
    put("task", "deep.toml", "a = " + "[" * 3000)


def varint(number):
    number &= 2**64 - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def signed(number):
    return varint(number << 1 ^ number >> 63)


def thrift(**fields):
    """A structure of the compact protocol: f1=5 is a number, f2=b"x" a text, f3=[...] a list of structures, f4=("i", [...]) or ("s", [...])
    one of numbers or texts, f5=("raw", bytes) a structure."""
    out, last = b"", 0
    for name, value in fields.items():
        number = int(name[1:])
        kind = {int: 6, bytes: 8, list: 9}.get(type(value)) or (12 if value[0] == "raw" else 9)
        if type(value) is int and abs(value) < 2**31:
            kind = 5
        out += bytes([number - last << 4 | kind])
        last = number
        if type(value) is int:
            out += signed(value)
        elif type(value) is bytes:
            out += varint(len(value)) + value
        elif kind == 12:
            out += value[1]
        else:
            of, items = (12, value) if type(value) is list else ({"i": 5, "s": 8}[value[0]], value[1])
            items = [signed(item) if of == 5 else varint(len(item)) + item if of == 8 else item for item in items]
            out += (bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + varint(len(items))) + b"".join(items)
    return out + b"\0"


def parquet_page(kind, data, values, encoding=0, size=None):
    head = {"f1": kind, "f2": len(data) if size is None else size, "f3": len(data)}
    if kind == 0:
        head["f5"] = ("raw", thrift(f1=values, f2=encoding, f3=3, f4=3))
    elif kind == 2:
        head["f7"] = ("raw", thrift(f1=values, f2=encoding))
    else:
        head["f8"] = ("raw", thrift(f1=values, f2=0, f3=values, f4=encoding, f5=0, f6=0))
    return thrift(**head) + data


def parquet_file(columns, rows, depth=0):
    """A file of one row group. A column: name, repetition (0 required, 1 optional, 2 repeated), codec, pages, values."""
    schema = [thrift(f4=b"root", f5=1 if depth else len(columns))]
    schema += [thrift(f3=0, f4=b"g", f5=len(columns) if level == depth - 1 else 1) for level in range(depth)]
    body, chunks = b"PAR1", []
    for name, repetition, codec, pages, values in columns:
        schema.append(thrift(f1=6, f3=repetition, f4=name, f6=0))
        start, data = len(body), b"".join(pages)
        dictionary = {"f11": start} if len(pages) > 1 else {}
        path = ("s", [b"g"] * depth + [name])
        meta = thrift(f1=6, f2=("i", [0, 8]), f3=path, f4=codec, f5=values, f6=len(data), f7=len(data), f9=start, **dictionary)
        chunks.append(thrift(f2=start, f3=("raw", meta)))
        body += data
    footer = thrift(f1=1, f2=schema, f3=rows, f4=[thrift(f1=chunks, f2=len(body), f3=rows)])
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def parquets():
    texts = lambda *items: b"".join(struct.pack("<I", len(item)) + item for item in items)
    questions, answers = texts(b"What is 1 + 1?", b"What is 2 + 1?"), texts(b"2", b"3")
    answer = (b"answer", 0, 0, [parquet_page(0, answers, 2)], 2)
    asked = lambda pages, codec=0, values=2: (b"question", 0, codec, pages, values)
    level = lambda data: struct.pack("<I", len(data)) + data
    nulls = level(varint(100 << 1) + b"\0")
    lists = level(b"\2\0" + varint(99 << 1) + b"\1") + level(varint(100 << 1) + b"\1") + b"\1" + varint(100 << 1) + b"\0"
    lengths = varint(128) + varint(4) + varint(2**31 - 1) + signed(2**31 - 1) + b"\0" * 40
    packed = gzip.compress(questions, mtime=0)
    files = {
        "plain": parquet_file([asked([parquet_page(0, questions, 2)]), answer], 2),
        "second": parquet_file([asked([parquet_page(3, questions, 2)]), answer], 2),
        "gzip": parquet_file([asked([parquet_page(0, packed, 2, size=len(questions))], codec=2), answer], 2),
        "gzip-small": parquet_file([asked([parquet_page(0, gzip.compress(b"\0" * 10**6, mtime=0), 2, size=9)], codec=2), answer], 2),
        "dictionary": parquet_file([asked([parquet_page(2, texts(b"What is 1 + 1?"), 1), parquet_page(0, b"\1" + varint(4) + b"\0", 2, 8)]), answer], 2),
        "nulls": parquet_file([(b"question", 1, 0, [parquet_page(0, nulls, 100)], 100)], 100),
        "lists": parquet_file([(b"question", 2, 0, [parquet_page(2, texts(b"1 + 1?"), 1), parquet_page(0, lists, 100, 8)], 100)], 1),
        "lengths": parquet_file([asked([parquet_page(0, lengths, 2, 6)]), answer], 2),
        "deep": parquet_file([asked([parquet_page(0, questions, 2)]), answer], 2, depth=100),
        "rows": parquet_file([asked([parquet_page(0, questions, 2**31 - 1)]), answer], 2**31 - 1),
        "snappy": parquet_file([asked([parquet_page(0, varint(2**32 - 1) + b"\0" * 20, 2, size=2**31 - 1)], codec=1), answer], 2),
    }
    for name, data in files.items():
        put("parquet", f"{name}.parquet", data)


def answers():
    lines = [json.loads(line) for line in gzip.open(GOLDEN / "answers/own.jsonl.gz", "rt", encoding="utf-8").read().splitlines()]
    text = lambda line, *keys: next((str(line[key]) for key in keys if line.get(key) is not None), "")
    chosen = sorted(lines, key=lambda line: len(text(line, "completion", "text", "output")))[:: max(1, len(lines) // 40)]
    for place, line in enumerate(chosen):
        put("answer", f"own-{place:02}", text(line, "prompt", "question") + "\0" + text(line, "completion", "text", "output"))
    put("answer", "thinking", "x\0<think>1 2 3</think><think>4\n\\boxed{\\frac{1}{2}}")
    put("answer", "boxes", "x\0" + "\\boxed{" * 500 + "7" + "}" * 500)
    put("answer", "numbers", "x\0" + "1,234.5e-7/3 ½ 二十三 twenty-three **-0012** #### $1.50 ١٢ " * 5)


def main():
    program = os.path.abspath(sys.argv[1])
    (CORPUS / "eval_log").mkdir(exist_ok=True)
    for target in CORPUS.iterdir():
        for file in target.iterdir():
            if not file.name.startswith("found-"):
                file.unlink()
    checkpoints_gguf()
    checkpoints_folder()
    tokenizers()
    templates()
    bodies()
    stores(program)
    logs()
    names()
    eval_logs()
    tasks()
    parquets()
    formulas()
    answers()
    total = 0
    for target in sorted(CORPUS.iterdir()):
        size = sum(file.stat().st_size for file in target.iterdir())
        total += size
        print(f"{target.name:12} {len(list(target.iterdir())):3} files {size:7} bytes")
    print(f"{total} bytes")


main()
