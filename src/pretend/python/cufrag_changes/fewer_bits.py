# SPDX-License-Identifier: Apache-2.0
"""Changes of precision, and of the caches of generate()."""
import gc
import sys

from .batches import is_card
from .help import Left, as_it_was, each_under, names, needs, partial, wrap, wrap_forward

CHUNK = 512


def before_card(torch, seen, then):
    """then(model) before it goes to the card, or is called, if it was made there."""
    as_it_was(torch.nn.functional, "linear")

    def first(module):
        if not module.__dict__.get("_cufrag_changed"):
            for m in module.modules():
                m.__dict__["_cufrag_changed"] = True
            then(module)

    def move(original, module, *args, **kwargs):
        if original.__name__ == "cuda" or any(is_card(torch, a) for a in (*args, *kwargs.values())):
            first(module)
        return original(module, *args, **kwargs)
    for name in ("cuda", "to"):
        wrap(torch.nn.Module, name, move)
    seen.when_root(first)


def only_called(seen):
    """First calls of models in a program that trains nothing."""
    return [] if seen.backwards or seen.optimizers else [c for c in seen.calls if c.dtype is not None]


def cache_of(seen, sentence, any_kind=False):
    """(sentence, the line that generates with a cache of transformers that grows, or with any)."""
    kind, place = seen.cache
    return (sentence, place) if kind and not seen.backwards and (any_kind or kind == "DynamicCache") else None


def on_generate(torch, seen, **options):
    """generate(…, **options), where they are not given."""
    mixin = sys.modules["transformers.generation.utils"].GenerationMixin
    wrap(mixin, "generate", lambda original, self, *args, **kwargs: original(self, *args, **{**options, **kwargs}))


class autocast_bf16:
    """Products of matrices in bfloat16."""
    NUMERICS, GROUP = "products of matrices are computed in bfloat16", "precision"

    def applies(seen):
        return each_under(seen, "call %s under torch.autocast('cuda', dtype=torch.bfloat16)",
                          lambda call: not call.autocast and call.dtype == seen.torch.float32)

    def install(torch, seen):
        def around(inner, args, kwargs):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return inner(*args, **kwargs)
        seen.when_root(lambda root: wrap_forward(root, around))


class weights_bf16:
    """Weights, gradients and states in bfloat16."""
    NUMERICS, GROUP = "weights and states of the optimizer are rounded to bfloat16", "precision"

    def applies(seen):
        calls = [c for c in seen.calls if c.dtype == seen.torch.float32]
        return calls and ("%s in bfloat16: model.to(torch.bfloat16) before it goes to the card" % names(calls), calls[0].place,
                          weights_bf16.NUMERICS if seen.optimizers else "weights are rounded to bfloat16")

    def install(torch, seen):
        def narrow(module):
            for p in (*module.parameters(), *module.buffers()):
                if p.dtype == torch.float32:
                    p.data = p.data.to(torch.bfloat16)

        def before(original, module, *args, **kwargs):
            narrow(module)
            return original(module, *args, **kwargs)
        for module in [m for m in gc.get_objects() if isinstance(m, torch.nn.Module)]:
            narrow(module)
        for name in ("cuda", "to"):
            wrap(torch.nn.Module, name, before)

        def around(inner, args, kwargs):
            def cast(t):
                return t.to(torch.bfloat16) if isinstance(t, torch.Tensor) and t.dtype == torch.float32 else t
            return inner(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})

        def root(module):
            narrow(module)
            wrap_forward(module, around)
        seen.when_root(root)


class weights_8bit:
    """Weights in 8 bits, in a program that only calls its model."""
    NUMERICS, GROUP = "weights are rounded to 8 bits", "precision"

    def applies(seen):
        calls = only_called(seen)
        if not calls:
            return None
        needs("torchao")
        return "torchao.quantization.quantize_(model, Int8WeightOnlyConfig()) of %s" % names(calls), calls[0].place

    def install(torch, seen):
        def narrow(model):  # imported here: the program may be importing it at this moment
            from torchao.quantization import Int8WeightOnlyConfig, quantize_
            quantize_(model, Int8WeightOnlyConfig())
        before_card(torch, seen, narrow)


