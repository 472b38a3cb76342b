# SPDX-License-Identifier: Apache-2.0
"""Keys and values of a generation lie in one place that is large enough from the beginning."""
from .help import cache_of, on_generate, partial

GROUP = "cache"


def applies(seen):
    found = cache_of(seen)
    return found and ("generate(…, cache_implementation=\"static\"): keys and values are not copied for each token", found)


install = partial(on_generate, cache_implementation="static", disable_compile=True)
