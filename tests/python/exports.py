"""Reads exports back with the tools people use. Exit code 77: a library is missing, the test is skipped.

Usage: exports.py FOLDER, which holds samples.jsonl, samples.csv, samples.parquet and lm-eval/.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

try:
    import pandas
    import pyarrow.parquet
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

folder = Path(sys.argv[1])
# JSON lines may not break at U+2028, which str.splitlines does.
rows = [json.loads(line) for line in (folder / "samples.jsonl").read_bytes().decode().split("\n") if line]


def same(expected, found, where):
    if isinstance(expected, float) and isinstance(found, (int, float)):
        assert math.isclose(expected, found, rel_tol=1e-15), (where, expected, found)
    else:
        assert expected == found, (where, expected, found)


def parquet():
    table = pyarrow.parquet.read_table(folder / "samples.parquet")
    assert table.num_rows == len(rows), table.num_rows
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds["correct"] == "bool" and kinds["prompt_tokens"] == "int64", kinds
    assert kinds["completion"] == "string" and kinds["decode_s"] == "double", kinds
    assert kinds["completion_ids"] == "list<element: int32 not null>", kinds["completion_ids"]
    assert kinds["covariate_length"] == "int64" and kinds["matcher_boundary"] == "bool", kinds
    manifest = json.loads(table.schema.metadata[b"earnest.manifest"])
    assert manifest["run"] == rows[0]["run"], manifest["run"]
    for row, found in zip(rows, table.to_pylist()):
        completion, verdict = row["completion"], row["verdict"]
        for name in ["item", "sample", "task", "gold", "prompt_sha256", "budget"]:
            same(row[name], found[name], name)
        same(completion["text"] if completion else None, found["completion"], "completion")
        same(completion["ids"] if completion else None, found["completion_ids"], "ids")
        same(completion["timings"]["decode_s"] if completion else None, found["decode_s"], "decode_s")
        same(verdict["correct"] if verdict else None, found["correct"], "correct")
        same(verdict["extracted"] if verdict else None, found["extracted"], "extracted")
        same(row["failure"]["message"] if row["failure"] else None, found["error"], "error")
        for name, value in (verdict or {"metrics": {}})["metrics"].items():
            same(value, found[f"metric_{name}"], name)


def csv():
    table = pandas.read_csv(folder / "samples.csv", dtype=str, keep_default_na=False, lineterminator=None)
    assert len(table) == len(rows), len(table)
    for row, (_, found) in zip(rows, table.iterrows()):
        completion, verdict = row["completion"], row["verdict"]
        same(row["gold"], found["gold"], "gold")
        same(completion["text"] if completion else "", found["completion"], "completion")
        same(" ".join(map(str, completion["ids"])) if completion else "", found["completion_ids"], "ids")
        same(str(verdict["correct"]).lower() if verdict else "", found["correct"], "correct")
    typed = pandas.read_csv(folder / "samples.csv")
    judged = [row["verdict"]["correct"] for row in rows if row["verdict"]]
    assert typed["correct"].dropna().astype(bool).sum() == sum(judged)
    assert str(typed["prompt_tokens"].dtype) == "int64", typed["prompt_tokens"].dtype


TASK = {"name": str, "alias": str, "sample_len": int}
SAMPLE = {
    "doc_id": int, "doc": dict, "target": str, "arguments": dict, "resps": list, "filtered_resps": list,
    "filter": str, "metrics": list, "doc_hash": str, "prompt_hash": str, "target_hash": str,
}
CONFIG = {
    "model": str, "model_args": str, "model_dtype": str, "model_sha": str, "batch_size": (str, type(None)),
    "batch_sizes": list, "device": (str, type(None)), "use_cache": (str, type(None)), "limit": (int, float, type(None)),
    "gen_kwargs": (str, dict, type(None)), "random_seed": int,
}
RESULTS = {
    "results": dict, "group_subtasks": dict, "configs": dict, "versions": dict, "n-shot": dict, "higher_is_better": dict,
    "n-samples": dict, "config": dict, "git_hash": str, "date": float, "max_length": (int, type(None)), "model_source": str,
    "model_name": str, "model_name_sanitized": str, "system_instruction": (str, type(None)),
    "fewshot_as_multiturn": (bool, type(None)), "chat_template_sha": (str, type(None)), "task_hashes": dict,
    "total_evaluation_time_seconds": str,
}


def typed(value, schema, where):
    """Checks the fields of lm-evaluation-harness's result_schema.py (release 0.4.13)."""
    for name, kind in schema.items():
        assert name in value, f"{where} has no {name}"
        assert isinstance(value[name], kind), (where, name, value[name])


def lm_eval():
    (model,) = [path for path in (folder / "lm-eval").iterdir() if path.is_dir()]
    (path,) = model.glob("results_*.json")
    results = json.loads(path.read_text("utf-8"))
    typed(results, RESULTS, "results")
    typed(results["config"], CONFIG, "config")
    assert model.name == results["model_name_sanitized"]
    for task, metrics in results["results"].items():
        typed(metrics, TASK, task)
        assert results["n-samples"][task]["original"] >= results["n-samples"][task]["effective"] == metrics["sample_len"]
        (path,) = model.glob(f"samples_{task}_20*.jsonl")
        samples = [json.loads(line) for line in path.read_bytes().decode().split("\n") if line]
        filters = {}
        for sample in samples:
            typed(sample, SAMPLE, task)
            assert sample["arguments"]["gen_args_0"]["arg_0"] == sample["doc"]["question"]
            assert sample["target_hash"] == hashlib.sha256(sample["target"].encode()).hexdigest()
            for metric in sample["metrics"]:
                assert isinstance(sample[metric], float), sample[metric]
            filters.setdefault(sample["filter"], []).append(sample["acc"])
        for name, values in filters.items():
            mean = sum(values) / len(values)
            assert math.isclose(metrics[f"acc,{name}"], mean, abs_tol=1e-12), (task, name)
            if len(values) > 1:
                spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
                assert math.isclose(metrics[f"acc_stderr,{name}"], math.sqrt(spread / len(values)), abs_tol=1e-9)
    try:
        from lm_eval.utils import make_table
    except ImportError:
        print("lm_eval is not installed: its own table is not tried")
    else:
        table = make_table(results)
        assert "acc" in table and "boundary" in table, table
        print(table)


parquet()
csv()
lm_eval()
print(f"{len(rows)} rows read back from Parquet, CSV and lm-eval results")
