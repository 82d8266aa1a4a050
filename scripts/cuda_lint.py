#!/usr/bin/env python3
"""Reads the machine code of every compiled CUDA kernel and says where it is not what the sources mean.

    cuda_lint.py [--tools FOLDER] [--only sm_90,sm_90a] [--table] [FILE]
    cuda_lint.py --self-test [--tools FOLDER]

FILE is `embedded` of cuda-assemble.sh --record. FOLDER has nvdisasm and cuobjdump of CUDA 13; without it they are those of PATH. Needs zstd.
--table lists every kernel. --self-test plants faults, in made-up code, and with the tools in real code too, and expects each to be found.

Nothing here is a copy of numbers that a compiler once gave, except the lists of SPILLS and registers. What a kernel must have is computed from its
source: the preprocessor's lines give the kernels of a unit, their tiles and threads, and the loops of the source are unrolled, so that the number of
products is theirs. A whole multiple is allowed, in case the compiler repeats a loop's body.
"""

import argparse
import concurrent.futures
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates/engine/src/cuda/kernels"
EMBEDDED = SOURCES / "embedded"

# Largest frames of local memory, in bytes a thread, of what spills: attend_tall, by the columns of a head. Every other kernel must do without.
SPILLS = {("attend_tall", 160): 64, ("attend_tall", 192): 112, ("attend_tall", 224): 216, ("attend_tall", 256): 272}

# What a multiprocessor has, for the table: shared memory in KiB (a block gets 1 KiB less), threads, blocks.
MULTIPROCESSOR = {
    "sm_80": (164, 2048, 32),
    "sm_89": (100, 1536, 24),
    "sm_90": (228, 2048, 32),
    "sm_90a": (228, 2048, 32),
    "sm_100": (228, 2048, 32),
    "sm_120": (100, 1536, 24),
}

# Most registers of a thread. A kernel that needs more has changed: whether it is worth it, and how many blocks a multiprocessor still has (--table),
# is for whoever edits these lines to say. Numbers are multiples of eight, the pieces that registers are given in, and hold for all architectures.
PRODUCT_REGISTERS = {
    "dense": {8: 96, 16: 104, 32: 104, 64: 144, 128: 232},
    "quantised": {8: 128, 16: 128, 32: 144, 64: 192, 128: 256},
    "e4m3": {8: 128, 16: 144, 32: 216, 64: 256, 128: 256},
}
WGMMA_REGISTERS = {
    "dense": {8: 64, 16: 72, 32: 96, 64: 128, 128: 192, 192: 248},
    "e4m3": {8: 88, 16: 104, 32: 144, 64: 192, 96: 232},
}
TALL_REGISTERS = {32: 192, 64: 240, 96: 256, 128: 256, 160: 256, 192: 256, 224: 256, 256: 256}
WIDE_REGISTERS = {32: 96, 64: 104, 96: 112, 128: 120, 160: 120, 192: 120, 224: 120, 256: 128}
OTHER_REGISTERS = {"attend_plain": 104, "product_plain": 96, "experts_plain": 96, "place": 80}
REGISTERS = 64


# ---- The units and their kernels, from the sources


class Unit:
    """Kernels that are compiled together: the rules of `Unit` in kernels.rs."""

    def __init__(self, name, defines, files):
        self.name, self.defines, self.files = name, defines, files
        self.element = defines["ELEMENT"]
        self.e4m3 = defines.get("WEIGHTS") == 5

    def digest(self, architecture):
        options = f'["--gpu-architecture={architecture}", "--std=c++17", "--diag-suppress=177"]'
        source = "".join(f"#define {name} {value}\n" for name, value in self.defines.items())
        return hashlib.sha256(f"{options}\n{source}{self.text()}".encode()).digest()

    def text(self):
        return "".join((SOURCES / file).read_text() for file in self.files)


def all_units():
    elements, heads = ["f32", "bf16", "f16"], range(32, 257, 32)
    kinds = ["dense", "q8_0", "q4k", "q5k", "q6k", "e4m3"]
    for number, element in enumerate(elements):
        of = {"ELEMENT": number}
        yield Unit(f"layers-{element}", of, ["common.cuh", "blocks.cuh", "layers.cu", "experts.cu", "choice.cu"])
        for head in heads if number else [256]:
            yield Unit(f"attention-{element}-{head}", of | {"HEAD": head}, ["common.cuh", "attention.cu"])
        for weights, kind in enumerate(kinds if number else kinds[:1]):
            for suffix, experts in ("", {}), ("-experts", {"EXPERTS": 1}):
                defines = of | {"WEIGHTS": weights} | experts
                files = ["common.cuh", "blocks.cuh", "products.cuh"] + ["e4m3.cuh"] * (kind == "e4m3")
                yield Unit(f"product-{element}-{kind}{suffix}", defines, [*files, "product.cu"])
                if number and kind in ("dense", "e4m3"):
                    yield Unit(f"wgmma-{element}-{kind}{suffix}", defines, [*files, "warp_groups.cuh", "wgmma.cu"])


