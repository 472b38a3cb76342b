# SPDX-License-Identifier: Apache-2.0
"""--values computed: what kernels would make that are no operators. Of torch.compile the CPU runs the graph that Inductor compiled, operator by
operator, over the same bytes; the compiled code itself allocates as ever. Kernels that a program writes in Triton are run by Triton's interpreter."""
import ctypes
import math

from cufrag_card import say

MOST_PROGRAMS = 4096  # of a kernel: each takes the interpreter about a millisecond
told = set()


def tell(what, why):
    if what not in told:
        say("%s is not computed: %s" % (what, str(why).split("\n")[0]))
    told.add(what)


def watch(torch, values):
    """values: the library of cufrag_values.cpp."""
    from torch._inductor import compile_fx
    import torch._functorch.config
    compile_inner = compile_fx._compile_fx_inner
    memory = Memory(torch, values)
    torch._functorch.config.enable_autograd_cache = False  # what comes from there has no graph any longer

    def compile_and_keep(gm, example_inputs, *more, **rest):
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(gm.graph, {}))  # passes change the original
        compiled = compile_inner(gm, example_inputs, *more, **rest)
        if getattr(compiled, "current_callable", None):
            compiled.current_callable = Computed(memory, on_cpu(torch, gm, graph), compiled.current_callable)
        return compiled
    compile_fx._compile_fx_inner = compile_and_keep


def watch_triton(torch, values, jit):
    """Around what marks the tensors that a launch writes as not computed (cufrag_card.py)."""
    from triton.runtime import interpreter
    launch, memory, patch = jit.JITFunction.run, Memory(torch, values), interpreter._patch_lang_tensor

    def patched(tensor, *scope):
        """An array of one number is no number to NumPy 2.5."""
        patch(tensor, *scope)
        (scope[0].set_attr if scope else setattr)(tensor, "__index__", lambda value: value.handle.data.item())
    interpreter._patch_lang_tensor = patched

    def run(kernel, *args, grid, warmup=False, **rest):
        tensors = [t for t in (*args, *rest.values()) if memory.on_card(t)]
        bases = [memory.base(t) for t in tensors]
        done = False
        if all(bases) and not warmup:
            try:
                if not callable(grid) and math.prod(grid) > MOST_PROGRAMS:
                    raise ValueError("%d programs" % math.prod(grid))
                interpreter.InterpretedFunction(kernel.fn).run(*map(memory.seen, args), grid=grid, warmup=False, **{k: memory.seen(v) for k, v in rest.items()})
                done = True
            except Exception as e:
                tell("Triton's kernel %s" % kernel.fn.__name__, e)
        given = launch(kernel, *args, grid=grid, warmup=warmup, **rest)
        if done:
            for base in bases:
                memory.know(base)
        return given
    jit.JITFunction.run = run


class Memory:
    """Of the card, which is the host's."""

    def __init__(self, torch, values):
        self.torch, self.values = torch, values
        values.cufrag_values_base.restype = ctypes.c_void_p

    def on_card(self, t):
        return isinstance(t, self.torch.Tensor) and t.is_cuda and t.numel() > 0

    def base(self, t):
        """None: its numbers are not computed."""
        return self.values.cufrag_values_base(ctypes.c_void_p(t.untyped_storage()._cdata))

    def know(self, base):
        self.values.cufrag_values_known(ctypes.c_void_p(base), None)

    def fill(self, t, result):
        self.seen(t).copy_(result)
        self.values.cufrag_values_known(None, ctypes.c_void_p(t.untyped_storage()._cdata))

    def seen(self, t):
        """The same bytes as a tensor of the CPU."""
        if not isinstance(t, self.torch.Tensor) or not t.is_cuda:
            return t
        if not t.numel():
            return self.torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
        elements = 1 + sum((n - 1) * step for n, step in zip(t.size(), t.stride()))
        memory = (ctypes.c_char * (elements * t.element_size())).from_address(t.data_ptr())
        return self.torch.frombuffer(memory, dtype=t.dtype).as_strided(t.size(), t.stride())


class Computed:
    """Compiled code, whose results the CPU computes where it knows all that goes in."""

    def __init__(self, memory, graph, run):
        self.memory, self.graph, self.run = memory, graph, run

    def __call__(self, inputs):
        memory = self.memory
        bases = [memory.base(t) for t in inputs if memory.on_card(t)]  # no tensors: the code lets go of them as it runs
        results = None
        if all(bases):
            try:
                with memory.torch.no_grad():
                    results = self.graph.run(*map(memory.seen, inputs), enable_io_processing=False)
            except Exception as e:  # the compiled code says what is wrong, if something is
                tell("compiled code", e)
        made = self.run(inputs)
        if results is None:
            return made
        for base in bases:  # kernels are taken to write what they read
            memory.know(base)
        for t, result in zip(made, results):
            if memory.on_card(t):
                memory.fill(t, result)
        return made


def on_cpu(torch, module, graph):
    """What runs a graph for a card on the CPU."""
    def moved(a):
        return torch.device("cpu") if isinstance(a, torch.device) and a.type == "cuda" else a

    class OnCpu(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(target, tuple(map(moved, args)), {k: moved(v) for k, v in kwargs.items()})
    return OnCpu(module, graph=graph)
