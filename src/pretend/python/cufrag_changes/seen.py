# SPDX-License-Identifier: Apache-2.0
"""What changes want to know of a program: its models as they are called, optimizers, losses, and what is kept over steps.

Roots are modules that are called from outside of any other. Nothing here changes what the program
does, but for the calls of roots, which plug-ins may wrap (`when_root`).
"""
import inspect
import os
import sys
import weakref

from cufrag_recorder import tell


def wrap(home, name, around):
    """home.name becomes around(original, *args, **kwargs), except in compiled code."""
    import functools
    torch = sys.modules["torch"]
    compiling = getattr(torch.compiler, "is_compiling", None) or torch._utils.is_compiling  # 2.1, 2.2
    original, compiles = getattr(home, name, None), compiles_frames()
    if original is None:
        tell("without what advise sees by %s.%s, which is not there" % (home.__name__, name))
        return

    @functools.wraps(original)
    def call(*args, **kwargs):
        return original(*args, **kwargs) if compiling() or compiles() else around(original, *args, **kwargs)
    setattr(home, name, call)
    HOOKS.add(call.__code__)


HOOKS = set()


def compiles_frames():
    """Asks whether torch.compile looks at each function that is called now."""
    torch = sys.modules["torch"]
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "get_eval_frame_callback"):
        return frames.get_eval_frame_callback
    change, context = getattr(frames, "set_eval_frame", lambda callback: None), getattr(getattr(torch, "_guards", None), "TracingContext", None)
    tracing = getattr(context, "try_get", None) or getattr(context, "get", None) or (lambda: None)

    def asked():  # older releases return the old callback
        callback = change(None)
        change(callback)
        return callback or tracing()
    HOOKS.add(asked.__code__)
    return asked


def keep_steps(torch, around):
    """PyTorch 2.1's torch.compile takes the hooks from the steps of optimizers."""
    for kind in vars(torch.optim).values():
        step = vars(kind).get("step") if isinstance(kind, type) else None
        if getattr(step, "hooked", False) and step.__code__.co_name != "wrapper" and step.__code__ not in HOOKS:
            wrap(kind, "step", around)
            kind.step.hooked = True


def as_it_was(home, *names):
    """Unwraps functions, for libraries that compare them."""
    for name in names:
        setattr(home, name, inspect.unwrap(getattr(home, name)))


def is_compiled(module):
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


class Call:
    """The first call of a root."""

    def __init__(self, seen, module, args, kwargs):
        torch = seen.torch
        self.module, self.place = weakref.ref(module), seen.place()
        self.name = type(getattr(module, "_orig_mod", module)).__name__
        self.compiled = any(map(is_compiled, module.modules()))
        self.whole = is_compiled(module) or is_compiled(getattr(module, "module", None))
        self.logits = any(isinstance(m, torch.nn.Linear) and m.weight.dim() == 2 and seen.wide(m.weight, m.weight) for m in module.modules())
        dist = sys.modules.get("torch.distributed")
        self.ranks = dist.get_world_size() if dist and dist.is_available() and dist.is_initialized() else 1
        self.training, self.grad = module.training, torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        self.autocast = torch.is_autocast_enabled()
        p = next(module.parameters(), None)
        self.dtype = p.dtype if p is not None else None
        self.trains = any(p.requires_grad for p in module.parameters())
        self.size = sum(p.numel() for p in module.parameters())
        self.copies = getattr(module, "gradient_as_bucket_view", None) is False  # gradients lie beside DDP's buckets
        self.batch = next((t.shape[0] for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.dim()), 0)
        self.loss = False  # it gives the loss itself
        self.outputs = [name for name in ("output_hidden_states", "output_attentions")
                        if kwargs.get(name, getattr(getattr(module, "config", None), name, False))]
        self.lists = [(seen.made.get(id(home), ""), [type(b).__name__ for b in blocks]) for _, blocks, home in repeated(torch, module)]
        self.norms = any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in module.modules())


