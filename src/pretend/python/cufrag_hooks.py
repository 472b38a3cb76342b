# SPDX-License-Identifier: Apache-2.0
"""The registry of hooks into PyTorch and other packages; their functions are in hooks/NAME.py.

    @hook("torch.nn.parallel.distributed", release="torch>=2.1", purpose="settled buckets")
    def settle_buckets(card, module): ...

A hook is called once, right after a module of its names was loaded. `release` is what it holds for:
with other releases it is left out. Where a name is missing that it needs, the program goes on, and
cufrag says at the end which hook is missing and what for. `when` is a group, which `begin` begins:
"card"; "values": values are computed; "ranks": this is a rank of a job; "alone": others do not run.
"""
import collections
import importlib
import importlib.util
import os
import pkgutil
import re
import sys

from cufrag_recorder import attach

HERE = os.path.dirname(os.path.abspath(__file__))
__path__ = [os.path.join(HERE, "hooks")]  # so that cufrag_hooks.NAME is hooks/NAME.py
Hook = collections.namedtuple("Hook", "modules release purpose when attach")
HOOKS = []


def hook(*modules, release, purpose, when="card"):
    def register(attach):
        HOOKS.append(Hook(modules, release, purpose, when, attach))
        return attach
    return register


def begin(card, when):
    for part in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        attach("hooks/%s.py" % part, importlib.import_module, "%s.%s" % (__name__, part))
    for one in HOOKS:
        for module in one.modules if one.when == when else ():
            after(module, run, card, one)


def run(module, card, one):
    name = "%s.%s" % (one.attach.__module__.rpartition(".")[2], one.attach.__name__)
    attach("%s (hook %s, for %s)" % (one.purpose, name, one.release), apply, module, card, one)


def apply(module, card, one):
    package, relation, release = re.fullmatch(r"(\w+)(>=|<|)([\d.]*)", one.release).groups()
    newer = not relation or release_of(sys.modules[package]) >= tuple(map(int, release.split(".")))
    if newer != (relation == "<"):
        one.attach(card, module)


class Finder:
    """First in sys.meta_path: calls functions with modules right after they were loaded."""
    then, busy = {}, set()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.then or name in cls.busy:
            return None
        cls.busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            cls.busy.discard(name)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                for function, given in cls.then.pop(name, ()):
                    function(module, *given)
            spec.loader.exec_module = exec_module
        return spec


def after(name, function, *given):
    """Calls function(module, *given) once the module is loaded, now or later."""
    if name in sys.modules:
        function(sys.modules[name], *given)
        return
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
    Finder.then.setdefault(name, []).append((function, given))


def release_of(package):
    return tuple(int(n) for n in re.findall(r"\d+", package.__version__)[:2])


def replace(original, new):
    """In every module, because others import functions by name."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(original.__name__) is original:
            setattr(module, original.__name__, new)
