# SPDX-License-Identifier: Apache-2.0
"""The command `cufrag` of the wheel: the program that lies beside this file."""
import os
import sys


def path() -> str:
    """Beside this file, but `record --no-gpu` puts a package of the same name first, which has no program."""
    mine = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(folder, "cufrag") for folder in [mine] + [os.path.join(p, "cufrag") for p in sys.path]]
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), places[0])


def main() -> None:
    os.execv(path(), ["cufrag"] + sys.argv[1:])
