# SPDX-License-Identifier: Apache-2.0
"""Changes of what each rank keeps."""
from .help import ddp, partial, repeated, wrap


def shard_instead(torch, seen, reshard):
    """DistributedDataParallel(model) becomes one of fully_shard, called through it."""
    import contextlib
    from torch.distributed.fsdp import fully_shard
    kind = torch.nn.parallel.DistributedDataParallel

    def made(self, module, *args, **kwargs):
        torch.nn.Module.__init__(self)
        for _, blocks, _ in repeated(torch, module):
            for block in blocks:
                fully_shard(block, reshard_after_forward=reshard)
        fully_shard(module, reshard_after_forward=reshard)
        self.module = module

    @contextlib.contextmanager
    def no_sync(self):
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)
    kind.__init__, kind.no_sync = made, no_sync
    kind.forward = lambda self, *args, **kwargs: self.module(*args, **kwargs)
    kind.train = torch.nn.Module.train


class fsdp:
    """FSDP2 in place of DDP (ZeRO stage 3): each rank keeps a part of weights, gradients and states."""
    GROUP = "ranks"
    applies = partial(ddp, parts="weights, gradients and states",
                      sentence="fully_shard of each repeated block and of the model, in place of DistributedDataParallel")
    install = partial(shard_instead, reshard=True)


class fsdp_zero2:
    """ZeRO stage 2: each rank keeps a part of gradients and states, and whole weights from the forward to the backward pass."""
    GROUP = "ranks"
    applies = partial(ddp, parts="gradients and states",
                      sentence="fully_shard(…, reshard_after_forward=False) in place of DistributedDataParallel")
    install = partial(shard_instead, reshard=False)


class gradient_as_bucket_view:
    """Gradients lie in the buckets of DistributedDataParallel, not beside them."""
    GROUP = "ranks"

    def applies(seen):
        call = next((c for c in seen.calls if c.copies and c.training), None)
        return call and ("DistributedDataParallel(…, gradient_as_bucket_view=True): gradients lie in its buckets, not beside them", call.place)

    def install(torch, seen):
        wrap(torch.nn.parallel.DistributedDataParallel, "__init__",
             lambda original, *args, **kwargs: original(*args, **{**kwargs, "gradient_as_bucket_view": True}))


def sharded(module):
    """(modules of fully_shard below it, but for the outermost, which keeps its weights anyway; do they reshard)"""
    found = [m for m in module.modules() if hasattr(m, "set_reshard_after_forward") and m is not module]
    groups = [getattr(m._get_fsdp_state(), "_fsdp_param_group", None) for m in found]
    return found, any(getattr(g, "post_forward_mesh_info", None) is not None for g in groups)


class reshard_after_forward:
    """fully_shard keeps whole weights after the forward pass, or does not: the other of both."""
    GROUP = "ranks"

    def applies(seen):
        for call in seen.calls:
            found, now = sharded(call.module()) if call.module() and call.training else ([], False)
            if found:
                return ("reshard_after_forward=%s in fully_shard: weights are gathered %s" % (not now, "once a step" if now else "twice a step"),
                        call.place)
        return None

    def install(torch, seen):
        def root(module):
            found, now = sharded(module)
            for m in found:
                m.set_reshard_after_forward(not now, recurse=False)
        seen.when_root(root)
