# SPDX-License-Identifier: Apache-2.0
"""Keys and values of a generation in 8 bits."""
import sys

from .help import cache_of

NUMERICS = "keys and values are rounded to 8 bits"
GROUP = "cache"


def applies(seen):
    found = cache_of(seen)
    return found and ("keep keys and values in torch.float8_e4m3fn, widened in a layer while it uses them: a DynamicLayer with its own update()",
                      found)


def install(torch, seen):
    layer = sys.modules["transformers.cache_utils"].DynamicLayer
    narrow = torch.float8_e4m3fn

    def update(self, keys, values, *args, **kwargs):
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
        self.keys = torch.cat([self.keys.to(narrow), keys.to(narrow)], dim=-2)
        self.values = torch.cat([self.values.to(narrow), values.to(narrow)], dim=-2)
        return self.keys.to(keys.dtype), self.values.to(values.dtype)
    layer.update = update
