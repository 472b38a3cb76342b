# SPDX-License-Identifier: Apache-2.0
"""--values computed: what torch.compile's kernels would make. The CPU runs the graph that Inductor compiled, operator by operator, over
the same bytes; the compiled code itself allocates as ever."""
import ctypes

from cufrag_card import say


def watch(torch, values):
    """values: the library of cufrag_values.cpp."""
    from torch._inductor import compile_fx
    import torch._functorch.config
    compile_inner = compile_fx._compile_fx_inner
    values.cufrag_values_base.restype = ctypes.c_void_p
    torch._functorch.config.enable_autograd_cache = False  # what comes from there has no graph any longer

    def compile_and_keep(gm, example_inputs, *more, **rest):
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(gm.graph, {}))  # passes change the original
        compiled = compile_inner(gm, example_inputs, *more, **rest)
        if getattr(compiled, "current_callable", None):
            compiled.current_callable = Computed(torch, values, gm, graph, compiled.current_callable)
        return compiled
    compile_fx._compile_fx_inner = compile_and_keep


class Computed:
    """Compiled code, whose results the CPU computes where it knows all that goes in."""
    told = False

    def __init__(self, torch, values, module, graph, run):
        self.torch, self.values, self.module, self.graph, self.run = torch, values, module, graph, run
        self.on_cpu = OnCpu(torch)

    def __call__(self, inputs):
        bases = [self.base(t) for t in inputs if self.on_card(t)]  # no tensors: the code lets go of them as it runs
        results = None
        if all(bases):
            try:
                with self.torch.no_grad():
                    results = self.on_cpu.run(self.module, self.graph, [self.seen(t) for t in inputs])
            except Exception as e:  # the compiled code says what is wrong, if something is
                self.tell(e)
        made = self.run(inputs)
        if results is None:
            return made
        for base in bases:  # kernels are taken to write what they read
            self.values.cufrag_values_known(ctypes.c_void_p(base), None)
        for t, result in zip(made, results):
            if self.on_card(t):
                self.seen(t).copy_(result)
                self.values.cufrag_values_known(None, ctypes.c_void_p(t.untyped_storage()._cdata))
        return made

    def on_card(self, t):
        return isinstance(t, self.torch.Tensor) and t.is_cuda and t.numel() > 0

    def base(self, t):
        return self.values.cufrag_values_base(ctypes.c_void_p(t.untyped_storage()._cdata))

    def seen(self, t):
        """The same bytes as a tensor of the CPU."""
        if not isinstance(t, self.torch.Tensor) or not t.is_cuda:
            return t
        if not t.numel():
            return self.torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
        elements = 1 + sum((n - 1) * step for n, step in zip(t.size(), t.stride()))
        memory = (ctypes.c_char * (elements * t.element_size())).from_address(t.data_ptr())
        return self.torch.frombuffer(memory, dtype=t.dtype).as_strided(t.size(), t.stride())

    @classmethod
    def tell(cls, why):
        if not cls.told:
            say("compiled code is not computed: %s" % str(why).split("\n")[0])
        cls.told = True


class OnCpu:
    """Runs a graph for a card on the CPU."""

    def __init__(self, torch):
        class Moved(torch.fx.Interpreter):
            def call_function(self, target, args, kwargs):
                return super().call_function(target, tuple(on_cpu(a) for a in args), {k: on_cpu(v) for k, v in kwargs.items()})

        def on_cpu(a):
            return torch.device("cpu") if isinstance(a, torch.device) and a.type == "cuda" else a
        self.interpreter = Moved

    def run(self, module, graph, inputs):
        return self.interpreter(module, graph=graph).run(*inputs, enable_io_processing=False)
