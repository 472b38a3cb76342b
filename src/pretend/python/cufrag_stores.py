# SPDX-License-Identifier: Apache-2.0
"""Finds the tensors that a Triton kernel writes, from its source, because kernels bypass the
dispatcher. A parameter is written if the kernel, or a function that it calls, stores to a pointer
derived from it. Pointers are followed through all assignments, in any order and under any
condition; a loaded value is not derived from a parameter, so arrays of indices are not written."""
import ast
import re

WRITES = re.compile("store|atomic|scatter|shared_to_global")
READS = re.compile("load|atomic|gather|global_to_shared")
DESCRIBE = {"block_shape", "dtype", "shape"}
known = {}  # by id of a Triton function: parameters written, parameters in the result, the function


def written(torch, kernel, args, named):
    given = dict(zip(kernel.arg_names, args), **named)
    return [t for name in flows(kernel)[0] for t in tensors(torch, given.get(name))]


def written_compiled(torch, compiled, args):
    source = getattr(compiled, "src", None)
    return written_in_order(torch, getattr(source, "fn", None), getattr(source, "signature", {}), args)


def written_by_inductor(torch, kernel, args):
    meta = getattr(kernel, "triton_meta", None) or kernel.meta  # PyTorch 2.1
    return written_in_order(torch, kernel.fn, meta["signature"], args)


def written_in_order(torch, kernel, signature, args):
    """signature: types by name or number of the parameter, as in Triton's compiler. Without kernel:
    it may write all."""
    pointers = [key if isinstance(key, str) else kernel.arg_names[key] for key, kind in signature.items() if str(kind).startswith(("*", "tensordesc"))]
    given = [a for a in args if tensors(torch, a)]
    return written(torch, kernel, (), dict(zip(pointers, given))) if kernel and len(pointers) == len(given) else tensors(torch, args)


def tensors(torch, value):
    """Tensors inside an argument: itself, in a tuple, or in a descriptor."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_cuda else []
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors(torch, v)]
    return tensors(torch, value.base) if hasattr(value, "base") else []


def flows(function):
    if id(function) not in known:  # it has no hash if Inductor got it from a worker
        try:
            found = Flow(function).follow()
        except Exception:  # no source, or not parsed: it may write all
            found = set(function.arg_names), set(function.arg_names)
        known[id(function)] = *found, function
    return known[id(function)]


class Flow:
    def __init__(self, function):
        self.function, self.tree = function, function.parse()
        self.made_of = {name: {name} for name in function.arg_names}  # parameters by local name
        self.written, self.result = set(), set()

    def follow(self):
        grown = True
        while grown:
            before = self.size()
            for node in ast.walk(self.tree):
                self.step(node)
            grown = self.size() > before
        return self.written, self.result

    def size(self):
        return sum(map(len, self.made_of.values())) + len(self.written) + len(self.result)

    def step(self, node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value:
            self.assign(node.target, node.value)
        elif isinstance(node, ast.For):
            self.assign(node.target, node.iter)
        elif isinstance(node, ast.Return) and node.value:
            self.result |= self.behind(node.value)
        elif isinstance(node, ast.Call):
            self.call(node)

    def assign(self, target, value):
        if isinstance(target, (ast.Tuple, ast.List)):
            same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for i, t in enumerate(target.elts):
                self.assign(t, value.elts[i] if same else value)
            return
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                self.made_of.setdefault(name.id, set()).update(self.behind(value))

    def call(self, node):
        callee, args = self.callee(node), [*node.args, *(k.value for k in node.keywords)]
        if callee:
            self.written |= self.passed(callee, node, flows(callee)[0])
        elif WRITES.search(name_of(node)):  # tl.store(pointer, ...), descriptor.store(...)
            self.written |= self.behind(node.func).union(*map(self.behind, args[:1]))
        elif isinstance(node.func, ast.Name) and node.func.id in self.made_of:  # an argument
            self.written.update(*map(self.behind, args))

    def passed(self, callee, node, names):
        """Parameters from which these arguments are derived."""
        given = dict(zip(callee.arg_names, node.args), **{k.arg: k.value for k in node.keywords})
        return set().union(*(self.behind(given[name]) for name in names if name in given))

    def behind(self, node):
        """Parameters from which an expression is derived."""
        if isinstance(node, ast.Name):
            return self.made_of.get(node.id, set())
        if isinstance(node, ast.Compare) or getattr(node, "attr", "") in DESCRIBE:
            return set()
        if isinstance(node, ast.Call):
            callee = self.callee(node)
            if callee:
                return self.passed(callee, node, flows(callee)[1])
            if READS.search(name_of(node)):
                return set()
        return set().union(*map(self.behind, ast.iter_child_nodes(node)))

    def callee(self, node):
        """The called Triton function, or None for builtins and unknown names."""
        names, at = [], node.func
        while isinstance(at, ast.Attribute):
            names.append(at.attr)
            at = at.value
        if not isinstance(at, ast.Name) or at.id in self.made_of:
            return None
        code = self.function.fn
        if code is None:  # from Inductor's worker: calls only builtins
            return None
        free = dict(zip(code.__code__.co_freevars, code.__closure__ or ()))
        found = free[at.id].cell_contents if at.id in free else code.__globals__.get(at.id)
        for name in reversed(names):
            found = getattr(found, name, None)
        return found if hasattr(found, "arg_names") and hasattr(found, "parse") else None


def name_of(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))
