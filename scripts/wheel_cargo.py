#!/usr/bin/env python3
"""A cargo for maturin that has built the program already: scripts/wheel.sh and release.sh pack one program, and build it once.

REAL_CARGO is cargo, PROGRAM the finished program. `cargo rustc` answers as cargo does when nothing has changed; everything else is cargo's.
"""

import json
import os
import subprocess
import sys

cargo, program = os.environ["REAL_CARGO"], os.environ["PROGRAM"]
if sys.argv[1:2] != ["rustc"]:
    os.execvp(cargo, [cargo, *sys.argv[1:]])
done = subprocess.run([cargo, "metadata", "--no-deps", "--format-version", "1"], stdout=subprocess.PIPE, check=True)
(package,) = (package for package in json.loads(done.stdout)["packages"] if package["name"] == "earnest")
(target,) = (target for target in package["targets"] if target["kind"] == ["bin"])
artifact = {
    "reason": "compiler-artifact",
    "package_id": package["id"],
    "manifest_path": package["manifest_path"],
    "target": target,
    "profile": {"opt_level": "3", "debuginfo": 0, "debug_assertions": False, "overflow_checks": False, "test": False},
    "features": [],
    "filenames": [program],
    "executable": program,
    "fresh": True,
}
print(json.dumps(artifact))
print(json.dumps({"reason": "build-finished", "success": True}))