class Kernel:
    """A kernel of the source: threads and blocks of its launch bounds, the arguments of the macro that makes it."""

    def __init__(self, name, threads, blocks, arguments, value):
        self.name, self.threads, self.blocks, self.arguments, self.value = name, threads, blocks, arguments, value


def preprocess(text, defines):
    """The kernels of a source by name. Knows what our sources use: conditions on numbers, and macros whose body declares a kernel."""
    macros = {name: str(value) for name, value in defines.items()}
    functions, stack, kernels = {}, [], {}

    def value(expression):
        expression = re.sub(r"defined\((\w+)\)", lambda m: str(int(m[1] in macros)), expression)
        while (expanded := re.sub(r"[A-Za-z_]\w*", lambda m: f"({macros.get(m[0], '0')})", expression)) != expression:
            expression = expanded
        expression = expression.replace("&&", " and ").replace("||", " or ").replace("!=", "<>")
        return int(eval(expression.replace("!", " not ").replace("<>", "!="), {"__builtins__": {}}))

    def declare(line, arguments):
        for threads, blocks, name in re.findall(r"\bKERNEL_OF\(([^,]+), ([^,]+), (\w+)\)", line):
            kernels[name] = Kernel(name, value(threads), value(blocks), arguments, value)

    def active():
        return all(holds for holds, _ in stack)

    for line in re.sub(r"\\\n", " ", text).split("\n"):
        line = line.split("//")[0].strip()
        if match := re.match(r"#(ifdef|ifndef|if|elif)\s+(.*)", line):
            # Of the conditions around a line: whether it is in the branch that counts, and whether such a branch has been.
            taken = stack.pop()[1] if match[1] == "elif" else False
            if taken or not active():
                stack.append((False, True))
            else:
                holds = value(match[2]) != 0 if match[1].endswith("if") else (match[2] in macros) == (match[1] == "ifdef")
                stack.append((holds, holds))
        elif line.startswith("#else"):
            stack.append((not stack.pop()[1], True))
        elif line.startswith("#endif"):
            stack.pop()
        elif not active():
            continue
        elif match := re.match(r"#define (\w+)\(([^)]*)\)\s*(.*)", line):
            functions[match[1]] = (match[2].split(", "), match[3])
        elif match := re.match(r"#define (\w+)\s*(.*)", line):
            macros[match[1]] = match[2]
        elif match := re.match(r"(\w+)\(([^)]*)\)$", line):
            if match[1] == "KERNEL_OF":
                declare(line, {})
            elif "KERNEL_OF(" in functions.get(match[1], ("", ""))[1]:
                names, body = functions[match[1]]
                arguments = dict(zip(names, match[2].split(", ")))
                body = re.sub(r"\w+", lambda m: arguments.get(m[0], m[0]), body).replace("##", "")
                numbers = {name: int(of) for name, of in arguments.items() if of.isdigit()}
                declare(body, numbers)
        elif line.startswith("KERNEL_OF("):
            declare(line, {})
    return kernels


# ---- What a kernel must have


class Expected:
    """Of one kernel: instructions with their number in one pass over the source's loops, least copies, dynamic shared memory, frame, registers."""

    def __init__(self):
        self.products = {}
        self.copies = self.shared = self.frame = 0
        self.registers = REGISTERS
        # Of kernels by warp groups: the instruction, stages of copies.
        self.warp_groups = None


