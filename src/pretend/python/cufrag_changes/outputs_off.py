# SPDX-License-Identifier: Apache-2.0
"""A model of transformers does not give hidden states and attentions of all its layers."""
from .help import names

NAMES = ("output_hidden_states", "output_attentions")


def applies(seen):
    calls = [c for c in seen.calls if c.outputs]
    return calls and ("%s in the call of %s" % (", ".join("%s=False" % name for name in calls[0].outputs), names(calls)), calls[0].place)


def install(torch, seen):
    def root(module):
        for m in module.modules():
            for name in NAMES:
                if getattr(getattr(m, "config", None), name, False):
                    try:
                        setattr(m.config, name, False)
                    except ValueError:  # of a release that does not like to be told
                        pass
    seen.when_root(root)
    seen.arguments = lambda args, kwargs: (args, {**kwargs, **{name: False for name in NAMES if kwargs.get(name)}})
