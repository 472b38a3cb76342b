# SPDX-License-Identifier: Apache-2.0
"""Replaces a launcher: sets what it gives each process besides the rank, which cufrag sets: python
-m cufrag_launch HOW [-m] PROGRAM WORDS.

HOW is "accelerate", followed by all words of `accelerate launch`, whose options and file become
variables; or the option by which older launchers pass the rank: --local_rank (DeepSpeed),
--local-rank (torch.distributed.launch).
"""
import os
import sys

from cufrag_fork_server import run_program


def run(program, words, module=False, no_python=False):
    if no_python:
        os.execvp(program, [program] + words)
    run_program((["-m"] if module else []) + [program] + words)


def accelerate(words):
    """accelerate computes the variables; instead of starting processes, this one goes on."""
    import subprocess
    import torch.distributed.run as elastic
    from accelerate.commands import launch

    args = launch.launch_command_parser().parse_args(words)
    args.num_processes, args.num_machines, args.machine_rank = int(os.environ["WORLD_SIZE"]), 1, 0

    def go_on(*_, **kw):
        os.environ.update(kw.get("env") or {})
        run(args.training_script, args.training_script_args, args.module, args.no_python)
        sys.exit(0)
    elastic.run = subprocess_Popen = go_on
    launch.check_cuda_p2p_ib_support = lambda *_: True  # would create a context on the first card
    launch.subprocess = type("subprocess", (), {**vars(subprocess), "Popen": staticmethod(subprocess_Popen)})
    launch.launch_command(args)


if __name__ == "__main__":
    how, rest = sys.argv[1], sys.argv[2:]
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # replaced by the program's folder
    if how == "accelerate":
        accelerate(rest)
    else:
        module = rest[0] == "-m"
        run(rest[module], ["%s=%s" % (how, os.environ["LOCAL_RANK"])] + rest[module + 1:], module)
