#!/usr/bin/env python3
"""Packs what scripts/release.sh has made: pack.py NAME FOLDER WHEEL OUT.

Writes OUT/NAME.tar.gz with the files of FOLDER below a folder NAME, the same bytes for the same files; OUT/NAME.cdx.json, the list of the
program's crates on all platforms (SBOM, CycloneDX) that maturin put into WHEEL; a copy of WHEEL; and OUT/SHA256SUMS of the three.
"""

import gzip
import hashlib
import json
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path


def archive(name, folder, path):
    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for source in sorted(path for path in folder.rglob("*") if path.is_file()):
                tar.add(source, f"{name}/{source.relative_to(folder).as_posix()}", filter=plain)


def sbom(wheel, path):
    with zipfile.ZipFile(wheel) as packed:
        (member,) = [member for member in packed.namelist() if member.endswith(".cyclonedx.json")]
        text = packed.read(member)
    document = json.loads(text)
    assert document["bomFormat"] == "CycloneDX", document["bomFormat"]
    # Crates of the workspace are named by their path on the machine that built them.
    path.write_bytes(text.replace(Path.cwd().as_uri().encode(), b"file://"))
    return len(document["components"])


def main():
    name, folder, wheel, out = sys.argv[1], *map(Path, sys.argv[2:])
    archive(name, folder, out / f"{name}.tar.gz")
    components = sbom(wheel, out / f"{name}.cdx.json")
    if wheel.parent.resolve() != out.resolve():
        shutil.copy(wheel, out)
    sums = out / "SHA256SUMS"
    files = [out / f"{name}.cdx.json", out / f"{name}.tar.gz", out / wheel.name]
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    for path in files:
        print(f"{path.name}: {path.stat().st_size} bytes")
    print(f"{sums.name}: {len(files)} files; the SBOM lists {components} crates")


main()
