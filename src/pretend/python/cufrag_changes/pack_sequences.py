# SPDX-License-Identifier: Apache-2.0
"""Sequences one behind the other in a row, in place of padding."""
from .help import Left, change_batch

NUMERICS = "sequences of a row see each other, unless the model gets position ids and a mask for each (flash attention of variable length)"


def applies(seen):
    b, call = seen.batches, seen.training()
    if not call or not b.tokens or b.padding < 0.05 * b.tokens:
        return None
    part = "%.0f %% of the tokens that reach %s are padding" % (100 * b.padding / b.tokens, call.name)
    if not call.loss:
        raise Left("%s; the loss is computed outside of the model, which would need targets packed, too" % part)
    return "put sequences one behind the other into as few rows as hold them: " + part, call.place


def fit(lengths, width):
    """Number of rows, the longest sequence first into the first row with room."""
    rows = []
    for n in sorted(lengths, reverse=True):
        at = next((i for i, room in enumerate(rows) if room >= n), len(rows))
        if at == len(rows):
            rows.append(width)
        rows[at] -= n
    return len(rows)


def install(torch, seen):
    def packed(t, kept):
        lengths = [n for n in kept.sum(1).tolist() if n]
        width = max(lengths, default=0)
        return t[:fit(lengths, width), :width].clone() if width else t
    change_batch(torch, seen, packed, all_of_them=True)
