# SPDX-License-Identifier: Apache-2.0
"""--ranks roles: finds identical ranks of a job, and plays the messages of those that do not run.

A job makes its groups in families: lists of ranks of equal size, each rank in at most one
(data-parallel groups, pipelines ...). If members of a family send point-to-point messages, each
has a part of its own, a stage. The same holds for context parallelism, where attention differs
between parts of a sequence. In all other families the members are identical. So a rank's role is
its index in each family of stages, and one rank of each role runs: those that rank 0 reaches
through stages, all with rank 0's index in every other family.

Two runs (src/pretend/start/roles.c): a scout, rank 0 alone, finds the families and ends at its
first optimizer step. (Without any group, ranks are independent, and rank 0 stands for all.) Then
one rank of each role runs, and a few more that should equal one of them (checks). A rank that
does not run is played by the one of its role: its messages are the role's.

$CUFRAG_PRETEND_ROLES, written by the scout:

    next RANK            all of the job; ranks connected by stages are adjacent
    runs RANK            one process
    stands RANK RANKS    RANK runs for all these, as 0-7,64-71
    checks RANK ROLE     RANK runs in addition to the rank of its role
    groups COUNT HASH    the job's groups until the scout ended, and why it ended; if they differ in
                         a job that reuses these roles, rank 0 leaves a file `unlike` beside its
                         recording
"""
import atexit
import ctypes
import hashlib
import inspect
import os
import re
import time

import cufrag_protocol as protocol
import cufrag_recorder
from cufrag_hooks import replace

CHECKS_MOST = max(1, min(2, len(os.sched_getaffinity(0)) - 1))  # a processor each
OWN_PART = re.compile(r"(mesh_)?(cp|context_parallel(_group)?)", re.I)  # in meshes, Megatron
TOGETHER_MOST = 16  # checks double the processes of pipelines: at most so many
PATIENCE_S = 60


def end_scout(status=0):
    import posix  # no exit handlers, so nothing is recorded
    cufrag_recorder.Recorder.of_process.tell_late_modules()
    posix._exit(status)


class Groups:
    """All groups that the program makes, including those without this rank."""

    def __init__(self, c10d, world, on_group=None):
        self.names, self.lists, self.own, self.world, self.on_group = {}, [], set(), world, on_group
        original = c10d._new_process_group_helper
        signature = inspect.signature(original)
        size, _, ranks, backend = list(signature.parameters)[:4]
        signature.parameters["group_name"]  # raises if a release renames it; its position differs

        def helper(*args, **kwargs):
            given = signature.bind(*args, **kwargs).arguments
            self.note(list(given[ranks]) or list(range(given[size])), str(given[backend]), str(given["group_name"]), str(given.get("group_desc")))
            return original(*args, **kwargs)
        c10d._new_process_group_helper = helper

    def note(self, ranks, backend, name, kind):
        self.names[name] = ranks
        self.lists.append((ranks, backend, kind))
        if OWN_PART.fullmatch(kind):
            self.own.add(tuple(ranks))

    def own_part(self, ranks):
        """Is it a context-parallel group? Its members differ anyway, so its messages say nothing
        about stages."""
        return tuple(ranks) in self.own

    def hash(self, stage_lists):
        return hashlib.sha256(repr((self.lists, stage_lists)).encode()).hexdigest()[:32]

    def families(self):
        """[{rank: its list}]: each list joins the first family of its kind without its ranks; and
        the families in OWN_PART."""
        by_kind = {}
        for ranks, backend, kind in self.lists:
            if len(ranks) < 2 or len(ranks) == self.world and not OWN_PART.fullmatch(kind):
                continue
            fitting = by_kind.setdefault((backend, kind, len(ranks)), [])
            family = next((f for f in fitting if not any(r in f for r in ranks)), None)
            if family is None:
                family = {}
                fitting.append(family)
            family.update((r, ranks) for r in ranks)
        unique, own = [], []
        for (_, kind, _), fitting in by_kind.items():
            unique += (f for f in fitting if f not in unique)
            if OWN_PART.fullmatch(kind):
                own += fitting
        return unique, own


