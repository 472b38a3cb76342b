# SPDX-License-Identifier: Apache-2.0
"""Where the dispatch key of the library of values (cufrag_values.py) is on."""
from cufrag_hooks import hook


@hook("torch._ops", release="torch", purpose="values beside operators of higher order", when="values")
def hide_key(card, ops):
    """Python does not know the key: it is removed from the keys of higher-order operators, which
    Python dispatches."""
    values = card.values
    keys = getattr(card.torch._C, "_dispatch_tls_local_include_set", None)
    original = getattr(ops, "_compute_keyset", None)
    if not keys or not original:
        values.switch(True)
        switch_off_within(ops.HigherOrderOperator, card.torch, values)
        return
    before = keys()
    values.switch(True)
    mine = keys() - before
    ops._compute_keyset = lambda *args: original(*args) - mine


def switch_off_within(operator, torch, values):
    """If keys cannot be removed: such operators compute no values, and their results are marked
    unknown."""
    call = operator.__call__

    def call_without(*args, **kwargs):
        values.switch(False)
        try:
            given = call(*args, **kwargs)
        finally:
            values.switch(True)
        for t in given if isinstance(given, (tuple, list)) else [given]:
            if type(t) is torch.Tensor and t.is_cuda:
                values.unknown(t)
        return given
    operator.__call__ = call_without


@hook("threading", release="python", purpose="values in other threads", when="values")
def switch_on_in_threads(card, threading):
    """The switch is per thread; autograd's own threads inherit it."""
    original = threading.Thread.start

    def start(thread, *args, **kwargs):
        run = thread.run

        def run_with_values():
            card.values.switch(True)
            run()
        thread.run = run_with_values
        return original(thread, *args, **kwargs)
    threading.Thread.start = start
