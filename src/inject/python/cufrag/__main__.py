# SPDX-License-Identifier: Apache-2.0
"""python -m cufrag: the command, as `cufrag` runs it."""
from .program import main

main()
