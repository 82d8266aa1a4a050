#!/usr/bin/env python3
"""The tables of published quantisations and of speed in benches/results/engine-memory.md, from its rows.

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


document = json.load(open(ROWS))
published = document["published_quantisations"]
print("| folder | file, GB | largest resident memory, GB | its ratio |\n|---|---|---|---|")
for row in published["memory"]:
    size, resident = row["file_bytes"], row["largest_resident_bytes"]
    print(f"| {row['folder']} | {size / 1e9:.2f} | {resident / 1e9:.2f} | {resident / size:.2f} |")
rounds = published["act_order"]["rounds"]
print(f"\n{published['act_order']['folder']}: {len(rounds)} rounds\n")
print("| tokens a second | in 4 bits | in f32 | times f32 |\n|---|---|---|---|")
for what, batch in ((what, name) for what in ("decode", "prefill") for name in rounds[0]["packed"] if name.startswith("batch")):
    packed, wide = ([row[kind][batch][what] for row in rounds] for kind in ("packed", "f32"))
    ratios = [a / b for a, b in zip(packed, wide)]
    print(f"| {what}, {batch} | {number(median(packed))} | {number(median(wide))} | **{median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f}) |")

for table in document["rounds_by_batch"]:
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