def reached(start, stages):
    """All ranks reachable from `start` through these families."""
    if len(stages) < 2:
        return sorted(stages[0].get(start, [start])) if stages else [start]
    found, open_ends = {start}, [start]
    while open_ends:
        rank = open_ends.pop()
        for family in stages:
            new = set(family.get(rank, ())) - found
            found |= new
            open_ends.extend(new)
    return sorted(found)


def shown(ranks):
    """0-7,64-71"""
    parts = []
    for r in ranks:
        if parts and parts[-1][1] == r - 1:
            parts[-1][1] = r
        else:
            parts.append([r, r])
    return ",".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in parts)


def stages_of(families, own, stage_lists, world):
    """Families of stages: for each list, the family with the shortest list that contains its
    ranks."""
    found = []
    for ranks in stage_lists:
        having = [f[ranks[0]] for f in families if set(ranks) <= set(f.get(ranks[0], ()))]
        if not having:
            return [dict.fromkeys(range(world), list(range(world)))]
        found.append(min(having, key=len))
    return [f for f in families if f in own or any(f.get(ranks[0]) == ranks for ranks in found)]


def lines_of(families, own, stage_lists, world):
    """The scout's results as lines of the file."""
    stages = stages_of(families, own, stage_lists, world)

    def role(rank):
        return tuple(f[rank].index(rank) if rank in f else -1 for f in stages)
    running = reached(0, stages)
    members = {}
    for rank in range(world):
        members.setdefault(role(rank), []).append(rank)
    runs = {role(r): r for r in running}
    for r in sorted(members):
        runs.setdefault(r, members[r][0])
    checks = {}
    lists = sorted((f[0] for f in families if f not in stages and 0 in f), key=len, reverse=True)
    others = list(dict.fromkeys(ranks[-1] for ranks in lists)) or [world - 1] * (not stages)
    for rank in others[:1 if stages else CHECKS_MOST]:
        beside = [r for r in reached(rank, stages) if r not in runs.values()]
        if not stages or len(runs) + len(checks) + len(beside) <= TOGETHER_MOST:
            checks.update((r, runs[role(r)]) for r in beside)
    order = list(dict.fromkeys(r for start in range(world) for r in reached(start, stages)))
    return (["next %d" % r for r in order] + ["runs %d" % r for r in sorted(set(runs.values()) | set(checks))] +
            ["stands %d %s" % (runs[r], shown(members[r])) for r in sorted(members, key=lambda r: runs[r])] +
            ["checks %d %d" % c for c in sorted(checks.items())])


def at_first(c10d, groups, world, then):
    """Calls then(stage_lists) once groups exist: at the first optimizer step, or the first
    point-to-point message, of this rank's group; ring attention sends before a pipeline does. A
    group of all ranks has no stages: then only sender and receiver count (DeepSpeed's
    pipelines)."""
    def watch(name, other):
        original = getattr(c10d, name)
        signature = inspect.signature(original)

        def single(*args, **kwargs):
            given = signature.bind(*args, **kwargs).arguments
            group, peer = given.get("group"), given.get(other)
            ranks = list(range(world)) if group is None else c10d.get_process_group_ranks(group)
            if peer is None and given.get("group_" + other) is not None:
                peer = ranks[given["group_" + other]]
            if not groups.own_part(ranks):
                then([ranks if len(ranks) < world or peer is None else sorted((c10d.get_rank(), peer))])
            return original(*args, **kwargs)
        single.__name__ = name
        replace(original, single)
    for name, other in (("send", "dst"), ("recv", "src"), ("isend", "dst"), ("irecv", "src")):
        watch(name, other)
    from torch.optim.optimizer import register_optimizer_step_post_hook
    register_optimizer_step_post_hook(lambda *_: then([]))


class Scout:
    """In rank 0, which runs alone: ends the program at its first optimizer step or point-to-point
    message. A program without either (generation) runs to its end."""

    def __init__(self, c10d, path, world):
        self.path, self.c10d, self.world = path, c10d, world
        self.groups = Groups(c10d, world)
        at_first(c10d, self.groups, world, self.finish)
        atexit.register(self.write, [])
        leave, pid = os._exit, os.getpid()

        def end(status):
            if os.getpid() == pid:  # not in a child process
                self.write([])
            leave(status)
        os._exit = end

    def finish(self, stage_lists):
        if self.groups.lists:
            self.write(stage_lists)
            end_scout()

    def write(self, stage_lists):
        path = self.path if self.groups.lists else self.path + ".alone"  # or a helper process
        with open(path + ".new", "w") as f:
            f.write("\n".join(lines_of(*self.groups.families(), stage_lists, self.world)) + "\n")
            f.write("groups %d %s\n" % (len(self.groups.lists), self.groups.hash(stage_lists)))
        os.replace(path + ".new", path)


