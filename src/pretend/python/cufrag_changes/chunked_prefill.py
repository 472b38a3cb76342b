# SPDX-License-Identifier: Apache-2.0
"""A long prompt goes through the model some tokens at a time."""
from .help import Left, cache_of, on_generate, partial

CHUNK = 512


def applies(seen):
    found = cache_of(seen, any_kind=True)
    if not found or seen.prompt < 2 * CHUNK:
        return None
    import inspect
    from transformers import GenerationConfig
    if "prefill_chunk_size" not in inspect.getsource(GenerationConfig.__init__):
        raise Left("this release of transformers has no prefill_chunk_size")
    return "generate(…, prefill_chunk_size=%d): the prompt has %d tokens" % (CHUNK, seen.prompt), found


install = partial(on_generate, prefill_chunk_size=CHUNK)
