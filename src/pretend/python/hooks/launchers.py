# SPDX-License-Identifier: Apache-2.0
import os
import re

import cufrag_protocol as protocol
from cufrag_hooks import hook, replace


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
