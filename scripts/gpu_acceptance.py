#!/usr/bin/env python3
"""All checks that need a GPU, as three commands of at most 9 minutes each, without a network:

  scripts/gpu_acceptance.py correctness    kernels, golden checkpoints, real models, both product engines, races; profiles of three shapes
  scripts/gpu_acceptance.py variants       every variant of the kernels beside the default: same bits or not, faster or not
  scripts/gpu_acceptance.py numbers        speed of full shapes against measured ceilings, beside vLLM or transformers if they are there
  scripts/gpu_acceptance.py summary        what the three have found so far
  scripts/gpu_acceptance.py pack FILE      one archive of the stripped program and all that the commands read, for another machine (46 MB)

In this order: mend what the first one shows (EARNEST_KERNELS takes edited kernels) before the second one measures variants, and give those that it
finds the same and faster to the third one (--variant).

  --work DIR      folder that the commands share: checkpoints (42 GB), compiled kernels, results [default: earnest-acceptance in /dev/shm
                  if that has the room, else in the temporary folder]
  --binary FILE   the program [default: target/release/earnest]
  --real MODELS   real checkpoints, with commas, whose texts on the GPU are compared with those on the CPU [default: the built-in model]
  --seconds N     time limit: steps that have not started by then are not run [default: 530]
  --variant NAMES numbers with these variants of the kernels, with commas (as --cuda-variant), kept beside the default's [default: none]
  --only PART     only steps with this in their names
  --again         repeat steps that were done before
  --resume FILE   take over the results of an earlier machine with the same kind of GPU (the archive that OUT got), and measure only the rest
  --dry-run       every command at small sizes on the CPU, and the profile on stand-ins of NVIDIA's libraries: tests this script

Needs NVIDIA's driver and python3 with its standard library; cublasLt, and NVRTC where the program has no kernels for the device: the libraries that come
with PyTorch will do, and EARNEST_CUDA_LIBRARIES names other folders. Results are written after every step: the same command goes on after
an interruption, and repeats a step only if the program, EARNEST_KERNELS or the step's command changed. If OUT is set, an archive of all results is
kept in that folder, which is made if it is not there. EARNEST_GOLDEN names a folder with more reference checkpoints (in engine/checkpoints below it) than the
repository has. Prints a line for each step (pass, FAIL, or not run and why), and a JSON summary as the last line.
Exit code: 0 everything passed; 1 something failed; 2 usage; 3 nothing failed, but something was not run; 4 there is no GPU.
"""
import argparse
import os
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "acceptance"))
import correctness  # noqa: E402
import final_numbers  # noqa: E402
import variants  # noqa: E402
from harness import PROGRAM, Session, document, golden_folder, pack  # noqa: E402

COMMANDS = {"correctness": correctness.run, "variants": variants.run, "numbers": final_numbers.run}

# Variables of paths; the first holds several folders with colons.
PATHS = ["EARNEST_CUDA_LIBRARIES", "EARNEST_KERNELS", "EARNEST_GOLDEN", "EARNEST_MODELS", "OUT"]


def absolute(args):
    """Makes every path that was typed absolute: it is meant from where it was typed, and the steps' commands are run from the repository."""
    for name in PATHS:
        if os.environ.get(name):
            folders = os.environ[name].split(os.pathsep) if name == PATHS[0] else [os.environ[name]]
            os.environ[name] = os.pathsep.join(os.path.abspath(folder) for folder in folders if folder)
    for name in ("binary", "file", "work", "resume"):
        path = getattr(args, name)
        setattr(args, name, path and os.path.abspath(path))
    # A model is a path or a built-in name.
    args.real = [os.path.abspath(model) if os.path.exists(model) else model for model in args.real.split(",") if model]
    args.variant = list(dict.fromkeys(name for name in args.variant.split(",") if name))


def main():
    if any(word in ("--help", "-h") for word in sys.argv[1:]):
        print(__doc__.strip())
        return 0
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("command", choices=[*COMMANDS, "summary", "pack"])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--work")
    parser.add_argument("--binary", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", PROGRAM))
    parser.add_argument("--real", default="earnest-abacus-1.4m")
    parser.add_argument("--seconds", type=int, default=530)
    parser.add_argument("--variant", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--resume")
    parser.add_argument("--dry-run", action="store_true", dest="dry")
    args = parser.parse_intermixed_args()  # options may stand before the file
    absolute(args)
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    if (args.command == "pack") != (args.file is not None):
        parser.error("pack needs a file, the other commands take none")
    if args.resume and args.command not in COMMANDS:
        parser.error(f"--resume is for {', '.join(COMMANDS)}")
    if args.variant and args.command != "numbers":
        parser.error("--variant is for numbers")
    if args.command != "summary" and not os.path.isfile(args.binary):
        print(
            f"gpu_acceptance: there is no program {args.binary}: build it (cargo build --release --locked) or name it with --binary",
            file=sys.stderr,
        )
        return 2
    if args.command == "pack":
        try:
            return pack(args.binary, args.file, golden_folder())
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"gpu_acceptance: {args.file} could not be written: {error}", file=sys.stderr)
            return 2
    try:
        session = Session(args)
    except OSError as error:
        print(f"gpu_acceptance: {error}", file=sys.stderr)
        return 2
    try:
        return execute(session, args)
    finally:
        session.discard()


def execute(session, args):
    if args.command == "summary":
        return session.summary(of_all=True)
    if not session.has_device():
        return 4
    known = [variant.name for variant in document(session.path("doctor.json")).cuda.variants]
    unknown = [name for name in args.variant if name not in known]
    if unknown:
        print(f"gpu_acceptance: there is no variant {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    try:
        problem = session.resume(args.resume) if args.resume else None
    except (OSError, EOFError, ValueError, KeyError, tarfile.TarError) as error:
        problem = f"{args.resume} can not be taken over: {error}"
    if problem is not None:
        print(f"gpu_acceptance: {problem}", file=sys.stderr)
        return 2
    try:
        COMMANDS[args.command](session)
    finally:
        session.close()
    return session.summary()


if __name__ == "__main__":
    sys.exit(main())
