# SPDX-License-Identifier: Apache-2.0
"""Hides names of PyTorch from cufrag alone, as a release may that comes: every Python with this folder in PYTHONPATH does, below cufrag's own.

HIDDEN: such a name, as torch._C._name; HIDDEN_SEEN: file for the names that cufrag asks for, one a
line. """
import abc
import importlib.util
import os
import re
import sys
import types

PACKAGES = re.compile(r"(torch(?!\._inductor)|triton\.(runtime|common))\b")  # Triton copies what a kernel names
HIDDEN, SEEN = os.environ.get("HIDDEN"), os.environ.get("HIDDEN_SEEN")
OF_PYTHON = 1 << 9  # a class's flag
asked = set()


def look(home, name, found):
    """`found` lies in the module or class `home` under `name`: what whoever asks gets."""
    folder = os.path.basename(os.path.dirname(sys._getframe(2).f_code.co_filename))
    if not folder.startswith(("inject", "cufrag", "hooks")):
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


class Class(abc.ABCMeta):
    def __getattribute__(cls, name):
        return look(name_of(cls), name, type.__getattribute__(cls, name))


class Stand:
    """For a class whose own class cannot be another."""

    def __init__(self, kind):
        object.__setattr__(self, "kind", kind)

    def __getattribute__(self, name):
        kind = object.__getattribute__(self, "kind")
        return look(name_of(kind), name, getattr(kind, name))

    def __setattr__(self, name, value):
        setattr(real(self), name, value)

    def __call__(self, *args, **kwargs):
        return real(self)(*args, **kwargs)

    def __instancecheck__(self, thing):
        return isinstance(thing, real(self))

    def __mro_entries__(self, bases):
        return real(self),

    def __eq__(self, other):
        return other is real(self)

    def __hash__(self):
        return hash(real(self))


def real(stand):
    return object.__getattribute__(stand, "kind")


def name_of(kind):
    return "%s.%s" % (type.__getattribute__(kind, "__module__"), type.__getattribute__(kind, "__qualname__"))


def watched(thing):
    """A module or class that is watched, too; anything else as it is."""
    kind = type(thing)
    if kind is types.ModuleType and is_theirs(thing.__name__):
        thing.__class__ = Module
    elif kind is abc.ABCMeta and is_theirs(thing.__module__):
        thing.__class__ = Class
    elif kind is type and thing.__flags__ & OF_PYTHON and is_theirs(thing.__module__):
        return Stand(thing)
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
                if name != "torch._C":  # PyTorch 2.1 looks for others of its class
                    watched(module)
            spec.loader.exec_module = exec_module
        return spec


if HIDDEN or SEEN:
    sys.meta_path.insert(1, Watch())  # behind cufrag's
