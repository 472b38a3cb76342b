# SPDX-License-Identifier: Apache-2.0
"""cufrag in Python: its allocation policies in a running PyTorch (cufrag.torch)."""
from . import torch  # not PyTorch: that is imported when it is asked for

__all__ = ["torch"]
