# SPDX-License-Identifier: Apache-2.0
"""Where the dispatch key of the library of values (cufrag_values.py) is on."""
from cufrag_hooks import hook


@hook("torch._ops", release="torch", purpose="values of small tensors", when="values")
def hide_key(card, ops):
    """Python does not know the key: it is removed from the keys of higher-order operators, which
    Python dispatches."""
    keys, compute = card.torch._C._dispatch_tls_local_include_set, ops._compute_keyset
    before = keys()
    card.values.switch(True)
    mine = keys() - before
    ops._compute_keyset = lambda *args: compute(*args) - mine


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
