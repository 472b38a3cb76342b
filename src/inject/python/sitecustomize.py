# SPDX-License-Identifier: Apache-2.0
"""Python reads this file at its start under `cufrag record` or `cufrag run`: its folder is first in
PYTHONPATH.

It waits for the program to import torch. Before the import, it loads the libraries of the pretended
card, if requested; afterwards it installs a policy (run), or starts PyTorch's own history at the
first use of CUDA and writes it at the end. A program without torch is left alone, and a
sitecustomize of the user's own runs, too.

Its variables, CUFRAG_RECORD, CUFRAG_RUN and CUFRAG_PRETEND first of all: src/pretend/protocol.def.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run_next():
    """The sitecustomize that this one shadows."""
    import importlib.machinery
    import importlib.util
    for folder in sys.path:
        if os.path.abspath(folder or ".") == HERE:
            continue
        spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [folder])
        if spec and spec.loader:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return


class Watch:
    """First in sys.meta_path: runs functions right before and after torch's module body."""

    def __init__(self):
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.busy:
            return None
        import importlib.util
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None or not spec.origin:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):  # only on loading: many libraries merely check for torch
            import cufrag_recorder
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            recorder = cufrag_recorder.Recorder()
            recorder.before(os.path.dirname(spec.origin))
            run(module)
            recorder.after(module)
        spec.loader.exec_module = exec_module
        return spec


if os.environ.pop("CUFRAG_KEPT", None):  # started with -E or -I: its children inherit the variables (src/inject/start)
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        os.environ.pop(name, None)
    for name in [n for n in os.environ if n.startswith("CUFRAG_KEPT_")]:
        os.environ[name[len("CUFRAG_KEPT_"):]] = os.environ.pop(name)
if os.environ.get("CUFRAG_PRETEND_FORKS") or os.environ.get("CUFRAG_PRETEND_MODULES"):
    import cufrag_fork_server
    cufrag_fork_server.stand_in()
if os.environ.get("CUFRAG_RECORD") or os.environ.get("CUFRAG_RUN"):
    sys.meta_path.insert(0, Watch())
try:
    run_next()
except Exception as error:  # as site.py does with the user's own
    print("sitecustomize: %s: %s" % (type(error).__name__, error), file=sys.stderr)