class Players:
    """In a rank of a role: which ranks run, and which rank plays each."""

    def __init__(self, card, c10d, path, world):
        self.role, self.running = {}, set()
        self.rank, self.world = int(os.environ["RANK"]), world
        self.groups = Groups(c10d, world)
        with open(path) as f:
            for words in (line.split() for line in f):
                if words[0] == "runs":
                    self.running.add(int(words[1]))
                elif words[0] == "groups" and self.rank == 0:
                    self.first, self.expected = None, words[2]
                    at_first(c10d, self.groups, world, self.note_first)
                    atexit.register(self.compare)
                elif words[0] == "stands":
                    for part in words[2].split(","):
                        first, _, last = part.partition("-")
                        self.role.update((r, int(words[1])) for r in range(int(first), int(last or first) + 1))
        self.folder, self.core = protocol.PRETEND_TALK, card.library()

    def note_first(self, stage_lists):
        self.first = self.first or self.groups.hash(stage_lists)

    def compare(self):
        if self.groups.lists and (self.first or self.groups.hash([])) != self.expected:
            open(os.path.join(protocol.RECORD, "unlike"), "w").close()

    def plays(self, ranks):
        """For each member the index of the rank that plays it: itself, the member of its role, else
        this rank."""
        own = ranks.index(self.rank) if self.rank in ranks else 0
        place = {r: i for i, r in enumerate(ranks) if r in self.running}
        return [place.get(r, place.get(self.role.get(r), own)) for r in ranks]

    def introduce(self, name, ranks):
        """Call before the communicator of this name is made."""
        plays = self.plays(ranks)
        self.core.frag_pretend_players(bytes(name), (ctypes.c_int * len(plays))(*plays), len(plays))

    def group_of(self, key):
        parts = key.split("//")
        ranks = self.groups.names.get(parts[1]) if len(parts) > 3 else None
        return ranks or list(range(self.world))

    def path(self, key):
        return os.path.join(self.folder, "key." + hashlib.sha256(key.encode()).hexdigest()[:32])

    def set(self, key, value):
        path = self.path(key)
        with open("%s.%d" % (path, self.rank), "wb") as f:
            f.write(value)
        os.replace("%s.%d" % (path, self.rank), path)
        self.meet(key, value)

    def meet(self, key, value):
        """128-byte values under a group's keys are names of communicators; pairs have their own:
        "low:high"."""
        low, _, high = key.rpartition("/")[2].partition(":")
        ranks = self.group_of(key)
        if len(value) != 128 or "//" not in key:
            return
        if low.isdigit() and high.isdigit() and int(high) < len(ranks):
            ranks = [ranks[int(low)], ranks[int(high)]]
        self.introduce(value[:16], ranks)

    def root_of(self, key):
        """The rank that sets a key. Large communicators have a name for about every 128 ranks, set
        by the first of them."""
        ranks, (low, _, high) = self.group_of(key), key.rpartition("/")[2].partition(":")
        if low == "UniqueNCCLID" and high.isdigit():
            names = -(-len(ranks) // max(1, int(os.environ.get("TORCH_NCCL_RANKS_PER_ROOT", 128))))
            each, more = divmod(len(ranks), names)
            return ranks[min(int(high) * each + min(int(high), more), len(ranks) - 1)]
        return ranks[int(low) if high and low.isdigit() and int(low) < len(ranks) else 0]

    def get(self, key):
        """The value set by a rank that runs; otherwise at once a value that is the same for all."""
        root, path = self.root_of(key), self.path(key)
        until = time.monotonic() + (PATIENCE_S if root in self.running and root != self.rank and "//" in key else 0)
        while not os.path.exists(path):
            if time.monotonic() > until:
                value = hashlib.sha256(key.encode()).digest() * 4  # the same in all processes
                break
            time.sleep(0.002)
        else:
            with open(path, "rb") as f:
                value = f.read()
        self.meet(key, value)
        return value
