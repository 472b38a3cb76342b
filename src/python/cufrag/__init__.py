# SPDX-License-Identifier: Apache-2.0
"""cufrag in Python: its allocation policies in a running PyTorch (cufrag.torch)."""
