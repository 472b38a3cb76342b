# SPDX-License-Identifier: Apache-2.0
"""Changes of what a program keeps for nothing, and of the pools and workspaces of its card."""
import re
import sys

from .help import names, wrap, wrap_forward
from .seen import tensors_in


def line_of(name, path):
    """Where the file adds to the variable."""
    adds = re.compile(r".*(?<![.\w]){0}(\[[^]]*\])?(\s*([-+*/|&]=|=[^=].*\b{0}\b)|\.(append|extend|insert)\()".format(re.escape(name)))
    try:
        with open(path) as f:
            return next(("%s:%d" % (path, n) for n, line in enumerate(f, 1) if adds.match(line)), path)
    except (OSError, TypeError, ValueError):
        return ""


class kept_tensors:
    """Tensors that a variable keeps over steps go to the host, without their graphs."""
    def applies(seen):
        grows = seen.growing()
        if not grows or grows[0][1] < 1 << 20:
            return None
        name, size = grows[0]
        return ("'%s' keeps %.0f MiB more after each step: keep .detach().cpu() (or .item()) in it" % (name, size / 2**20),
                seen.relative(line_of(name, seen.files[name])))

    def install(torch, seen):
        done = set()

        def step(*_):
            for _, holder, _ in seen.variables():
                for t in tensors_in(torch, holder):
                    if id(t) not in done:
                        done.add(id(t))
                        if t.grad_fn is not None:
                            t.detach_()
                        seen.moved += t.numel() * t.element_size()
                        t.untyped_storage().resize_(0)
        sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(step)

        def backward(original, *args, **kwargs):  # by hand they would be gone by now
            step()
            return original(*args, **kwargs)
        wrap(torch.Tensor, "backward", backward)


class kept_graphs:
    """Metrics that are kept do not keep the graph that made them."""
    def applies(seen):
        found = sorted(((size, name, path) for name, (path, size, count) in seen.graphs.items() if count > 1 and size > 1 << 20), reverse=True)
        if not found:
            return None
        size, name, path = found[0]
        return ("'%s' keeps the graph of what was computed: while it does, each call of the model leaves %.0f MiB; add .detach() (or .item()) to it" %
                (name, size / 2**20), seen.relative(line_of(name, path)))

    def install(torch, seen):
        seen.drops_graphs = True


class no_grad:
    """Evaluation under no_grad, which saves nothing for a backward pass."""
    def applies(seen):
        calls = [c for c in seen.calls if c.grad and c.trains and (not c.training or not seen.backwards)]
        places = [seen.relative(place) for place, trains in seen.uses.items() if not trains]
        if calls or not places:
            return calls and ("call %s under torch.no_grad() where nothing is trained" % names(calls), calls[0].place)
        return ("call the model under torch.no_grad() at %s: no backward pass comes through what it gives" % " and ".join(places[:3]),
                places[0])

    def install(torch, seen):
        trains, uses = [], seen.before

        def root(module):
            def around(inner, args, kwargs):
                if module.training and trains and uses.get(seen.place(), True):
                    return inner(*args, **kwargs)
                with torch.no_grad():
                    return inner(*args, **kwargs)
            wrap_forward(module, around)
        if seen.optimizers:
            trains.append(True)

        def made(original, optimizer, *args, **kwargs):
            trains.append(True)
            original(optimizer, *args, **kwargs)
        wrap(torch.optim.Optimizer, "__init__", made)
        seen.when_root(root)


class graph_pool:
    """CUDA graphs share one private pool."""
    def applies(seen):
        if len(seen.captures) < 2:
            return None
        return ("give all %d graphs one pool: torch.cuda.graph(g, pool=first.pool()); replay them in the order of their capture, and read what "
                "one gives before the next is replayed" % len(seen.captures), seen.relative(seen.captures[0]))

    def install(torch, seen):
        pool = []

        def capture(original, graph, *args, **kwargs):
            if not (args and args[0] is not None or kwargs.get("pool") is not None):
                pool[:] = pool or [torch.cuda.graph_pool_handle()]
                args, kwargs["pool"] = (), pool[0]
            return original(graph, *args, **kwargs)
        wrap(torch.cuda.CUDAGraph, "capture_begin", capture)


class cudnn_benchmark_off:
    """cuDNN takes the first algorithm that fits, not the fastest of all that it tried with their workspaces."""
    def applies(seen):
        if seen.torch.backends.cudnn.benchmark and seen.calls:
            return "torch.backends.cudnn.benchmark = False: no search with large workspaces, and maybe slower convolutions", ""

    def install(torch, seen):
        torch.backends.cudnn.benchmark = False
        vars(type(torch.backends.cudnn))["benchmark"].setter = lambda value: None
