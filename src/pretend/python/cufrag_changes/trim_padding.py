# SPDX-License-Identifier: Apache-2.0
"""Batches are padded to the longest sequence in them, not further."""
from .help import change_batch


def applies(seen):
    b = seen.batches
    if not seen.calls or not b.tokens or b.trimmed < 0.01 * b.tokens:
        return None
    return ("pad each batch to the longest sequence in it: %.0f %% of the tokens that reach %s are padding in all rows of their batch" %
            (100 * b.trimmed / b.tokens, seen.calls[0].name), seen.calls[0].place)


def install(torch, seen):
    def shorter(t, kept):
        columns = kept.any(0).nonzero()
        return t[:, int(columns[0]):int(columns[-1]) + 1].clone() if len(columns) else t
    change_batch(torch, seen, shorter)
