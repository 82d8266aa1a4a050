#!/usr/bin/env python3
"""The tables of speed in benches/results/engine-memory.md, from its rows.

    python3 benches/peers/memory_table.py

needs: nothing beyond Python. Medians over rounds; "times" are medians of a round's ratios to llama.cpp, with the least and the greatest. "Of peak" is the
least time that the machine's peaks, measured by each run for itself, allow for the work, as a share of the time it took.
"""
import json
from pathlib import Path
from statistics import median

ROWS = Path(__file__).resolve().parent.parent / "results" / "data" / "engine-memory.json"
NAMES = {"int8": "int8", "a8": "a8", "f32": "f32, exact"}


def number(v):
    return f"{v:,.0f}" if v >= 99.5 else f"{v:.1f}"


for table in json.load(open(ROWS))["rounds_by_batch"]:
    rounds = table["rounds"]
    print(f"\n{table['model']}: {len(rounds)} rounds, {table['prompt_tokens']} prompt tokens and {table['new_tokens']} new ones, {table['machine']}")
    for what in ("decode", "prefill"):
        print(f"\n| {what}, tokens a second | llama.cpp | " + " | ".join(f"{name} | times llama.cpp | of peak" for name in NAMES.values()) + " |")
        print("|" + "---|" * (2 + 3 * len(NAMES)))
        for batch in rounds[0]["llama.cpp"]:
            peer = [row["llama.cpp"][batch][what] for row in rounds]
            cells = [f"batch {batch}", number(median(peer))]
            for name in NAMES:
                own = [row[name][batch] for row in rounds]
                ratios = [row[what] / other for row, other in zip(own, peer)]
                cells += [number(median(row[what] for row in own)), f"**{median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})",
                          f"{100 * median(row[what + '_of_peak'] for row in own):.0f} %"]
            print("| " + " | ".join(cells) + " |")
