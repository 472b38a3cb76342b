# SPDX-License-Identifier: Apache-2.0
"""Logits go into the loss as they are, without a copy in float32."""
from .seen import wrap

INSIDE = True
NUMERICS = "the loss is computed of logits in 16 bits"


def applies(seen):
    if not seen.floated or not seen.backwards:
        return None
    size, place = max(seen.floated, key=lambda x: x[0])
    return "no .float() of %.0f MiB of logits" % (size / 2**20), seen.relative(place)


def install(torch, seen):
    def as_it_is(original, t, *args, **kwargs):
        return t if seen.is_logits(t, original, args, kwargs) else original(t, *args, **kwargs)
    for name in ("float", "to"):
        wrap(torch.Tensor, name, as_it_is)
