#!/usr/bin/env python3
"""All checks that need a GPU, as three commands of at most 9 minutes each, without a network:

  scripts/gpu_acceptance.py correctness    kernels, golden checkpoints, real models, both product engines, races; profiles of three shapes
  scripts/gpu_acceptance.py variants       every variant of the kernels beside the default: same bits or not, faster or not
  scripts/gpu_acceptance.py numbers        speed of full shapes against measured ceilings, beside vLLM or transformers if they are there
  scripts/gpu_acceptance.py summary        what the three have found so far
  scripts/gpu_acceptance.py pack FILE      strips and compresses the program, to copy it to another machine (about 20 MB)

  --work DIR      folder that the commands share: checkpoints (34 GB), compiled kernels, results [default: earnest-acceptance in /dev/shm
                  if that has the room, else in the temporary folder]
  --binary FILE   the program, or the output of pack (.xz) [default: target/release/earnest]
  --real MODELS   real checkpoints, with commas, whose texts on the GPU are compared with those on the CPU [default: the built-in model]
  --seconds N     time limit: steps that have not started by then are not run [default: 530]
  --variant NAMES numbers with these variants of the kernels, with commas (as --cuda-variant) [default: none]
  --only PART     only steps with this in their names
  --again         repeat steps that were done before
  --dry-run       every command at small sizes on the CPU, and the profile on stand-ins of NVIDIA's libraries: tests this script

Needs NVIDIA's driver and python3 with its standard library; cublasLt, and NVRTC where the program has no kernels for the device: the libraries that come
with PyTorch will do, and EARNEST_CUDA_LIBRARIES names other folders. Results are written after every step: the same command goes on after
an interruption, and repeats a step only if the program, EARNEST_KERNELS or the step's command changed. If OUT is set, an archive of all results is
kept in that folder. Prints a line for each step (pass, FAIL, or not run and why), and a JSON summary as the last line.
Exit code: 0 everything passed; 1 something failed; 2 usage; 3 nothing failed, but something was not run; 4 there is no GPU.
"""
import argparse
import lzma
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "acceptance"))
import correctness  # noqa: E402
import final_numbers  # noqa: E402
import variants  # noqa: E402
from harness import Session, pack  # noqa: E402

COMMANDS = {"correctness": correctness.run, "variants": variants.run, "numbers": final_numbers.run}


def main():
    if any(word in ("--help", "-h") for word in sys.argv[1:]):
        print(__doc__.strip())
        return 0
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("command", choices=[*COMMANDS, "summary", "pack"])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--work")
    parser.add_argument("--binary", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../target/release/earnest"))
    parser.add_argument("--real", default="earnest-abacus-1.4m")
    parser.add_argument("--seconds", type=int, default=530)
    parser.add_argument("--variant", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--dry-run", action="store_true", dest="dry")
    args = parser.parse_args()
    # The steps' commands are run from the repository; what was typed is meant from where it was typed.
    args.binary, args.file, args.work = (path and os.path.abspath(path) for path in (args.binary, args.file, args.work))
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    if (args.command == "pack") != (args.file is not None):
        parser.error("pack needs a file, the other commands take none")
    if not os.path.isfile(args.binary):
        print(
            f"gpu_acceptance: there is no program {args.binary}: build it (cargo build --release --locked) or name it with --binary",
            file=sys.stderr,
        )
        return 2
    if args.command == "pack":
        return pack(args.binary, args.file)
    try:
        session = Session(args)
    except (OSError, lzma.LZMAError) as error:
        print(f"gpu_acceptance: {error}", file=sys.stderr)
        return 2
    except EOFError:
        print(f"gpu_acceptance: {args.binary} is incomplete: copy it again", file=sys.stderr)
        return 2
    if args.command == "summary":
        return session.summary(of_all=True)
    if not session.has_device():
        return 4
    try:
        COMMANDS[args.command](session)
    finally:
        session.close()
    return session.summary()


if __name__ == "__main__":
    sys.exit(main())
