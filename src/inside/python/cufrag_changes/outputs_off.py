# SPDX-License-Identifier: Apache-2.0
"""A model of transformers does not give hidden states and attentions of all its layers."""
NUMERICS = ""
NAMES = ("output_hidden_states", "output_attentions")


def applies(seen):
    call = next((c for c in seen.calls if c.outputs), None)
    return call and ("%s in the call of %s" % (", ".join("%s=False" % name for name in call.outputs), call.name), call.place)


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