class Seen:
    def __init__(self, torch, card):
        from . import batches
        self.torch, self.card = torch, card
        self.looks = True  # in the run as it is
        self.depth = 0
        self.calls, self.optimizers, self.made = [], [], {}
        self.roots = []  # functions that get each root before its first call
        self.steps = self.backwards = self.moved = 0
        self.functions = []  # where functions are compiled
        self.clips = self.scales = ""
        self.zeroed = ""  # where gradients are set to zero and kept
        self.backward_place = ""
        self.losses = []  # (bytes of the logits, place, did a Linear give them, rows or 0)
        self.widths, self.taken, self.scored = set(), set(), set()  # of what wide Linears gave, what Linears and losses took
        self.floated = []  # (bytes, place, width) of what may be logits and was copied to float32
        self.cache, self.prompt = ("", ""), 0  # (class of cached keys, place), most tokens
        self.captures = []  # places of CUDA graphs with a pool of their own
        self.graphs = {}  # variable -> (file, bytes left by a call, calls)
        self.held = 0  # on the card at the last call of a model
        self.drops_graphs = False
        self.uses = {}  # place of a call of a model -> did a backward pass come through what it gave?
        self.adding = {}  # (variable, file) -> does a line add to it?
        self.versions, self.stepped = [], set()
        self.kept = {}  # variable -> {step: bytes on the card that it holds}
        self.files = {}  # variable -> file
        self.number = 0  # of the change that is installed
        self.arguments = None  # arguments(args, kwargs): in place of a root's
        self.batches = batches.Batches(torch, self)
        self.watch()

    def place(self):
        return self.card.place() if self.card else ""

    def relative(self, place):
        here = os.path.join(os.getcwd(), "")
        return place[len(here):] if place.startswith(here) else place

    # ---- hooks

    def watch(self):
        torch = self.torch
        wrap(torch.nn.Module, "_call_impl", self.on_call)
        if hasattr(torch.nn.Module, "compile"):
            wrap(torch.nn.Module, "compile", self.on_compile)
        wrap(torch, "compile", self.on_compiled)
        for name in ("ModuleList", "Sequential"):
            wrap(getattr(torch.nn, name), "__init__", self.on_made)
        wrap(torch.optim.Optimizer, "__init__", self.on_optimizer)
        wrap(torch.optim.Optimizer, "zero_grad", self.on_zero)
        wrap(torch.Tensor, "backward", self.on_backward)
        wrap(torch.nn.functional, "cross_entropy", self.on_loss)
        wrap(torch.nn.functional, "linear", self.on_linear)
        for home in (torch.nn.utils, torch.nn.utils.clip_grad):
            wrap(home, "clip_grad_norm_", self.on_clip)
        wrap((torch.amp if hasattr(torch.amp, "GradScaler") else torch.cuda.amp).GradScaler, "scale", self.on_scale)
        for name in ("float", "to"):
            wrap(torch.Tensor, name, self.on_float)
        if hasattr(torch.cuda, "CUDAGraph"):
            wrap(torch.cuda.CUDAGraph, "capture_begin", self.on_capture)
        optimizer = sys.modules["torch.optim.optimizer"]
        optimizer.register_optimizer_step_pre_hook(self.before_step)
        optimizer.register_optimizer_step_post_hook(self.on_step)

    def on_call(self, original, module, *args, **kwargs):
        if self.depth:
            return original(module, *args, **kwargs)
        if hasattr(module, "compile_subgraph_reason"):  # a graph of 2.1's torch.compile
            return self.within(original, module, args, kwargs)
        if "_cufrag_known" not in module.__dict__:
            self.found(module)
            self.calls.append(Call(self, module, args, kwargs))
        else:
            self.again(module, args, kwargs)
        if self.looks or self.drops_graphs:
            self.look_at_graphs()
        if self.looks:
            self.batches.called(args, kwargs)
            if kwargs.get("past_key_values") is not None:
                self.cache = type(kwargs["past_key_values"]).__name__, self.place()
                self.prompt = max(self.prompt, *(t.shape[-1] for t in (*args, kwargs.get("input_ids")) if isinstance(t, self.torch.Tensor)), 0)
        if self.arguments:
            args, kwargs = self.arguments(args, kwargs)
        out = self.within(original, module, args, kwargs)
        for c in self.calls:
            if c.module() is module:
                c.loss = c.loss or loss_of(self.torch, out) is not None
        if self.looks and not self.uses.get(self.place()):
            self.follow(out, self.place())
        return out

    def follow(self, out, place):
        """Does a backward pass come through what a model gave? A kind that is not known: it does."""
        def came(_):
            self.uses[place] = True
        for t in out if type(out) in (tuple, list) else [out]:
            if not isinstance(t, self.torch.Tensor):
                self.uses[place] = True
            elif t.requires_grad:
                self.uses.setdefault(place, False)
                t.register_hook(came)

    def within(self, original, module, args, kwargs):
        self.depth = 1
        try:
            return original(module, *args, **kwargs)
        finally:
            self.depth = 0

    def on_compile(self, original, module, *args, **kwargs):
        if hasattr(module, "_call_impl"):
            module.__dict__["_call_impl"] = inspect.unwrap(type(module)._call_impl).__get__(module)
        try:
            original(module, *args, **kwargs)
        finally:
            module.__dict__.pop("_call_impl", None)
        self.hide_hooks()
        compiled = getattr(module, "_compiled_call_impl", None)
        if compiled is None:  # kept in another place
            return
        module._compiled_call_impl = lambda *a, **k: self.on_call(lambda _, *x, **y: compiled(*x, **y), module, *a, **k)

    def on_compiled(self, original, model=None, *args, **kwargs):
        owner = getattr(model, "__self__", model)
        if model is not None and not isinstance(owner, self.torch.nn.Module):
            self.functions.append(self.place())
        made = original(model, *args, **kwargs)
        self.hide_hooks()
        return made

    def hide_hooks(self):
        """torch.compile skips torch.nn, and has to skip these hooks, too."""
        compiler = sys.modules.get("torch._dynamo.eval_frame")
        if compiler:
            keep_steps(self.torch, self.around_step)
        for code in HOOKS if hasattr(compiler, "skip_code") else ():
            compiler.skip_code(code)

    def around_step(self, original, optimizer, *args, **kwargs):
        self.before_step(optimizer, args, kwargs)
        out = original(optimizer, *args, **kwargs)
        self.on_step(optimizer, args, kwargs)
        return out

    def again(self, module, args, kwargs):
        """Of a model that was evaluated first, its first call in training counts."""
        for i, c in enumerate(self.calls):
            if c.module() is module and c.trains and not (c.grad and c.training) and module.training and self.torch.is_grad_enabled():
                self.calls[i] = Call(self, module, args, kwargs)

    def found(self, module):
        for m in module.modules():
            m.__dict__["_cufrag_known"] = True
        for then in self.roots:
            then(module)

    def when_root(self, then):
        self.roots.append(then)

    def on_made(self, original, module, *args, **kwargs):
        original(module, *args, **kwargs)
        self.made[id(module)] = self.place()

    def on_optimizer(self, original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        if not getattr(self, "inner", False):
            flags = [{k: g.get(k) for k in ("fused", "foreach", "differentiable")} for g in optimizer.param_groups]
            self.optimizers.append((weakref.ref(optimizer), type(optimizer).__name__, self.place(), flags))

    def on_zero(self, original, optimizer, set_to_none=True):
        if not set_to_none and not self.zeroed:
            self.zeroed = self.place()
        return original(optimizer, set_to_none=set_to_none)

    def on_backward(self, original, tensor, *args, **kwargs):
        if not self.backwards:
            self.begin()
        self.backwards += 1
        return original(tensor, *args, **kwargs)

    def begin(self):
        self.backward_place = self.place()
        for p in self.parameters():
            self.versions.append((weakref.ref(p), p._version))

    def on_loss(self, original, logits, *args, **kwargs):
        if isinstance(logits, self.torch.Tensor) and len(self.losses) < 1000 and logits.is_cuda:
            width = logits.shape[-1] if logits.dim() == 2 else 0
            self.scored.add(logits.shape[1] if logits.dim() > 1 else 0)
            self.losses.append((logits.numel() * 4, self.place(), width in self.widths, logits.numel() // width if width else 0))
        return original(logits, *args, **kwargs)

    def wide(self, h, w):
        """Is that a product as logits are: far wider than what it is made of?"""
        return w.shape[0] > 4 * w.shape[1] and h.dim() > 1

    def on_linear(self, original, h, w, *args, **kwargs):
        self.taken.add(w.shape[-1])
        if self.wide(h, w):
            self.widths.add(w.shape[0])
        return original(h, w, *args, **kwargs)

    def is_logits(self, t, to, args, kwargs):
        """Does that make a copy of logits in float32? A loss takes them, and no other Linear does."""
        return (t.is_cuda and t.dtype in (self.torch.bfloat16, self.torch.float16) and t.dim() > 1 and
                t.shape[-1] in self.widths - self.taken and (not self.scored or t.shape[-1] in self.scored) and
                (to.__name__ == "float" or self.torch.float32 in args or kwargs.get("dtype") is self.torch.float32))

    def on_float(self, original, t, *args, **kwargs):
        if self.looks and len(self.floated) < 1000 and self.is_logits(t, original, args, kwargs):
            self.floated.append((t.numel() * 4, self.place(), t.shape[-1]))
        return original(t, *args, **kwargs)

    def on_capture(self, original, graph, *args, **kwargs):
        if not (args and args[0] is not None or kwargs.get("pool") is not None):
            self.captures.append(self.place())
        return original(graph, *args, **kwargs)

    def on_clip(self, original, *args, **kwargs):
        self.clips = self.clips or self.place()
        return original(*args, **kwargs)

    def on_scale(self, original, scaler, *args, **kwargs):
        if scaler.is_enabled():
            self.scales = self.scales or self.place()
        return original(scaler, *args, **kwargs)

    def before_step(self, optimizer, args, kwargs):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.stepped.add(id(p))

    def on_step(self, optimizer, args, kwargs):
        if getattr(optimizer, "_cufrag_inner", False):
            return
        self.steps += 1
        self.stepped.update(id(ref()) for ref, version in self.versions if ref() is not None and ref()._version > version)
        self.batches.stepped()
        if self.looks and 1 < self.steps < 5:
            self.look()

    # ---- what can be asked

    def parameters(self):
        done = set()
        for ref, *_ in self.optimizers:
            for group in ref().param_groups if ref() else []:
                for p in group["params"]:
                    if id(p) not in done:
                        done.add(id(p))
                        yield p

    def updated(self):
        """Weights with a gradient in a step, or written to since the first backward pass."""
        return len(self.stepped)

    def trained(self):
        """First calls of trained models, the largest first. Raises Left if all are in compiled code."""
        found = sorted((c for c in self.calls if c.grad and c.trains and c.training and self.backwards), key=lambda c: -c.size)
        if not found and self.backwards and self.functions:
            from . import Left
            raise Left("has no effect within torch.compile's graph: no model is called outside of the function that is compiled at %s" %
                       self.relative(self.functions[-1]))
        return found

    def training(self):
        """The first call of the model that is trained, the largest of several, if any."""
        return next(iter(self.trained()), None)

    # ---- kept over steps

    def look(self):
        """Bytes on the card in the program's lists and dictionaries, by variable."""
        for name, holder, path in self.variables():
            size = sum(t.untyped_storage().nbytes() for t in tensors_in(self.torch, holder))
            if size:
                self.files[name] = path
                self.kept.setdefault(name, {})[self.steps] = size

    def look_at_graphs(self):
        """Before a model is called: which variables keep the graph of an earlier call alive?"""
        now = self.torch.cuda.memory_allocated()
        left, self.held = now - self.held, now
        if not self.torch.is_grad_enabled() or len(self.graphs) > 1000:
            return
        for name, holder, path in self.variables(list, dict, tuple, self.torch.Tensor):
            for t in [holder] if isinstance(holder, self.torch.Tensor) else tensors_in(self.torch, holder):
                if not self.adds_up(name, path):
                    break  # the last loss itself, which stays until the next
                if not t.is_cuda or t.grad_fn is None or t.numel() > 1000:
                    continue
                if self.drops_graphs:
                    t.detach_()
                else:
                    _, most, count = self.graphs.get(name, (path, 0, 0))
                    self.graphs[name] = path, max(left, most), count + 1
                    break

    def adds_up(self, name, path):
        """Has the file a line that adds to the variable?"""
        from .kept_memory import line_of
        if (name, path) not in self.adding:
            self.adding[name, path] = line_of(name, path) not in ("", path)
        return self.adding[name, path]

    def variables(self, *kinds):
        """(name, value, file) of variables of the program's running functions."""
        kinds = kinds or (list, dict, tuple)
        frame, seen = sys._getframe(), set()
        while frame:
            path = frame.f_code.co_filename
            if "site-packages" not in path and not path.startswith(("<frozen", HERE)):
                for name, value in list(frame.f_locals.items()):
                    if type(value) in kinds and id(value) not in seen and not name.startswith("_"):
                        seen.add(id(value))
                        yield name, value, path
            frame = frame.f_back

    def growing(self):
        """[(variable, bytes a step)]"""
        out = []
        for name, looks in self.kept.items():
            sizes = [looks[k] for k in sorted(looks)]
            if len(sizes) > 1 and all(a < b for a, b in zip(sizes, sizes[1:])):
                out.append((name, (sizes[-1] - sizes[0]) // (len(sizes) - 1)))
        return sorted(out, key=lambda x: -x[1])


def tensors_in(torch, holder):
    for t in list(holder.values()) if type(holder) is dict else list(holder)[-100000:]:
        if type(t) is torch.Tensor and t.is_cuda:
            yield t
        elif type(holder) is dict and type(t) in (list, tuple):
            yield from tensors_in(torch, t)


HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def repeated(torch, root):
    """[(place in the root, blocks, list)]: outermost modules that repeat in a list."""
    out = []
    lists = (torch.nn.ModuleList, torch.nn.Sequential)

    def walk(module, path):
        kinds = {}
        if isinstance(module, lists):
            for child in module.children():
                parts = tuple(type(c) for c in child.children())
                if parts:
                    kinds.setdefault((type(child), parts if isinstance(child, lists) else ()), []).append(child)
        blocks = max(kinds.values(), key=len, default=[])
        if len(blocks) < 2 or 2 * len(blocks) < len(module):
            blocks = []
        if blocks:
            out.append((path, blocks, module))
        for name, child in module.named_children():
            if child not in blocks:
                walk(child, "%s.%s" % (path, name) if path else name)
    walk(root, "")
    return out


def loss_of(torch, out):
    """The loss in what a model gives, alone or with others; None: it gives none."""
    if isinstance(out, (tuple, list)):
        return next((t for t in out if is_loss(torch, t)), None)
    loss = out if isinstance(out, torch.Tensor) else out.get("loss") if isinstance(out, dict) else getattr(out, "loss", None)
    return loss if is_loss(torch, loss) else None


def is_loss(torch, t):
    return isinstance(t, torch.Tensor) and t.numel() == 1 and t.requires_grad


def with_loss(torch, out, loss):
    """What a model gave, with another loss."""
    if isinstance(out, torch.Tensor):
        return loss
    if type(out) in (tuple, list):
        return type(out)(loss if t is loss_of(torch, out) else t for t in out)
    if isinstance(out, dict):
        out["loss"] = loss
    else:
        out.loss = loss
    return out
