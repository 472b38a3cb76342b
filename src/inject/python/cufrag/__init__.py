# SPDX-License-Identifier: Apache-2.0
"""cufrag in Python: its allocation policies in a running PyTorch (cufrag.torch), and recordings as arrays (cufrag.open)."""
from typing import TYPE_CHECKING, Any

from . import torch  # not PyTorch: that is imported when it is asked for

if TYPE_CHECKING:
    from .recording import Answer, Columns, Error, Frame, Kind, Moment, Recording, State
    from .recording import open_recording as open  # pylint: disable=redefined-builtin

__version__ = "0.2.0"
__all__ = ["torch", "open", "Answer", "Columns", "Error", "Frame", "Kind", "Moment", "Recording", "State"]


def __getattr__(name: str) -> Any:
    """What notebooks use is loaded when it is asked for: this package is in every program under `cufrag run`, too."""
    if name not in __all__:
        raise AttributeError("module 'cufrag' has no attribute %r" % name)
    from . import recording  # pylint: disable=import-outside-toplevel

    return getattr(recording, "open_recording" if name == "open" else name)
