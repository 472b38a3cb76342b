# SPDX-License-Identifier: Apache-2.0
import ctypes
import time

import torch
import torch.distributed as dist

from cufrag_hooks import hook
from cufrag_recorder import tell

DDP = "torch.nn.parallel.distributed"
FIRST_STEP_NS = 80000000  # 50 to 110 ms measured (results/pretend/ranks.md)
SOMETIMES = ("DistributedDataParallel replaces its first buckets before the second step; on a card the old "
             "ones are sometimes still there, so the peak may be up to %.0f MiB higher (docs/pretend.md)")


@hook(DDP, release="torch",
      purpose="settled buckets of DistributedDataParallel, so they may be there twice")
def settle_buckets(card, module):
    """DistributedDataParallel rebuilds its buckets before the second forward pass. Whether the old
    ones are freed by then depends on the modelled time since they were sent: NCCL's watchdog holds
    them until it polls (stream.c)."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook
    ddp, began, hooks = module.DistributedDataParallel, set(), []
    original = ddp._pre_forward

    def first_step(*_):
        if torch._C._current_graph_task_id() < 0:  # else gradients are not sent yet
            card.library().frag_pretend_host_takes(ctypes.c_uint64(FIRST_STEP_NS))
        hooks[0].remove()

    def pre_forward(self, *args, **kwargs):
        if is_to_rebuild(self):
            if not hooks:
                hooks.append(register_optimizer_step_pre_hook(first_step))
            if id(self) in began:
                time.sleep(0.4)  # three polls of the watchdog
            if self.require_backward_grad_sync:  # accumulating gradients sends nothing
                began.add(id(self))
            gradients = sum(p.nbytes for p in self.module.parameters() if p.requires_grad)
            if gradients >= 2**20:
                tell(SOMETIMES % (gradients / 2**20), "note")
        return original(self, *args, **kwargs)
    ddp._pre_forward = pre_forward


def is_to_rebuild(ddp):
    unused = getattr(ddp, "find_unused_parameters", False) and not getattr(ddp, "static_graph", False)
    fixed = getattr(ddp, "_use_python_reducer", False) or getattr(ddp, "_has_rebuilt_buckets", False) or unused
    on = torch.is_grad_enabled() and torch.cuda.is_initialized()
    return not fixed and on and not torch.cuda.is_current_stream_capturing()


@hook(DDP, release="torch", purpose="averages of gradients over Gloo", when="alone")
def average_over_gloo(card, module):
    """DistributedDataParallel asks a gloo group for its sockets, to log them, and waits for
    averaged gradients. The replacement has neither: nothing is logged, and gradients stay as they
    are."""
    ddp, logger, set_hook = module.DistributedDataParallel, dist.Logger, dist._register_comm_hook
    original, log = ddp._ddp_init_helper, logger.set_construction_data_and_log

    def stay(state, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def init_helper(self, *args, **kwargs):
        alone = self.process_group.name() == "gloo"
        if alone:
            logger.set_construction_data_and_log = lambda *args: None
        try:
            original(self, *args, **kwargs)
        finally:
            logger.set_construction_data_and_log = log
        if alone:
            set_hook(self.reducer, None, stay)
    ddp._ddp_init_helper = init_helper
