# SPDX-License-Identifier: Apache-2.0
"""Hides names of PyTorch from cufrag alone, as a release may that comes: every Python with this folder in PYTHONPATH does, below cufrag's own.

HIDDEN: such a name, as torch._C._name; HIDDEN_SEEN: file for the names that cufrag asks for, one a line.
"""
import abc
import importlib.util
import os
import re
import sys
import types

PACKAGES = re.compile(r"(torch(?!\._inductor)|triton\.(runtime|common)|lightning)\b")  # Triton copies what a kernel names
HIDDEN, SEEN = os.environ.get("HIDDEN"), os.environ.get("HIDDEN_SEEN")
asked = set()


def look(home, name, found):
    """`found` lies in the module or class `home` under `name`: what whoever asks gets."""
    folder = os.path.basename(os.path.dirname(sys._getframe(2).f_code.co_filename))
    if not folder.startswith(("nogpu-", "cufrag")):
        return found
    full = "%s.%s" % (home, name)
    if name == "__dict__":
        return {k: v for k, v in found.items() if "%s.%s" % (home, k) != HIDDEN}
    if full == HIDDEN:
        raise AttributeError("%s has no attribute '%s'" % (home, name))
    if SEEN and full not in asked and not name.startswith("__"):
        asked.add(full)
        with open(SEEN, "a") as f:
            f.write(full + "\n")
    return watched(found)


class Module(types.ModuleType):
    def __getattribute__(self, name):
        return look(super().__getattribute__("__name__"), name, super().__getattribute__(name))


class Class(type):
    def __getattribute__(cls, name):
        home = "%s.%s" % (type.__getattribute__(cls, "__module__"), type.__getattribute__(cls, "__qualname__"))
        return look(home, name, type.__getattribute__(cls, name))


class Abstract(Class, abc.ABCMeta):
    pass


WATCHED = {types.ModuleType: Module, type: Class, abc.ABCMeta: Abstract}


def watched(thing):
    """The same, a module or class that is watched, too."""
    kind = type(thing)
    if kind in WATCHED and is_theirs(thing.__name__ if kind is types.ModuleType else thing.__module__):
        try:
            thing.__class__ = WATCHED[kind]
        except TypeError:  # one of C
            pass
    return thing


def is_theirs(name):
    return isinstance(name, str) and PACKAGES.match(name)


class Watch:
    def __init__(self):
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if not is_theirs(name) or name in self.busy:
            return None
        self.busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy.discard(name)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                watched(module)
            spec.loader.exec_module = exec_module
        return spec


if HIDDEN or SEEN:
    sys.meta_path.insert(1, Watch())  # behind cufrag's
