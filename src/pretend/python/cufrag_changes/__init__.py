# SPDX-License-Identifier: Apache-2.0
"""Changes that `cufrag advise` tries in the process of an unchanged program.

A change is a class with a docstring in any file of this folder; its name is that of the change:

    NUMERICS = "…"            what becomes numerically different
    GROUP = "optimizer"       changes of one group are not tried together
    INSIDE = True             it acts within the model, as those of GROUP "blocks" do
    UNTIMED = True            its modelled time does not hold for the program
    def most(seen):           the change has a number, {n} in its sentence: 2 unless that is not
                              enough for a card, at most this
    def applies(seen):        None: nothing to do here; (what, where), or with numerics of its own:
                              a sentence, and "train.py:41"; raises Left(why) where it cannot be
                              tried. Asked at the end of the run as it is (seen: seen.py)
    def install(torch, seen): makes the change, by hooks; before the program uses the card.
                              seen.number is its number, or 0

The last two are needed. The C side (src/pretend/advise/trial.c) sets CUFRAG_TRIALS for the run as
it is, and CUFRAG_CHANGES, "NAME+NAME=4", for a run with changes. At the end each process writes
PID.advise beside its recording.
"""
import glob
import importlib
import json
import os
import pkgutil
import sys
import traceback


class Left(Exception):
    """Why a change cannot be tried."""


def changes():
    """{name: change}, by name."""
    modules = [importlib.import_module("%s.%s" % (__name__, m.name)) for m in pkgutil.iter_modules(__path__)]
    return dict(sorted((name, x) for m in modules for name, x in vars(m).items() if isinstance(x, type) and hasattr(x, "install")))


def uses_before(folder):
    """What the processes of the run as it is saw of each call (seen.uses)."""
    out = {}
    for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(folder)), "0", "*.advise")):
        with open(path) as f:
            for place, trains in json.load(f)["uses"].items():
                out[place] = out.get(place, False) or trains
    return out


class Trial:
    """One run of the program: what is seen of it, and the changes in it."""

    def __init__(self, torch, recorder):
        from . import seen
        self.torch, self.recorder = torch, recorder
        self.seen = seen.Seen(torch, recorder.card)
        self.all = "CUFRAG_TRIALS" in os.environ
        self.seen.before = {} if self.all else uses_before(recorder.folder)
        self.install(os.environ.get("CUFRAG_CHANGES", ""))

    def install(self, text):
        self.seen.looks = self.all
        for name, _, number in (word.partition("=") for word in filter(None, text.split("+"))):
            self.seen.number = int(number or 0)
            changes()[name].install(self.torch, self.seen)

    def offers(self):
        """What every change says of this program."""
        out = []
        for name, change in changes().items():
            numerics, group = getattr(change, "NUMERICS", ""), getattr(change, "GROUP", "")
            row = {"name": name, "what": change.__doc__.rstrip("."), "where": "", "numerics": numerics, "left_out": "", "group": group,
                   "untimed": hasattr(change, "UNTIMED") or "torch._inductor.compile_fx" in sys.modules,
                   "compiled": (group == "blocks" or hasattr(change, "INSIDE")) and any(c.compiled for c in self.seen.calls)}
            try:
                found = change.applies(self.seen)
                if not found:  # a row only for those who name it
                    row["idle"] = True
                    raise Left("could not be tried: the run shows nothing that it could change; "
                               "where cufrag diagnose names a line, edit that")
                row["what"], row["where"], row["numerics"] = (*found, numerics)[:3]
                row["most"] = change.most(self.seen) if hasattr(change, "most") else 0
            except Exception as error:
                if os.environ.get("CUFRAG_CHANGES_DEBUG") and not isinstance(error, Left):
                    traceback.print_exc()
                row["left_out"] = str(error) if isinstance(error, Left) else "%s: %s" % (type(error).__name__, error)
            out.append(row)
        return out

    def finish(self, folder):
        """Before the recording is written."""
        facts = {"steps": self.seen.steps, "updated": self.seen.updated(), "moved": self.seen.moved, "uses": self.seen.uses,
                 "changes": self.offers() if self.all else []}
        path = os.path.join(folder, "%d.advise" % os.getpid())
        with open(path + ".tmp", "w") as f:
            json.dump(facts, f)
        os.replace(path + ".tmp", path)
