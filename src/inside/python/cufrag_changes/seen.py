# SPDX-License-Identifier: Apache-2.0
"""What changes want to know of a program: its models as they are called, optimizers, losses, and what is kept over steps.

Roots are modules that are called from outside of any other. Nothing here changes what the program does, but for the calls of roots,
which plug-ins may wrap (`when_root`).
"""
import os
import sys
import weakref


def wrap(home, name, around):
    """home.name becomes around(original, *args, **kwargs)."""
    import functools
    original = getattr(home, name)

    @functools.wraps(original)
    def call(*args, **kwargs):
        return around(original, *args, **kwargs)
    setattr(home, name, call)


class Call:
    """The first call of a root."""

    def __init__(self, seen, module, args, kwargs):
        torch = seen.torch
        self.module, self.place = weakref.ref(module), seen.place()
        self.name = type(module).__name__
        self.training, self.grad = module.training, torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        self.autocast = torch.is_autocast_enabled()
        p = next(module.parameters(), None)
        self.dtype = p.dtype if p is not None else None
        self.trains = any(p.requires_grad for p in module.parameters())
        self.batch = next((t.shape[0] for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.dim()), 0)
        self.loss = False  # it gives the loss itself
        self.lists = [(seen.made.get(id(home), ""), [type(b).__name__ for b in blocks]) for _, blocks, home in repeated(torch, module)]
        self.norms = any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in module.modules())


class Seen:
    def __init__(self, torch, card):
        self.torch, self.card = torch, card
        self.looks = True  # in the run as it is
        self.depth = 0
        self.calls, self.optimizers, self.made = [], [], {}
        self.roots = []  # functions that get each root before its first call
        self.steps = self.backwards = self.moved = 0
        self.clips = self.scales = self.generates = ""
        self.zeroed = ""  # where gradients are set to zero and kept
        self.backward_place = ""
        self.losses = []  # (bytes of the logits, place, did a Linear give them, rows or 0)
        self.widths = set()  # of what wide Linears gave
        self.versions, self.stepped = [], set()
        self.kept = {}  # variable -> {step: bytes on the card that it holds}
        self.files = {}  # variable -> file
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
        for name in ("ModuleList", "Sequential"):
            wrap(getattr(torch.nn, name), "__init__", self.on_made)
        wrap(torch.optim.Optimizer, "__init__", self.on_optimizer)
        wrap(torch.optim.Optimizer, "zero_grad", self.on_zero)
        wrap(torch.Tensor, "backward", self.on_backward)
        wrap(torch.nn.functional, "cross_entropy", self.on_loss)
        wrap(torch.nn.functional, "linear", self.on_linear)
        for home in (torch.nn.utils, torch.nn.utils.clip_grad):
            wrap(home, "clip_grad_norm_", self.on_clip)
        wrap(torch.amp.GradScaler, "scale", self.on_scale)
        optimizer = sys.modules["torch.optim.optimizer"]
        optimizer.register_optimizer_step_pre_hook(self.before_step)
        optimizer.register_optimizer_step_post_hook(self.on_step)

    def on_call(self, original, module, *args, **kwargs):
        if self.depth:
            return original(module, *args, **kwargs)
        if "_cufrag_known" not in module.__dict__:
            self.found(module)
            self.calls.append(Call(self, module, args, kwargs))
        self.depth = 1
        try:
            out = original(module, *args, **kwargs)
        finally:
            self.depth = 0
        for c in self.calls:
            if c.module() is module:
                c.loss = c.loss or loss_of(self.torch, out) is not None
        return out

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
            self.losses.append((logits.numel() * 4, self.place(), width in self.widths, logits.numel() // width if width else 0))
        return original(logits, *args, **kwargs)

    def wide(self, h, w):
        """Is that a product as logits are: far wider than what it is made of?"""
        return w.shape[0] > 4 * w.shape[1] and h.dim() > 1

    def on_linear(self, original, h, w, *args, **kwargs):
        if self.looks and self.wide(h, w):
            self.widths.add(w.shape[0])
        return original(h, w, *args, **kwargs)

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
        """Weights that had a gradient in a step, or were written to since the first backward pass. They may be gone by now."""
        return len(self.stepped)

    def training(self):
        """The first call of a model that is trained, if any."""
        return next((c for c in self.calls if c.grad and c.trains and c.training and self.backwards), None)

    def optimizer(self, *kinds):
        """(name, place) of the first optimizer of these kinds."""
        return next(((name, place) for _, name, place, _ in self.optimizers if name in kinds), None)

    # ---- kept over steps

    def look(self):
        """Bytes on the card in lists and dictionaries of the program's own variables, by variable."""
        for name, holder, path in self.variables():
            size = sum(t.untyped_storage().nbytes() for t in tensors_in(self.torch, holder))
            if size:
                self.files[name] = path
                self.kept.setdefault(name, {})[self.steps] = size

    def variables(self):
        """(name, value, file) of what the program's functions that are running hold, and its main module."""
        frame, seen = sys._getframe(), set()
        while frame:
            path = frame.f_code.co_filename
            if "site-packages" not in path and not path.startswith(("<frozen", HERE)):
                for name, value in list(frame.f_locals.items()):
                    if type(value) in (list, dict, tuple) and id(value) not in seen and not name.startswith("_"):
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


HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def repeated(torch, root):
    """[(place in the root, blocks)]: modules of one class that repeat in a list, the outermost ones."""
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
