# SPDX-License-Identifier: Apache-2.0
"""cufrag in Python: its allocation policies in a running PyTorch (cufrag.torch)."""
from . import torch  # not PyTorch: that is imported when it is asked for

__version__ = "0.2.0"
__all__ = ["torch"]
