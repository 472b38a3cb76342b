# SPDX-License-Identifier: Apache-2.0
"""What several changes do."""
import functools
import importlib
from functools import partial  # noqa: F401

from . import Left
from .seen import as_it_was, loss_of, repeated, with_loss, wrap  # noqa: F401

ADAM = ("Adam", "AdamW")


def wrap_forward(module, around):
    """module.forward becomes around(original, args, kwargs)."""
    inner = module.forward

    @functools.wraps(inner)
    def forward(*args, **kwargs):
        return around(inner, args, kwargs)
    module.forward = forward


def names(calls):
    """Of the models that a change applies to: all, or the largest and how many more."""
    found = [c.name for c in sorted(calls, key=lambda c: -c.size)]
    if len(found) < 3 and len(set(found)) == len(found):
        return " and ".join(found)
    return "%s and %d more model%s" % (found[0], len(found) - 1, "s" if len(found) > 2 else "")


def each_under(seen, sentence, take=lambda call: True):
    """(sentence % the models that are trained and taken, where the largest is called), or None."""
    calls = [c for c in seen.trained() if take(c)]
    return (sentence % names(calls), calls[0].place) if calls else None


def needs(library):
    """Raises Left where it cannot be imported."""
    try:
        importlib.import_module(library)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == library
        raise Left("%s is not installed" % library if missing else "%s cannot be imported: %s" % (library, error)) from None


def optimizers_of(seen, kinds, take=lambda groups: True):
    """(name, place, " (2 optimizers)" or "") of those of these kinds, or None."""
    found = [(name, place) for _, name, place, groups in seen.optimizers if name in kinds and take(groups)]
    return (*found[0], " (%d optimizers)" % len(found) if len(found) > 1 else "") if found else None


def adam(seen, sentence=""):
    """(sentence % their name and number, place) of Adam or AdamW. Raises Left."""
    found = optimizers_of(seen, ADAM)
    if not found and seen.optimizers:
        raise Left("the optimizer is %s, not Adam or AdamW" % seen.optimizers[0][1])
    return found and (sentence % (found[0] + found[2]) if "%" in sentence else sentence, found[1])


def ddp(seen, sentence, parts):
    """(sentence, first call in DistributedDataParallel), or None. Raises Left with one rank."""
    call = next((c for c in seen.calls if c.name == "DistributedDataParallel"), None)
    if call and call.ranks < 2:
        raise Left("each rank would keep a part of %s: no part is smaller with one rank; give --ranks" % parts)
    return call and (sentence, call.place)