class weights_4bit:
    """Weights in 4 bits, in a program that only calls its model."""
    NUMERICS, GROUP = "weights are rounded to 4 bits", "precision"

    def applies(seen):
        calls = only_called(seen)
        if not calls:
            return None
        try:
            needs("bitsandbytes")
            return "bitsandbytes.nn.Linear4bit in place of each Linear of %s" % names(calls), calls[0].place
        except Left as why:
            try:
                needs("torchao")
            except Left as other:
                raise Left("%s; %s" % (why, other)) from None
        return ("torchao.quantization.quantize_(model, Int4WeightOnlyConfig(int4_packing_format=\"tile_packed_to_4d\")) of %s" %
                names(calls), calls[0].place)

    def install(torch, seen):
        def narrow(model):
            try:  # here, since the program may be importing them when this is installed
                from bitsandbytes.nn import Linear4bit, Params4bit
            except ImportError:
                from torchao.quantization import Int4WeightOnlyConfig, quantize_
                return quantize_(model, Int4WeightOnlyConfig(int4_packing_format="tile_packed_to_4d"), device="cuda")
            linears = [(module, name, child) for module in list(model.modules()) for name, child in list(module.named_children())
                       if type(child) is torch.nn.Linear and not name.endswith("head")]
            for module, name, child in linears:
                four = Linear4bit(child.in_features, child.out_features, child.bias is not None, device="meta")
                four.weight = Params4bit(child.weight.data, requires_grad=False, quant_type="nf4", module=four)
                four.bias = child.bias
                setattr(module, name, four.cuda() if child.weight.is_cuda else four)  # rounds
        before_card(torch, seen, narrow)


class tf32:
    """TF32 in products of matrices."""
    NUMERICS = "products of matrices are rounded to 10 bits"

    def applies(seen):
        if seen.training():
            raise Left("needs no trial: TF32 changes how products are computed, not what is stored")

    def install(torch, seen):
        torch.backends.cuda.matmul.allow_tf32 = True


class static_cache:
    """Keys and values of a generation lie in one place that is large enough from the beginning."""
    GROUP = "cache"
    applies = partial(cache_of, sentence="generate(…, cache_implementation=\"static\"): keys and values are not copied for each token")
    install = partial(on_generate, cache_implementation="static", disable_compile=True)


class cache_fp8:
    """Keys and values of a generation in 8 bits."""
    NUMERICS, GROUP = "keys and values are rounded to 8 bits", "cache"
    applies = partial(cache_of, sentence="keep keys and values in torch.float8_e4m3fn, widened in a layer while it uses them: "
                      "a DynamicLayer with its own update()")

    def install(torch, seen):
        narrow = torch.float8_e4m3fn

        def update(self, keys, values, *args, **kwargs):
            if not self.is_initialized:
                self.lazy_initialization(keys, values)
            self.keys = torch.cat([self.keys.to(narrow), keys.to(narrow)], dim=-2)
            self.values = torch.cat([self.values.to(narrow), values.to(narrow)], dim=-2)
            return self.keys.to(keys.dtype), self.values.to(values.dtype)
        sys.modules["transformers.cache_utils"].DynamicLayer.update = update


class chunked_prefill:
    """A long prompt goes through the model some tokens at a time."""
    install = partial(on_generate, prefill_chunk_size=CHUNK)

    def applies(seen):
        found = cache_of(seen, "generate(…, prefill_chunk_size=%d): the prompt has %d tokens" % (CHUNK, seen.prompt), any_kind=True)
        if not found or seen.prompt < 2 * CHUNK:
            return None
        import inspect
        from transformers import GenerationConfig
        if "prefill_chunk_size" not in inspect.getsource(GenerationConfig.__init__):
            raise Left("this release of transformers has no prefill_chunk_size")
        return found
