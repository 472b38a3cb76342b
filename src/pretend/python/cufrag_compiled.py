# SPDX-License-Identifier: Apache-2.0
"""--values computed for kernels outside the dispatcher. For torch.compile, the CPU interprets the
graph that Inductor compiled, over the same bytes; the compiled code itself still allocates. The
program's Triton kernels run in Triton's interpreter."""
import contextlib
import ctypes
import math

from cufrag_card import say, storage_of

MOST_PROGRAMS = 4096  # per launch: each takes about a millisecond
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
    torch._functorch.config.enable_autograd_cache = False  # cached code has no graph

    def compile_and_keep(gm, example_inputs, *more, **rest):
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(gm.graph, {}))  # passes modify the original
        compiled = compile_inner(gm, example_inputs, *more, **rest)
        if getattr(compiled, "current_callable", None):
            compiled.current_callable = Computed(memory, on_cpu(torch, gm, graph, Drawn(torch, values)), compiled.current_callable)
        return compiled
    compile_fx._compile_fx_inner = compile_and_keep


def watch_triton(torch, values, jit):
    """Wraps the hook that marks written tensors as unknown (cufrag_card.py)."""
    from triton import language
    from triton.runtime import interpreter
    launch, memory, patch = jit.JITFunction.run, Memory(torch, values), interpreter._patch_lang_tensor

    def patched(tensor, *scope):
        """NumPy 2.5 does not convert arrays of one element to scalars."""
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
                if not stores(interpreter):
                    raise ValueError("Triton's interpreter does not work with this NumPy")
                with as_it_was(language, language.core, language.math, language.core.tensor, language.core.dtype):
                    interpreter.InterpretedFunction(kernel.fn).run(*map(memory.seen, args), grid=grid, warmup=False,
                                                                   **{k: memory.seen(v) for k, v in rest.items()})
                done = True
            except Exception as e:
                tell("Triton's kernel %s" % kernel.fn.__name__, e)
        given = launch(kernel, *args, grid=grid, warmup=warmup, **rest)
        if done:
            for base in bases:
                memory.know(base)
        return given
    jit.JITFunction.run = run


def stores(interpreter):
    """Triton 3.1's interpreter silently stores nothing with NumPy 2."""
    import numpy
    one = numpy.zeros(1, numpy.int64)
    interpreter._interpreter.store(numpy.array([one.ctypes.data], numpy.uint64), numpy.ones(1, numpy.int64), numpy.ones(1, bool))
    return one[0] == 1


@contextlib.contextmanager
def as_it_was(*owners):
    """Restores Triton's language: up to Triton 3.2, the interpreter leaves its patches, and later
    compilations fail."""
    before = [dict(vars(owner)) for owner in owners]
    try:
        yield
    finally:
        for owner, names in zip(owners, before):
            for name in [name for name, value in vars(owner).items() if names.get(name, vars) is not value]:
                setattr(owner, name, names[name]) if name in names else delattr(owner, name)


class Memory:
    """Memory of the card, which lies in host memory."""

    def __init__(self, torch, values):
        self.torch, self.values = torch, values
        values.cufrag_values_base.restype = ctypes.c_void_p

    def on_card(self, t):
        return isinstance(t, self.torch.Tensor) and t.is_cuda and t.numel() > 0

    def base(self, t):
        """None: unknown values."""
        return self.values.cufrag_values_base(storage_of(self.torch, t))

    def know(self, base):
        self.values.cufrag_values_known(ctypes.c_void_p(base), None)

    def fill(self, t, result):
        self.seen(t).copy_(result)
        self.values.cufrag_values_known(None, storage_of(self.torch, t))

    def seen(self, t):
        """A CPU tensor over the same bytes."""
        if not isinstance(t, self.torch.Tensor) or not t.is_cuda:
            return t
        if not t.numel():
            return self.torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
        elements = 1 + sum((n - 1) * step for n, step in zip(t.size(), t.stride()))
        memory = (ctypes.c_char * (elements * t.element_size())).from_address(t.data_ptr())
        return self.torch.frombuffer(memory, dtype=t.dtype).as_strided(t.size(), t.stride())