def expect(unit, kernel, architecture):
    of, expected = kernel.arguments, Expected()
    mma = "HMMA.16816.F32" if unit.element == 2 else "HMMA.16816.F32.BF16"
    expected.frame = SPILLS.get((kernel.name, unit.defines.get("HEAD")), 0)
    expected.registers = OTHER_REGISTERS.get(kernel.name, REGISTERS)
    kind = {0: "dense", 5: "e4m3"}.get(unit.defines.get("WEIGHTS"), "quantised")
    if unit.element == 0:
        return expected
    if "groups" in of:
        instruction = f"HGMMA.64x{of['m_tile']}x16.F32" + (".BF16" if unit.element == 1 else "")
        if unit.e4m3:
            instruction = f"QGMMA.64x{of['m_tile']}x32.F32.E4M3.E4M3"
        expected.warp_groups = (instruction, of["stages"])
        expected.registers = WGMMA_REGISTERS[kind].get(of["m_tile"], REGISTERS)
        expected.copies = 4
        expected.shared = of["stages"] * (64 * of["groups"] + of["m_tile"]) * 128 + 1024
    elif "warps_n" in of:
        # Tiles of 16 columns by 8 rows of a warp, in four parts of a step.
        columns, rows = of["n_tile"] // of["warps_n"] // 16, of["m_tile"] // of["warps_m"] // 8
        count = 4 * columns * rows
        if not unit.e4m3:
            expected.products[mma] = count
        elif architecture in ("sm_89", "sm_120"):
            expected.products["QMMA.16832.F32.E4M3.E4M3"] = count
        else:
            # 9.0 and 10.0 have no such instruction: two products of f16 stand for it (docs/cuda.md, "8-bit floats").
            expected.products["HMMA.16816.F32"] = 2 * count
        expected.registers = PRODUCT_REGISTERS[kind].get(of["m_tile"], REGISTERS)
        expected.products["LDSM.16.M88.4"] = 4 * (columns + max(1, rows // 2))
        # Of each operand that is copied, before the loop and in it.
        expected.copies = 4 if unit.e4m3 or unit.defines["WEIGHTS"] == 0 else 2
        expected.shared = kernel.value("STAGES") * (of["n_tile"] + of["m_tile"]) * (128 + 16)
    elif kernel.name.startswith(("attend_tall", "attend_wide")):
        head, part, row = unit.defines["HEAD"], kernel.value("PART"), kernel.value("ROW")
        # Keys and values, of the first part and of the others. Where threads share a row evenly, the loop of a copy is unrolled.
        chunks = head // 8
        step, uneven = divmod(kernel.threads, chunks)
        expected.copies = 4 if uneven or 32 % step else 4 * part * chunks // kernel.threads
        if kernel.name == "attend_tall":
            scores, values, sums = part // 8, head // 8, part // 16
            matrices, transposed = head // 16 * (1 + part // 16), head // 16 * (part // 16)
            products = head // 16 * scores + part // 16 * values + sums
            expected.registers = TALL_REGISTERS.get(head, REGISTERS)
            expected.shared = (kernel.value("TALL_ROWS") + 2 * part) * row * 2
        else:
            warps = kernel.threads // 32
            share, tiles = part // warps, math.ceil(head / 8 / warps)
            matrices, transposed = head // 16 * (1 + share // 16) + part // 32 * 2, part // 32 * tiles
            products = head // 16 * (share // 8) + part // 32 * (2 + 2 * tiles)
            wide = kernel.value("WIDE_ROWS")
            expected.registers = WIDE_REGISTERS.get(head, REGISTERS)
            expected.shared = (wide + 2 * part) * row * 2 + wide * kernel.value("P_ROW") * 2 + 8 * wide * 4
        expected.products = {mma: products, "LDSM.16.M88.4": matrices, "LDSM.16.MT88.4": transposed}
    return expected


# ---- The code that is there


class Code:
    """A kernel's instructions as (name, text without guard), and the targets of its branches."""

    def __init__(self):
        self.instructions, self.labels = [], {}

    def count(self, name):
        return sum(1 for one, _ in self.instructions if one == name)

    def all_of(self, *families):
        return [one for one in self.instructions if one[0].split(".")[0] in families]

    def loop(self):
        """Instructions of the innermost loop around the first product, 0 without one."""
        first = next((i for i, one in enumerate(self.instructions) if MATRIX.match(one[0])), None)
        spans = []
        for i, (name, text) in enumerate(self.instructions):
            if name == "BRA" and (match := re.search(r"\.L_x_\d+", text)):
                target = self.labels.get(match[0], i + 1)
                if first is not None and target <= first <= i:
                    spans.append(i + 1 - target)
        return min(spans, default=0)


# Products of matrices: HMMA, QMMA, HGMMA, QGMMA and what may come.
MATRIX = re.compile(r"[A-Z0-9]*MMA\b")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?((\S+?)(?:\s.*?)?)\s*;|^\.text\.earnest_(\w+):|^(\.L_x_\d+):", re.M)


def read_code(text):
    """The kernels of a disassembly by name."""
    kernels, code = {}, None
    for match in INSTRUCTION.finditer(text):
        if match[3]:
            code = kernels.setdefault(match[3], Code())
        elif code is not None and match[4]:
            code.labels[match[4]] = len(code.instructions)
        elif code is not None:
            code.instructions.append((match[2], match[1]))
    return kernels


class Usage:
    def __init__(self, registers, stack, shared, local):
        self.registers, self.stack, self.shared, self.local = registers, stack, shared, local


def read_usage(text):
    found = re.findall(r"Function earnest_(\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", text)
    return {name: Usage(*map(int, numbers)) for name, *numbers in found}


# ---- The comparison


def blocks_of(kernel, usage, expected, architecture):
    """Blocks of a multiprocessor at once: as registers allow, and as all else does."""
    shared, threads, blocks = MULTIPROCESSOR[architecture]
    warps = math.ceil(kernel.threads / 32)
    # A warp gets its registers in pieces of eight a thread, from one of four files of 16,384.
    by_registers = 16384 // (math.ceil(usage.registers / 8) * 8 * 32) * 4 // warps
    # A block takes 1 KiB more than its own, which is in cuobjdump's number from 9.0 on.
    bytes_of_block = expected.shared + (usage.shared if usage.shared >= 1024 else usage.shared + 1024)
    return by_registers, min(shared * 1024 // bytes_of_block, threads // (warps * 32), blocks)


def check_warp_groups(code, expected, e4m3):
    """The order of a step: copies awaited, fence, barrier, four products of which the last ends the group, new copies, one wait."""
    instruction, stages = expected.warp_groups
    letters = []
    for name, text in code.instructions:
        if name == instruction:
            letters.append("M" if "gsb0" in text else "m")
        elif MATRIX.match(name):
            return [(f"only {instruction}", text)]
        elif name.startswith("LDGSTS"):
            letters.append("c")
        elif name.startswith("WARPGROUP.DEPBAR"):
            letters.append({"0x0": "0", "0x1": "1"}.get(text.split()[-1], "?") if "gsb0" in text else "?")
        elif name == "WARPGROUP.ARRIVE":
            letters.append("a")
        elif name.startswith("DEPBAR") and "SB0" in text:
            letters.append("w" if text.endswith(hex(stages - 3)) else "W" if text.endswith("0x0") else "?")
        elif name.startswith("FENCE.VIEW.ASYNC"):
            letters.append("f")
        elif name.startswith("BAR.SYNC"):
            letters.append("b")
        elif name == "LDGDEPBAR":
            letters.append("g")
    found = "".join(letters)
    # Products of 8 bits are awaited in their step, others in the next one and once a segment.
    order = r"[cg]*(wfbammmMc+g0)+W" if e4m3 else r"[cg]*((wfbammmMc+g1)+0)+W"
    problems = []
    if not re.fullmatch(order, found):
        words = {"m": instruction, "M": f"{instruction} gsb0", "c": "copy", "g": "LDGDEPBAR", "a": "WARPGROUP.ARRIVE", "f": "FENCE.VIEW.ASYNC"}
        words |= {"b": "BAR.SYNC", "w": f"DEPBAR SB0 {stages - 3}", "W": "DEPBAR SB0 0", "?": "another wait"}
        words |= {"0": "WARPGROUP.DEPBAR gsb0 0", "1": "WARPGROUP.DEPBAR gsb0 1"}

        def spell(letters):
            runs = re.findall(r"(.)(\1*)", letters)
            return ", ".join(f"{len(more) + 1} x {words[one]}" if more else words[one] for one, more in runs)

        # From the first step on.
        first = next((i for i, one in enumerate(found) if one in "mM"), None)
        is_there = f"no {instruction}, {len(code.all_of('FFMA', 'HFMA2'))} FFMA and HFMA2"
        if first is not None:
            is_there = spell(found[max(0, first - 4) :][:40])
        step = "wfbammmMcg" + ("0" if e4m3 else "1")
        problems.append((f"one wait a step, none after each product: {spell(step)}", is_there))
    targets = {text.split()[1].rstrip(",") for name, text in code.instructions if name == instruction}
    if len(targets) > 1:
        problems.append(("one set of accumulators", f"{len(targets)}: {', '.join(sorted(targets))}"))
    return problems


def check_kernel(unit, kernel, architecture, usage, code):
    """Pairs of what was expected and what was found."""
    expected = expect(unit, kernel, architecture)
    problems = []
    local = code.all_of("STL", "LDL")
    if max(usage.stack, usage.local) > expected.frame or (local and not expected.frame):
        frame = f"at most {expected.frame} bytes of" if expected.frame else "no"
        problems.append((f"{frame} local memory", f"a frame of {max(usage.stack, usage.local)} bytes, {len(local)} instructions STL and LDL"))

    if expected.warp_groups:
        problems += check_warp_groups(code, expected, unit.e4m3)
    # All of them as often as the source's loops say, or all twice, and so on.
    times = {code.count(name) / count for name, count in expected.products.items()}
    if times and (len(times) > 1 or not times <= set(range(1, 9))):
        wanted = ", ".join(f"{count} {name}" for name, count in expected.products.items())
        found = ", ".join(f"{code.count(name)} {name}" for name in expected.products)
        scalar = len(code.all_of("FFMA", "HFMA2"))
        problems.append((wanted, f"{found} (FFMA, HFMA2: {scalar})"))
    allowed = set(expected.products) | {expected.warp_groups[0] if expected.warp_groups else ""}
    others = {name for name, _ in code.instructions if MATRIX.match(name)} - allowed
    if others and not expected.warp_groups:
        problems.append(("no other products", ", ".join(sorted(others))))
    copies = code.all_of("LDGSTS")
    if len(copies) < expected.copies:
        problems.append((f"at least {expected.copies} LDGSTS", str(len(copies))))
    # With or without ZFILL, zeros by a predicate.
    if others := {name for name, _ in copies if not name.startswith("LDGSTS.E.BYPASS.128")}:
        problems.append(("copies of 16 bytes past the first cache", ", ".join(sorted(others))))
    if usage.registers > expected.registers:
        problems.append((f"at most {expected.registers} registers", str(usage.registers)))
    return problems


def row_of(unit, kernel, architecture, usage, code):
    expected = expect(unit, kernel, architecture)
    by_registers, by_others = blocks_of(kernel, usage, expected, architecture)
    matrix = {}
    for name, _ in code.instructions:
        if MATRIX.match(name):
            matrix[name] = matrix.get(name, 0) + 1
    products = ", ".join(f"{count} {name}" for name, count in matrix.items())
    loop = code.loop()
    shared = usage.shared + expected.shared
    return [architecture, unit.name, kernel.name, usage.registers, shared, usage.stack, f"{by_registers}/{by_others}", len(code.instructions), loop, products]


# ---- Files


def parts(data):
    """Architecture and compressed binaries of each part."""
    line, _, rest = data.partition(b"\n")
    for word in line.decode().split(" ")[2:]:
        architecture, size = word.split(":")
        yield architecture, rest[: int(size)]
        rest = rest[int(size) :]


def binaries(part):
    """Digest and binary of each unit."""
    data = subprocess.run(["zstd", "-dcq", "--long=27"], input=part, stdout=subprocess.PIPE, check=True).stdout
    while data:
        size = int.from_bytes(data[32:36], "little")
        yield data[:32], data[36 : 36 + size]
        data = data[36 + size :]


def tool(folder, name):
    path = shutil.which(name, path=folder) if folder else shutil.which(name)
    if not path:
        sys.exit(f"error: no {name} in {folder or 'PATH'}; --tools FOLDER names its folder")
    return path


def disassemble(binary, tools):
    """Texts of nvdisasm and cuobjdump."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()

        def output(*command):
            # Both warn about files of another release in any case; what they cannot read ends with an error.
            run = subprocess.run([*command, file.name], capture_output=True, text=True)
            if run.returncode:
                raise RuntimeError(f"{command[0]}: {run.stderr.strip()}")
            return run.stdout

        # Without the analysis of branches, which takes half the time.
        return output(tool(tools, "nvdisasm"), "-c", "-ndf"), output(tool(tools, "cuobjdump"), "-res-usage")


def lint_unit(unit, architecture, texts):
    """Problems and rows of the table."""
    codes, usages = read_code(texts[0]), read_usage(texts[1])
    kernels = preprocess(unit.text(), unit.defines)
    problems, rows = [], []
    for name in sorted(codes.keys() | usages.keys() | kernels.keys()):
        if name in codes and name in usages and name in kernels:
            found = check_kernel(unit, kernels[name], architecture, usages[name], codes[name])
            problems += [(architecture, unit.name, name, *pair) for pair in found]
            rows.append(row_of(unit, kernels[name], architecture, usages[name], codes[name]))
        else:
            places = {"the source": kernels, "the code": codes, "the list of resources": usages}
            absent = ", ".join(place for place, names in places.items() if name not in names)
            problems.append((architecture, unit.name, name, "the kernels of the source", f"it is not in {absent}"))
    return problems, rows


def lint_binary(work):
    unit, architecture, binary, tools = work
    return lint_unit(unit, architecture, disassemble(binary, tools))


def work_of(path, only, tools):
    data = path.read_bytes()
    for architecture, part in parts(data):
        if only and architecture not in only:
            continue
        by_digest = {unit.digest(architecture): unit for unit in all_units()}
        for digest, binary in binaries(part):
            if digest not in by_digest:
                sys.exit(f"error: {path} has code for {architecture} of other sources than these: scripts/cuda-assemble.sh --record")
            yield by_digest[digest], architecture, binary, tools


def lint(path, only, tools, table):
    tool(tools, "nvdisasm"), tool(tools, "cuobjdump")
    work = list(work_of(path, only, tools))
    if not work:
        sys.exit(f"error: {path} has no code for {', '.join(only)}")
    problems, rows = [], []
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for found, more in pool.map(lint_binary, work):
            problems += found
            rows += more
    if table:
        head = ["", "unit", "kernel", "registers", "shared", "stack", "blocks", "instructions", "loop", "products"]
        widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
        for row in [head, *rows]:
            print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
        print("blocks: on a multiprocessor, by registers / by all else (0: not on this device); loop: instructions of the innermost one around a product")
    for architecture, unit, kernel, expected, found in problems:
        print(f"error: {kernel} of {unit} for {architecture}: expected {expected}; found {found}", file=sys.stderr)
    architectures = list(dict.fromkeys(architecture for _, architecture, _, _ in work))
    print(f"machine code of {len(rows)} kernels ({', '.join(architectures)}): {len(problems) or 'no'} problems")
    return 1 if problems else 0


# ---- Planted faults


def unit_of(name):
    return next(unit for unit in all_units() if unit.name == name)


def made_up(name, instructions):
    """Text as nvdisasm writes it."""
    lines = [f"        /*{16 * i:04x}*/                   {text} ;" for i, text in enumerate(instructions)]
    return "\n".join([f".text.earnest_{name}:", *lines, ""])


def step_of(products, wait="0x1", copies="0x1", barrier=True, fence=True):
    yield f"DEPBAR.LE SB0, {copies}"
    yield from ["FENCE.VIEW.ASYNC.S"] * fence
    yield from ["BAR.SYNC.DEFER_BLOCKING 0x0"] * barrier
    yield "WARPGROUP.ARRIVE"
    yield from products
    yield from ["@P0 BRA `(.L_x_1)", "LDGSTS.E.BYPASS.128 [R2], desc[UR8][R4.64], P0", "LDGSTS.E.BYPASS.128 [R3], desc[UR8][R6.64], P0"]
    yield "LDGDEPBAR"
    yield f"WARPGROUP.DEPBAR.LE gsb0, {wait}" if wait else "NOP"


class Planted(unittest.TestCase):
    tools = None

    def problems(self, unit, name, instructions, registers=64, stack=0, architecture="sm_90"):
        unit = unit_of(unit)
        code = read_code(made_up(name, instructions))[name]
        return check_kernel(unit, preprocess(unit.text(), unit.defines)[name], architecture, Usage(registers, stack, 1024, 0), code)

    def assert_only(self, problems, text):
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, " ".join(problems[0]))

    def wgmma(self, *steps, **options):
        copies = ["LDGSTS.E.BYPASS.128 [R2], desc[UR8][R4.64], P0"] * 2 + ["LDGDEPBAR"]
        body = [text for step in steps for text in step]
        last = ["WARPGROUP.DEPBAR.LE gsb0, 0x0", "FADD R5, R24, R5", "DEPBAR.LE SB0, 0x0", "EXIT"]
        return self.problems("wgmma-bf16-dense", "wgmma_64", [*copies, *body, *last], architecture="sm_90a", **options)

    PRODUCT = "HGMMA.64x64x16.F32.BF16 R24, gdesc[UR16], R24"
    FOUR = [PRODUCT + ", UP0", PRODUCT, PRODUCT, PRODUCT + ", gsb0"]

    def test_kernels_are_those_of_the_source(self):
        def kernels(name):
            unit = unit_of(name)
            return {kernel.name: (kernel.threads, kernel.blocks) for kernel in preprocess(unit.text(), unit.defines).values()}

        wgmma = {f"wgmma_{rows}": (128, 1) for rows in (8, 16, 32, 64)} | {"wgmma_128": (256, 1), "wgmma_192": (256, 1)}
        self.assertEqual(kernels("wgmma-bf16-dense"), wgmma | {"add_segments": (256, 1)})
        self.assertIn("wgmma_experts_96", kernels("wgmma-f16-e4m3-experts"))
        self.assertIn("dequantise_8", kernels("product-bf16-q4k"))
        self.assertNotIn("dequantise_8", kernels("product-bf16-q4k-experts"))
        self.assertEqual(kernels("attention-bf16-128")["attend_wide"], (256, 2))
        self.assertEqual([kernels(f"attention-bf16-{head}")["attend_tall"][0] for head in (192, 224)], [128, 64])
        self.assertEqual(sorted(kernels("product-f32-dense")), ["product_plain"])

    def test_conditions_of_the_preprocessor(self):
        def names(text, **defines):
            return "".join(preprocess(re.sub(r"\b([a-z])\b", r"KERNEL_OF(32, 1, \1)", text), defines))

        chain = "#if A == 1\na\n#elif A == 2\nb\n#elif A == 2\nc\n#else\nd\n#endif\n"
        self.assertEqual([names(chain, A=number) for number in (1, 2, 3)], ["a", "b", "d"])
        nested = "#ifdef A\n#if !defined(B)\na\n#else\nb\n#endif\n#else\nc\n#endif\n#ifndef A\nd\n#endif\n"
        self.assertEqual([names(nested, A=1), names(nested, A=1, B=0), names(nested, B=0)], ["a", "b", "cd"])

    def test_order_of_a_step_by_warp_groups(self):
        self.assertEqual(self.wgmma(step_of(self.FOUR)), [])
        self.assertEqual(self.wgmma(step_of(self.FOUR), step_of(self.FOUR)), [], "the loop's body twice")
        ended = self.PRODUCT + ", gsb0"
        serialised = [text for _ in range(4) for text in (ended, "WARPGROUP.DEPBAR.LE gsb0, 0x0")]
        self.assert_only(self.wgmma(step_of(serialised)), "gsb0, WARPGROUP.DEPBAR gsb0 0, HGMMA")
        self.assert_only(self.wgmma(step_of([ended] * 4)), "4 x HGMMA.64x64x16.F32.BF16 gsb0")
        self.assert_only(self.wgmma(step_of(self.FOUR, fence=False)), "FENCE.VIEW.ASYNC")
        self.assert_only(self.wgmma(step_of(self.FOUR, barrier=False)), "BAR.SYNC")
        self.assert_only(self.wgmma(step_of(self.FOUR, wait="0x0")), "one wait a step")
        self.assert_only(self.wgmma(step_of(self.FOUR, wait=None)), "one wait a step")
        self.assert_only(self.wgmma(step_of(self.FOUR, copies="0x2")), "another wait")
        self.assert_only(self.wgmma(step_of(self.FOUR[1:])), "2 x HGMMA")
        self.assert_only(self.wgmma(step_of(self.FOUR[:3] + [ended.replace("R24", "R88")])), "2: R24, R88")
        self.assert_only(self.wgmma(step_of([text.replace("64x64", "64x32") for text in self.FOUR])), "64x32x16")
        self.assert_only(self.wgmma(step_of(["FFMA R1, R2, R3, R1"] * 4)), "no HGMMA.64x64x16.F32.BF16, 4 FFMA")

    def test_products_of_8_bits_are_awaited_in_their_step(self):
        product = "QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR16], R24"
        four = [product, product, product, product + ", gsb0"]

        def check(wait):
            copies = ["LDGSTS.E.BYPASS.128 [R2], desc[UR8][R4.64], P0"] * 2
            instructions = [*copies, *step_of(four, wait=wait), "DEPBAR.LE SB0, 0x0"]
            return self.problems("wgmma-bf16-e4m3", "wgmma_64", instructions, architecture="sm_90a")

        self.assertEqual(check("0x0"), [])
        self.assert_only(check("0x1"), "one wait a step")

    def test_products_of_a_warp(self):
        copies = ["LDGSTS.E.BYPASS.128 [R2], desc[UR8][R4.64], P0"] * 4
        loads = ["LDSM.16.M88.4 R4, [R4]"] * 20
        products = ["HMMA.16816.F32.BF16 R8, R4, R6, R8"] * 32

        def check(instructions, unit="product-bf16-dense", **options):
            return self.problems(unit, "product_64", instructions, **options)

        self.assertEqual(check(copies + loads + products), [])
        self.assertEqual(check(copies + 2 * (loads + products)), [])
        self.assert_only(check(copies + loads + products[1:]), "31 HMMA.16816.F32.BF16")
        self.assert_only(check(copies + ["FFMA R1, R2, R3, R1"] * 8192), "0 HMMA.16816.F32.BF16, 0 LDSM.16.M88.4 (FFMA, HFMA2: 8192)")
        self.assert_only(check(loads + products), "at least 4 LDGSTS")
        self.assert_only(check([*copies, copies[0].replace(".BYPASS.128", ".64"), *loads, *products]), "LDGSTS.E.64")
        self.assertEqual(check(copies + loads + products, registers=144), [])
        self.assert_only(check(copies + loads + products, registers=145), "at most 144 registers")
        # f16's instruction in the kernel of bf16, and the other way round.
        self.assertEqual(len(check(copies + loads + [text.replace(".BF16", "") for text in products])), 2)
        self.assertEqual(len(check(copies + loads + products, unit="product-f16-dense")), 2)
        codes = ["QMMA.16832.F32.E4M3.E4M3 R8, R4, R6, R8"] * 32
        self.assertEqual(check(copies + loads + codes, unit="product-bf16-e4m3", architecture="sm_120"), [])
        self.assertEqual(len(check(copies + loads + codes, unit="product-bf16-e4m3", architecture="sm_90")), 2)

    def test_local_memory(self):
        spill = ["STL [R1], R2", "LDL R2, [R1]"]
        self.assertEqual(self.problems("layers-bf16", "norm", ["EXIT"]), [])
        self.assert_only(self.problems("layers-bf16", "norm", spill, stack=8), "a frame of 8 bytes, 2 instructions")
        self.assert_only(self.problems("layers-bf16", "norm", ["EXIT"], stack=8), "a frame of 8 bytes")
        for head, stack, allowed in (256, 272, True), (256, 280, False), (128, 8, False):
            # Products are missing here.
            found = [pair for pair in self.problems(f"attention-bf16-{head}", "attend_tall", spill, stack=stack) if "local memory" in pair[0]]
            self.assertEqual(not found, allowed, f"{head} {stack}")

    def test_a_kernel_is_missing(self):
        usage = " Function earnest_product_plain:\n  REG:40 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:580"
        code = made_up("product_plain", ["EXIT"])
        unit = unit_of("product-f32-dense")
        self.assertEqual(lint_unit(unit, "sm_90", (code, usage))[0], [])
        for texts in ("", usage), (code, ""), (code + made_up("other", ["EXIT"]), usage):
            self.assertEqual(len(lint_unit(unit, "sm_90", texts)[0]), 1, texts)

    def test_real_code(self):
        if not self.tools:
            self.skipTest("no disassembler")
        works = [work for work in work_of(EMBEDDED, ["sm_90a"], self.tools) if work[0].name == "wgmma-bf16-dense"]
        unit, architecture, binary, tools = works[0]
        code, usage = disassemble(binary, tools)
        self.assertEqual(lint_unit(unit, architecture, (code, usage))[0], [])
        product = re.compile(r"^.*HGMMA\.64x192x16.*$", re.M)
        last = re.compile(r"^.*HGMMA\.64x192x16.*gsb0.*$", re.M)
        address = "        /*0000*/                   "
        for what, planted in {
            "a wait after each product": product.sub(lambda m: f"{m[0]}\n{address}WARPGROUP.DEPBAR.LE gsb0, 0x0 ;", code),
            "a product is missing": product.sub("", code, count=1),
            "other products": product.sub(f"{address}FFMA R1, R2, R3, R1 ;", code),
            "another shape": code.replace("64x192x16", "64x96x16"),
            "no group": last.sub(lambda m: m[0].replace(", gsb0", ""), code),
            "a spill": code.replace("WARPGROUP.ARRIVE ;", f"STL [R1], R2 ;\n{address}WARPGROUP.ARRIVE ;", 1),
            "no fence": code.replace("FENCE.VIEW.ASYNC.S", "NOP", 1),
            "no kernel": code.replace(".text.earnest_wgmma_192:", ".text.other:"),
        }.items():
            self.assertNotEqual(planted, code, what)
            found, _ = lint_unit(unit, architecture, (planted, usage))
            self.assertEqual({problem[2] for problem in found}, {"wgmma_192"}, what)
        found, _ = lint_unit(unit, architecture, (code, usage.replace("STACK:0", "STACK:16")))
        self.assertEqual(len(found), 7)
        with self.assertRaises(RuntimeError):
            disassemble(binary[:1000], tools)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=EMBEDDED)
    parser.add_argument("--tools", metavar="FOLDER", help="folder of nvdisasm and cuobjdump")
    parser.add_argument("--only", type=lambda names: names.split(","), default=[], metavar="ARCHITECTURES")
    parser.add_argument("--table", action="store_true", help="list every kernel")
    parser.add_argument("--self-test", action="store_true", help="find planted faults")
    options = parser.parse_args()
    if options.self_test:
        Planted.tools = options.tools
        return not unittest.main(argv=[sys.argv[0]], exit=False).result.wasSuccessful()
    try:
        return lint(options.file, options.only, options.tools, options.table)
    except (OSError, ValueError, RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {options.file}: {error}")


if __name__ == "__main__":
    sys.exit(main())
