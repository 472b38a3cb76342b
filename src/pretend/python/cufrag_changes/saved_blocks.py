# SPDX-License-Identifier: Apache-2.0
"""Changes of what the forward pass saves: computed again, or on the host."""
import sys

from .help import Left, as_it_was, each_under, names, partial, repeated, wrap_forward

KEPT = ("mm", "addmm", "bmm", "baddbmm", "convolution", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention")


def blocks_of(seen, sentence, of_first=False):
    """(sentence % the blocks that repeat, a place of theirs, what becomes different). of_first:
    asks for two steps. May raise Left."""
    calls = seen.trained()
    if not calls:
        return None
    lists = [x for c in calls for x in c.lists]
    if not lists:
        raise Left("no modules repeat in a ModuleList or Sequential of %s" % names(calls))
    if of_first and seen.steps < 2:
        raise Left("which blocks pay is known after a first step, and there is one step only")
    kinds = sorted({name for _, names in lists for name in names})
    blocks = "%d blocks %s" % (sum(len(names) for _, names in lists), ", ".join(kinds[:3]))
    return (sentence % blocks, lists[0][0] or next(c.place for c in calls if c.lists),
            "the running statistics of BatchNorm are updated twice" if any(c.norms for c in calls if c.lists) else "")


def checkpoint_blocks(torch, seen, every=1, pays=None, calls=None, **how):
    """Computes again every so many-th block, if it pays(block). calls(block, forward): wraps it."""
    from torch.utils.checkpoint import checkpoint

    def around(block):
        def call(inner, args, kwargs):
            if not torch.is_grad_enabled() or pays and not pays(block):
                return inner(*args, **kwargs)
            again = calls(block, inner) if calls else inner
            return checkpoint(again, *args, use_reentrant=False, **how, **kwargs)
        return call

    def root(module):
        for config in [m.config for m in module.modules() if getattr(getattr(m, "config", None), "use_cache", False)]:
            config.use_cache = False
        for _, blocks, _ in repeated(torch, module):
            for block in blocks[::every]:
                wrap_forward(block, around(block))
    seen.when_root(root)


def save_on_host(torch, seen, take):
    """Saved tensors of `take(bytes)` wait on the host."""
    small = 1 << 16  # bytes: values that may decide something later
    host = torch.autograd.graph.save_on_cpu(pin_memory=True)

    def pack(t):
        size = t.numel() * t.element_size()
        if t.is_cuda and not take(size):
            return t
        seen.moved += 2 * size * t.is_cuda
        if not t.is_cuda or size < small:
            return host.pack_hook(t)
        if not t.is_contiguous():
            t.contiguous()  # as the copy does on the card
        return None, t.size(), t.dtype, t.device  # no bytes are kept

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        if packed[0] is not None:
            return host.unpack_hook(packed)
        return torch.empty(packed[1], dtype=packed[2], device=packed[3])

    def around(inner, args, kwargs):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return inner(*args, **kwargs)
    seen.when_root(lambda root: wrap_forward(root, around))


class checkpoint:
    """Activation checkpointing: repeated blocks are computed again in the backward pass."""
    GROUP = "blocks"
    applies = partial(blocks_of, sentence="checkpoint each of the %s: torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)")
    install = checkpoint_blocks


class checkpoint_half:
    """Activation checkpointing of every second block."""
    GROUP = "blocks"
    applies = partial(blocks_of, sentence="checkpoint every second of the %s")
    install = partial(checkpoint_blocks, every=2)


class checkpoint_paying:
    """Activation checkpointing of those blocks that pay: they save most for what is computed again."""
    GROUP = "blocks"
    applies = partial(blocks_of, of_first=True,
                      sentence="checkpoint those of the %s that save most: few that have three quarters of the bytes")

    def install(torch, seen):
        saved, paying = {}, set()

        def pays(block):
            if not seen.steps:  # the first step has no states yet: all is computed again
                return True
            left = 0.75 * sum(saved.values())
            for best in sorted(saved, key=saved.get, reverse=True) if not paying else []:
                if left <= 0:
                    break
                left -= saved[best]
                paying.add(best)
            return id(block) in paying

        def measured(block, inner):
            def call(*args, **kwargs):
                before = torch.cuda.memory_allocated()
                try:
                    return inner(*args, **kwargs)
                finally:  # the second time, in the backward pass, all that is saved stays
                    saved[id(block)] = max(torch.cuda.memory_allocated() - before, 0)
            return call if not seen.steps else inner
        checkpoint_blocks(torch, seen, 1, pays, measured)


class checkpoint_selective:
    """Activation checkpointing that keeps products of matrices, convolutions and attention."""
    GROUP = "blocks"

    def applies(seen):
        found = blocks_of(seen, "checkpoint each of the %s, but keep products of matrices, convolutions and attention: "
                          "create_selective_checkpoint_contexts")
        import torch.utils.checkpoint
        if found and not hasattr(torch.utils.checkpoint, "create_selective_checkpoint_contexts"):
            raise Left("this release of PyTorch has no create_selective_checkpoint_contexts (2.4)")
        return found

    def install(torch, seen):
        from torch.utils.checkpoint import create_selective_checkpoint_contexts
        kept = [getattr(torch.ops.aten, name).default for name in KEPT if hasattr(torch.ops.aten, name)]
        checkpoint_blocks(torch, seen, context_fn=lambda: create_selective_checkpoint_contexts(kept))


class saved_on_host:
    """Tensors that the backward pass needs wait on the host."""
    GROUP = "blocks"
    applies = partial(each_under, sentence="call %s under torch.autograd.graph.save_on_cpu(pin_memory=True)")
    install = partial(save_on_host, take=lambda size: True)


class saved_on_host_largest:
    """The largest tensors that the backward pass needs wait on the host: those that have half of the bytes."""
    GROUP = "blocks"

    def applies(seen):
        found = each_under(seen, "call %s under torch.autograd.graph.saved_tensors_hooks that move the largest of what is saved, "
                           "half of the bytes, to the host")
        if found and seen.steps < 2:
            raise Left("which are largest is known after a first step, and there is one step only")
        return found

    def install(torch, seen):
        sizes, least = [], []

        def take(size):
            if not seen.steps:  # the first step has no states yet: all is moved
                sizes.append(size)
                return True
            if not least:
                sizes.sort(reverse=True)
                left = sum(sizes) / 2
                while left > 0:
                    left -= sizes[0]
                    least[:] = [sizes.pop(0)]
            return size >= least[0]
        save_on_host(torch, seen, take)


class torch_compile:
    """The model through torch.compile, which joins operations and saves fewer tensors for the backward pass."""
    GROUP = "blocks"
    UNTIMED = True  # it compiles on the host in the first step

    def applies(seen):
        if "torch._inductor.compile_fx" in sys.modules:
            return None
        if any(c.name == "DistributedDataParallel" for c in seen.trained()):
            raise Left("DDP splits what is compiled: compare with a copy of the program that compiles (cufrag compare)")
        return each_under(seen, "compile %s before the first step: model.compile()")

    def install(torch, seen):
        as_it_was(torch.nn.functional, "cross_entropy", "linear")
        as_it_was(torch.Tensor, "to", "cuda", "float")
        import torch._inductor.config
        torch._inductor.config.compile_threads = 1

        def root(module):
            module.forward = torch.compile(module.forward)
        seen.when_root(root)
