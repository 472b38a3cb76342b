# SPDX-License-Identifier: Apache-2.0
"""The command `cufrag` of the wheel: the program that lies beside this file."""
import os
import sys


def path():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "cufrag")


def main():
    os.execv(path(), ["cufrag"] + sys.argv[1:])
