# SPDX-License-Identifier: Apache-2.0
"""Launchers. In a rank that cufrag started, they start no processes: this one goes on as the rank.
The environment of a rank is there; options of the launcher are read by its own parser.
"""
import os
import re
import subprocess
import sys

import cufrag_protocol as protocol
from cufrag_fork_server import run_program
from cufrag_hooks import hook, replace

LOCAL_RANK = "${local_rank}"  # as torchrun writes it


def is_rank():
    return "CUFRAG_PRETEND_LAUNCHED" in os.environ


def go_on(words, env=None):
    """As the process with these words, which the launcher would start."""
    del os.environ["CUFRAG_PRETEND_LAUNCHED"]
    os.environ.update(env or {})
    words = [word.replace(LOCAL_RANK, os.environ["LOCAL_RANK"]) for word in words]
    if words[0] != sys.executable:
        os.execvp(words[0], words)
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # replaced by the program's folder
    run_program(words[1 + (words[1] == "-u"):])


@hook("torch.distributed.launcher.api", release="torch", purpose="torchrun and its modules before the command of a rank")
def go_on_for_torchrun(card, module):
    start = module.elastic_launch.__call__

    def call(launch, *args):
        if not is_rank() or callable(launch._entrypoint):
            return start(launch, *args)
        go_on([launch._entrypoint, *args])
    module.elastic_launch.__call__ = call


@hook("accelerate.commands.launch", release="accelerate", purpose="accelerate launch before the command of a rank")
def go_on_for_accelerate(card, module):
    """accelerate computes variables, too; with one rank it starts it without torchrun."""
    start = module.launch_command

    def popen(words, env=None, **_):
        go_on(words, env)
        sys.exit(0)

    def launch_command(args):
        if is_rank():
            args.num_processes, args.num_machines, args.machine_rank = int(os.environ["WORLD_SIZE"]), 1, 0
            module.check_cuda_p2p_ib_support = lambda *_: True  # would create a context on the first card
            module.subprocess = type("subprocess", (), {**vars(subprocess), "Popen": staticmethod(popen)})
        start(args)
    module.launch_command = launch_command


@hook("deepspeed.launcher.runner", release="deepspeed", purpose="deepspeed before the command of a rank")
def go_on_for_deepspeed(card, module):
    start = module.main

    def main(args=None):
        if not is_rank():
            return start(args)
        args = module.parse_args(args)
        python = [] if args.no_python else [sys.executable] + ["-m"] * args.module
        go_on([*python, args.user_script, *["--local_rank=" + LOCAL_RANK] * (not args.no_local_rank), *args.user_args])
    module.main = main


@hook("torch.multiprocessing.spawn", release="torch",
      purpose="a card for each process of torch.multiprocessing.spawn (--gpus N gives them)")
def count_spawned(card, module):
    """Unless the user set the number of cards, each process of mp.spawn has one, like processes
    of a launcher."""
    start = module.start_processes

    def start_processes(fn, args=(), nprocs=1, *more, **rest):
        before = protocol.PRETEND
        os.environ["CUFRAG_PRETEND"] = re.sub(
            r"\bleast=(\d+)", lambda found: "least=%d" % max(int(found[1]), nprocs), before)
        try:
            return start(fn, args, nprocs, *more, **rest)
        finally:
            os.environ["CUFRAG_PRETEND"] = before
    replace(start, start_processes)
