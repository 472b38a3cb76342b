# SPDX-License-Identifier: Apache-2.0
import cufrag_protocol as protocol
from cufrag_hooks import hook


@hook("lightning.fabric.utilities.device_parser", "lightning_fabric.utilities.device_parser",
      release="lightning", purpose="how many cards Lightning asks for (--gpus N gives them)")
def count_cards(card, parser):
    """The program counted the cards before it selected one, and PyTorch caches that count, so
    more cannot be added: tell the user."""
    sanitize = parser._sanitize_gpu_ids

    def told(gpus, *more, **rest):
        try:
            return sanitize(gpus, *more, **rest)
        except Exception:
            if gpus and protocol.PRETEND_CALLS:
                with open(protocol.PRETEND_CALLS, "a") as f:
                    f.write("card %d\n" % max(gpus))
            raise
    parser._sanitize_gpu_ids = told