class Computed:
    """Compiled code whose results the CPU computes if all inputs are known."""

    def __init__(self, memory, graph, run):
        self.memory, self.graph, self.run = memory, graph, run

    def __call__(self, inputs):
        memory = self.memory
        bases = [memory.base(t) for t in inputs if memory.on_card(t)]  # not the tensors: the code frees them as it runs
        results = None
        if all(bases):
            try:
                with memory.torch.no_grad():
                    results = self.graph.run(*map(memory.seen, inputs), enable_io_processing=False)
            except Exception as e:  # the compiled code reports real errors
                tell("compiled code", e)
        made = self.run(inputs)
        if results is None:
            return made
        for base in bases:  # inputs were marked as written
            memory.know(base)
        for t, result in zip(made, results):
            if memory.on_card(t):
                memory.fill(t, result)
        return made


class Drawn:
    """Random numbers of compiled code: each use has a seed from the card's generator, expanded as
    by Triton."""

    def __init__(self, torch, values):
        self.torch, self.values = torch, values
        self.operators = {"prims.inductor_seeds.default": self.seeds, "prims.inductor_random.default": self.reals, "prims.inductor_randint.default": self.integers}

    def seeds(self, count, device):
        """The seeds that the compiled code draws afterwards, which advances the generator."""
        generator, drawn = self.torch.cuda.default_generators[device.index or 0], self.torch.empty(count, dtype=self.torch.int64)
        self.values.cufrag_values_seeds(ctypes.c_uint64(generator.initial_seed()), ctypes.c_uint64(generator.get_offset()), ctypes.c_void_p(drawn.data_ptr()), ctypes.c_uint64(count))
        return drawn

    def reals(self, size, seed, mode):
        return self.filled(mode == "randn", seed, 0, 1, self.torch.empty(size, dtype=self.torch.float32))

    def integers(self, low, high, size, seed):
        return self.filled(2, seed, low, high - low, self.torch.empty(size, dtype=self.torch.int64))

    def filled(self, way, seed, low, extent, t):
        if t.numel():
            self.values.cufrag_values_seeded(int(way), ctypes.c_uint64(seed.item() % 2 ** 64), ctypes.c_int64(low), ctypes.c_uint64(extent), ctypes.c_void_p(t.data_ptr()), ctypes.c_uint64(t.numel()))
        return t


class Unrounded:
    """A half-precision result inside a fused kernel: single precision until it is stored."""

    def __init__(self, torch, t, dtype):
        self.t, self.dtype = t.to(torch.float32), dtype


def on_cpu(torch, module, graph, drawn):
    """An interpreter of the card's graphs on the CPU. Inductor fuses element-wise operators, their
    reductions and views, and does not round within a kernel."""
    tree_map, half = torch.utils._pytree.tree_map, (torch.float16, torch.bfloat16)
    fused = {"aten." + name for name in ("sum", "mean", "amax", "amin", "view", "reshape", "permute", "expand", "slice", "select", "unsqueeze", "squeeze", "cat")}
    convert = "prims.convert_element_type.default"

    def moved(a):
        return torch.device("cpu") if isinstance(a, torch.device) and a.type == "cuda" else a

    def rounded(a):
        return a.t.to(a.dtype) if isinstance(a, Unrounded) else a

    def unrounded(a):
        a = a.t if isinstance(a, Unrounded) else a
        return a.to(torch.float32) if isinstance(a, torch.Tensor) and a.dtype in half else a

    class OnCpu(torch.fx.Interpreter):
        def run_node(self, n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            name, said = str(n.target), n.meta.get("val") if n.op == "call_function" else None
            inside = isinstance(said, torch.Tensor) and name != "aten.view.dtype" and not getattr(getattr(n.target, "_schema", None), "is_mutable", False) and (
                name == convert or torch.Tag.pointwise in getattr(n.target, "tags", ()) or name.rsplit(".", 1)[0] in fused)
            args, kwargs = tree_map(unrounded if inside else rounded, (args, kwargs))
            if not inside or said.dtype not in half:
                return getattr(self, n.op)(n.target, args, kwargs)
            if name == convert:
                return Unrounded(torch, args[0], said.dtype)
            if kwargs.get("dtype") in half:
                kwargs = {**kwargs, "dtype": torch.float32}
            return Unrounded(torch, self.call_function(n.target, args, kwargs), said.dtype)

        def call_function(self, target, args, kwargs):
            if str(target) in drawn.operators:
                return drawn.operators[str(target)](*args, **kwargs)
            return super().call_function(target, tuple(map(moved, args)), {k: moved(v) for k, v in kwargs.items()})
    return OnCpu(module, graph=graph)
