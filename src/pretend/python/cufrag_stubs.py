# SPDX-License-Identifier: Apache-2.0
"""Libraries that stand for CUDA's, made for one unpacked PyTorch (or any folder of programs).

make(folder, out, core) reads which CUDA libraries the shared objects of a folder need, and which
functions with which symbol versions, and writes one small library for each into `out`: every
function jumps to libcufrag_pretend.so (`core`). Other packages with kernels call more than PyTorch
does, so if wheels of the CUDA libraries are installed, all their exports are included. No compiler
is needed; an object has these parts, in one page-aligned segment that the loader reads, executes
and (the table of addresses) writes:

    ELF header, program headers, .dynsym, .dynstr, .hash, .gnu.version, .gnu.version_d,
    .gnu.version_r?, .rela.dyn, code, .dynamic, table of addresses

x86-64 only.
"""
import collections
import ctypes
import functools
import glob
import mmap
import os
import re
import struct
import sys

SYSTEM = re.compile(r"^(ld-linux|lib(c|dl|gcc_s|m|pthread|rt|stdc\+\+|gomp|z|numa|util|gfortran|quadmath|mpi\w*|ibverbs|mlx5)"
                    r"(-[0-9a-f]+)?\.so)")
# owners of functions that are requested without a version
OWNERS = (("cublasLt", "libcublasLt"), ("cublas", "libcublas"), ("cudnn", "libcudnn"), ("cufft", "libcufft"),
          ("curand", "libcurand"), ("cusparseLt", "libcusparseLt"), ("cusparse", "libcusparse"),
          ("cusolver", "libcusolver"), ("pnccl", "libnccl"), ("nccl", "libnccl"), ("nvrtc", "libnvrtc"),
          ("cupti", "libcupti"), ("nvshmem", "libnvshmem"), ("cuFile", "libcufile"), ("nvml", "libnvidia-ml"),
          ("nvtx", "libnvToolsExt"), ("cuda", "libcudart"), ("__cuda", "libcudart"))
DRIVER, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
# parts of cuDNN by major version: PyTorch does not ask for them, others link or load them
CUDNN_PARTS = {"8": "ops_infer ops_train cnn_infer cnn_train adv_infer adv_train",
               "9": "ops cnn adv graph heuristic engines_precompiled engines_runtime_compiled"}
# what Triton's driver module links against, beside the entries of the core
TRITON = """cuCtxDestroy_v2 cuCtxSetCurrent cuCtxSetLimit cuDevicePrimaryCtxRelease_v2
    cuDevicePrimaryCtxReset_v2 cuEventDestroy_v2 cuFuncSetAttribute cuFuncSetCacheConfig cuInit
    cuLaunchKernelEx cuLaunchKernelExHandle cuMemSetAccess cuModuleGetGlobal_v2 cuModuleUnload
    cuPointerGetAttributes cuStreamDestroy_v2 cuTensorMapEncodeTiled
    cuTensorMapEncodeIm2col""".split()
# functions that cuDNN looks up in the driver when it plans; with all of them it proposes more
# kernels
CUDNN = """cuCtxGetCurrent cuCtxGetLimit cuCtxPopCurrent cuCtxPushCurrent cuDeviceGet
    cuDeviceGetCount cuDriverGetVersion cuGetErrorName cuGetErrorString cuGetProcAddress cuInit
    cuKernelGetAttribute cuKernelGetFunction cuKernelSetAttribute cuLaunchCooperativeKernel
    cuLaunchKernel cuLaunchKernelEx cuLibraryGetKernel cuLibraryLoadData cuLibraryLoadFromFile
    cuLibraryUnload cuLinkAddData cuLinkComplete cuLinkCreate cuLinkDestroy
    cuOccupancyMaxPotentialClusterSize cuStreamGetCtx""".split()
UNKNOWN = "frag_pretend_unknown"  # gets the name of the function that is missing
DYNSYM, DYNAMIC, FUNCTION = 11, 6, 2  # kinds of sections; of a symbol
NO_CARD, NO_DEVICE = "no_card", 100  # folder of a driver without cards; CUDA_ERROR_NO_DEVICE


Section = collections.namedtuple("Section", "name kind flags address offset size link")


def content_of(path):
    """Of a file, without reading it."""
    with open(path, "rb") as f:
        return mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) if os.path.getsize(path) else b""


def text_at(data, at):
    return data[at:data.find(b"\0", at)].decode("latin-1")


def sections_of(data):
    """Of an ELF file; none for other files."""
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    offset, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQI", data, offset + i * size) for i in range(count)]
    return [Section(text_at(data, rows[names][4] + row[0]), *row[1:]) for row in rows]


class Elf:
    """Dynamic part of a 64-bit shared object: needed, undefined and exported functions {name:
    version}, files of versions, defined."""

    def __init__(self, path):
        self.needed, self.undefined, self.exported, self.defined, self.owner = [], {}, {}, set(), {}
        self.data = content_of(path)
        sections = sections_of(self.data)
        by_kind = {s.kind: s for s in sections}
        if not {DYNSYM, DYNAMIC} <= by_kind.keys():
            return
        kinds = DYNSYM, DYNAMIC, 0x6fffffff, 0x6ffffffe, 0x6ffffffd
        symbols, dynamic, versions, needs, gives = (
            by_kind.get(kind, Section("", *[0] * 6)) for kind in kinds)
        self.strings = sections[symbols.link].offset
        self.needed = [self.text(value) for tag, value in struct.iter_unpack("<qQ", self.bytes_of(dynamic)) if tag == 1]
        names = {**self._needs(needs.offset), **self._gives(gives.offset)}
        for i, (name, info, _, shndx, _, _) in enumerate(struct.iter_unpack("<IBBHQQ", self.bytes_of(symbols))):
            if not name:
                continue
            number = struct.unpack_from("<H", self.data, versions.offset + 2 * i)[0] & 0x7fff if versions.size else 0
            name = self.text(name)
            if not shndx:
                self.undefined[name] = names.get(number)
                continue
            self.defined.add(name)
            if info & 15 == FUNCTION:
                self.exported[name] = names.get(number)

    def text(self, at):
        return text_at(self.data, self.strings + at)

    def bytes_of(self, section):
        return self.data[section.offset:section.offset + section.size]

    def _chain(self, form, at):
        """Entries with where they are; the last field is how far the next one is, 0 in the last."""
        step = at
        while step:
            row = struct.unpack_from(form, self.data, at)
            yield (at, *row)
            step = row[-1]
            at += step

    def _needs(self, offset):
        """.gnu.version_r: number -> version; its file goes into owner."""
        names = {}
        for at, _, _, file, aux, _ in self._chain("<HHIII", offset):
            for _, _, _, number, name, _ in self._chain("<IHHII", at + aux):
                names[number] = self.text(name)
                self.owner[names[number]] = self.text(file)
        return names

    def _gives(self, offset):
        """.gnu.version_d: number -> version, without the file's own name."""
        rows = self._chain("<HHHHIII", offset)
        return {number: self.text(struct.unpack_from("<I", self.data, at + aux)[0])
                for at, _, flags, number, _, _, aux, _ in rows if not flags & 1}


def owner_of(name):
    for prefix, library in OWNERS:
        if name.startswith(prefix):
            return library
    return "libcuda" if re.match(r"cu[A-Z]", name) else None


def survey(folder):
    """{soname: {function: version or None}} for all shared objects of the folder."""
    paths = sorted(os.path.join(folder, f) for f in os.listdir(folder) if ".so" in f)
    paths = [p for p in paths if os.path.isfile(p)]
    objects = [Elf(p) for p in paths]
    own = {os.path.basename(p) for p in paths}
    needed = {n for o in objects for n in o.needed if not SYSTEM.match(n) and n not in own}
    defined = set().union(*(o.defined for o in objects)) if objects else set()
    table = {n: {} for n in sorted(needed | {DRIVER, NVML})}
    for o in objects:
        enter(table, o, defined)
    by_name = set(TRITON).union(*(words(p) for p in paths if re.search(r"(c10_cuda|torch_cuda|nvrtc)\.so", p)))
    for word in by_name:  # looked up at run time
        table[NVML if word.startswith("nvml") else DRIVER].setdefault(word, None)
    for soname, functions in table.items():
        if cudart_major(soname) >= 12:  # all public functions, for other packages with kernels
            for name in runtime_names():
                functions.setdefault(name, soname)
    for soname in [s for s in table if s.startswith("libcudnn.so.")]:
        for part in CUDNN_PARTS.get(soname.rpartition(".")[2], "").split():
            table["libcudnn_%s%s" % (part, soname[len("libcudnn"):])] = {}
    for path in wheels(folder):
        complete(table, path)
    return table


def enter(table, o, defined):
    """What an object needs of the libraries in the table."""
    for name, version in o.undefined.items():
        if version is not None:
            if o.owner.get(version) in table:
                table[o.owner[version]][name] = version
        elif name not in defined:
            library = owner_of(name)
            soname = next((s for s in table if library and s.startswith(library + ".so")), None)
            if soname:
                table[soname].setdefault(name, None)


def runtime_names():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime_names.csv")) as f:
        return f.read().split()[1:]


def wheels(folder):
    """CUDA's own libraries and the driver's header, where pip installs them beside PyTorch; and
    copies bundled by other packages, NAME.libs/libcudart-0a1b2c3d.so.12 or
    libcudart.0a1b2c3d.so.12. CUDA 11's runtime differs."""
    stems = {library for _, library in OWNERS}
    found = {}
    for beside in (os.path.dirname(os.path.dirname(folder)), *sys.path):  # also in another venv
        for p in glob.glob(os.path.join(beside, "*.libs", "*.so.*")):
            if re.split(r"[-.]", os.path.basename(p))[0] in stems and not 0 < cudart_major(p) < 12:
                found[p] = None
        for p in glob.glob(os.path.join(beside, "nvidia", "*", "lib", "*.so.*")) + \
                glob.glob(os.path.join(beside, "nvidia", "*", "include", "cuda.h")):
            if os.path.basename(p).split(".so")[0].split("_")[0] in stems or p.endswith(".h"):
                found[p] = None
    return sorted(found)


def complete(table, path):
    if path.endswith(".h"):
        with open(path, errors="replace") as f:
            for word in re.findall(r"\bcu[A-Z]\w+", f.read()):
                table[DRIVER].setdefault(word, None)
        return
    functions = table.setdefault(os.path.basename(path), {})
    for name, version in Elf(path).exported.items():
        if owner_of(name):
            functions.setdefault(name, version)


def words(path):
    """Names of driver and NVML functions in a file's read-only data."""
    data, pattern = content_of(path), re.compile(rb"\0((?:cu[A-Z]|nvml[A-Z])[A-Za-z0-9]+(?:_v[0-9])?)(?=\0)")
    found = {m[1].decode() for s in sections_of(data) if s.name.startswith(".rodata") for m in pattern.finditer(data, s.offset, s.offset + s.size)}
    return {w for w in found if owner_of(w) in ("libcuda", "libnvidia-ml")}


# ---- writing ----------------------------------------------------------------------------------

def elf_hash(name):
    h = 0
    for c in name.encode():
        h = (h << 4) + c
        g = h & 0xf0000000
        h = (h ^ g >> 24) & ~g & 0xffffffff
    return h


class Strings:
    def __init__(self):
        self.data, self.at = bytearray(b"\0"), {"": 0}

    def add(self, text):
        if text not in self.at:
            self.at[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.at[text]


def align(n, to):
    return (n + to - 1) // to * to


def pack(form, rows):
    return b"".join(struct.pack(form, *row) for row in rows)


def versions_defined(soname, versions, strings):
    """.gnu.version_d: number 1 is the file itself."""
    out, names = b"", [soname] + versions
    for i, name in enumerate(names):
        last = i + 1 == len(names)
        out += struct.pack("<HHHHIII", 1, 1 if i == 0 else 0, i + 1, 1, elf_hash(name), 20, 0 if last else 28)
        out += struct.pack("<II", strings.add(name), 0)
    return out


def hash_table(names, first):
    """.hash of symbols, of which `names` are the last: a bucket per symbol keeps lookups short."""
    count = first + len(names)
    buckets, chains = [0] * count, [0] * count
    for i, name in enumerate(names, first):
        b = elf_hash(name) % count
        chains[i], buckets[b] = buckets[b], i
    return struct.pack("<%dI" % (2 + 2 * count), count, count, *buckets, *chains)


def code_of(slots, texts, at):
    """16 bytes for each function at address `at`: "jmp *slot"; with a text, which is its name, that
    is passed. slot 0: "return CUDA_ERROR_NO_DEVICE"."""
    out = bytearray()
    for slot, text in zip(slots, texts):
        code, where = b"", at + len(out)
        if text:
            code = b"\x48\x8d\x3d" + struct.pack("<i", text - (where + 7))  # lea text(%rip), %rdi
        if slot:
            code += b"\xff\x25" + struct.pack("<i", slot - (where + len(code) + 6))  # jmp *slot
        else:
            code = b"\xb8" + struct.pack("<i", NO_DEVICE) + b"\xc3"  # mov $100, %eax; ret
        out += code.ljust(16, b"\0")
    return out


# of each part, in their order
ALIGNMENT = {"sym": 8, "str": 1, "hash": 8, "ver": 2, "verdef": 8, "rela": 8, "code": 16, "dynamic": 4096, "slots": 1}


def library(soname, functions, target, core):
    """Bytes of a shared object. functions: {name: version or None}; target(name) -> symbol of core.
    Without a core, each function returns CUDA_ERROR_NO_DEVICE."""
    names = sorted(functions)
    goals = [target(n) for n in names] if core else []
    targets = sorted({*goals, UNKNOWN}) if core else []
    versions = sorted({v for v in functions.values() if v})
    strings = Strings()
    symbols = [(0, 0)] + [(strings.add(t), 0) for t in targets]  # name, version number
    first = len(symbols)
    symbols += [(strings.add(n), 2 + versions.index(functions[n]) if functions[n] else 1) for n in names]
    verdef = versions_defined(soname, versions, strings)
    name_at, needed_at, origin_at = map(strings.add, (soname, os.path.basename(core or ""), "$ORIGIN"))
    size = {"sym": 24 * len(symbols), "str": len(strings.data), "hash": 8 + 8 * len(symbols),
            "ver": 2 * len(symbols), "verdef": len(verdef), "rela": 24 * len(targets),
            "code": 16 * len(names), "dynamic": 16 * 16, "slots": 8 * len(targets)}
    place, at = {}, 64 + 56 * 4
    for part, to in ALIGNMENT.items():
        place[part] = at = align(at, to)
        at += size[part]
    slot = {t: place["slots"] + 8 * i for i, t in enumerate(targets)}
    values = [place["code"] + 16 * max(0, i - first) for i in range(len(symbols))]
    dynamic = [(1, needed_at)] * bool(core) + [
        (14, name_at), (29, origin_at), (4, place["hash"]), (5, place["str"]), (6, place["sym"]), (10, len(strings.data)), (11, 24),
        (7, place["rela"]), (8, 24 * len(targets)), (9, 24), (0x6ffffff0, place["ver"]), (0x6ffffffc, place["verdef"]),
        (0x6ffffffd, 1 + len(versions)), (0, 0)]
    content = {
        "sym": pack("<IBBHQQ", ((name, 0x12, 0, 1, values[i], 16) if i >= first else (name, 0x12 if i else 0, 0, 0, 0, 0)
                                for i, (name, _) in enumerate(symbols))),
        "str": strings.data, "hash": hash_table(names, first), "ver": pack("<H", ((version,) for _, version in symbols)),
        "verdef": verdef, "rela": pack("<QQq", ((slot[t], (1 + i) << 32 | 6, 0) for i, t in enumerate(targets))),  # R_X86_64_GLOB_DAT
        "code": code_of([slot[goal] for goal in goals] or [0] * len(names),
                        [goal == UNKNOWN and place["str"] + strings.at[n] for n, goal in zip(names, goals or names)], place["code"]),
        "dynamic": pack("<QQ", dynamic)}
    out = bytearray(at)
    for part, data in content.items():
        out[place[part]:place[part] + len(data)] = data
    end_of_code, start = place["code"] + size["code"], place["dynamic"]
    headers = [(1, 5, 0, end_of_code, 4096), (1, 6, start, at - start, 4096), (2, 6, start, 16 * len(dynamic), 8), (0x6474e551, 6, 0, 0, 16)]
    out[64:64 + 56 * 4] = pack("<IIQQQQQQ", ((kind, flags, where, where, where, n, n, to) for kind, flags, where, n, to in headers))
    count, sections = section_table(place, size, 1 + len(versions), at)
    struct.pack_into("<16sHHIQQQIHHHHHH", out, 0, b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, align(at, 8), 0, 64, 56, 4, 64, count, count - 1)
    return bytes(out).ljust(align(at, 8), b"\0") + sections


def no_card(out, functions):
    """Writes a driver that finds no card: each function returns that error."""
    os.makedirs(out, exist_ok=True)
    for soname in (DRIVER, "libcuda.so"):
        with open(os.path.join(out, soname), "wb") as f:
            f.write(library(soname, dict.fromkeys([*functions, *CUDNN]), None, None))


def section_table(place, size, versions, end):
    """A stub for linkers, not the loader: Triton and C++ extensions link against these libraries.
    `end`: the output.

    The code is section 1, as the symbols say. The last section has the section names.
    """
    rows = [(".text", 1, 6, "code", 0, 0, 16, 0), (".dynsym", 11, 2, "sym", 3, 1, 8, 24), (".dynstr", 3, 2, "str", 0, 0, 1, 0),
            (".hash", 5, 2, "hash", 2, 0, 8, 4), (".gnu.version", 0x6fffffff, 2, "ver", 2, 0, 2, 2),
            (".gnu.version_d", 0x6ffffffd, 2, "verdef", 3, versions, 8, 0), (".dynamic", 6, 3, "dynamic", 3, 0, 8, 16)]
    names = Strings()
    head = bytes(64) + pack("<IIQQQQIIQQ", ((names.add(name), kind, flags, place[where], place[where], size[where], link, more, to, entry)
                                            for name, kind, flags, where, link, more, to, entry in rows))
    at = align(end, 8) + len(head) + 64
    head += struct.pack("<IIQQQQIIQQ", names.add(".shstrtab"), 3, 0, 0, at, len(names.data), 0, 0, 1, 0)
    return len(rows) + 2, head + bytes(names.data)


def cudart_major(path):
    m = re.match(r"libcudart(?:[-.]\w+)?\.so\.(\d+)", os.path.basename(path))
    return int(m.group(1)) if m else 0


def instead(folder, path):
    """A replacement for a CUDA library that the program loads by path (Transformer Engine); the
    loader only knows those of the folder by name."""
    if isinstance(path, (str, os.PathLike)) and os.path.dirname(path):
        for name in os.path.basename(path), os.path.basename(os.path.realpath(path)):
            m = re.match(r"lib\w+\.so\.\d+", name)
            ours = os.path.join(folder, m.group(0) if m else name)
            if name.startswith("lib") and os.path.exists(ours):
                return ours
    return path


def make(folder, out, core):
    """Writes all libraries; returns their names, dependencies first."""
    table = survey(folder)
    entries = Elf(core).defined
    for entry in entries:  # all known functions of driver and NVML can be looked up
        m = re.match(r"frag_pretend_((cu[A-Z]|nvml[A-Z]).*)", entry)
        if m:
            table[NVML if m.group(1).startswith("nvml") else DRIVER].setdefault(m.group(1), None)
    table["libcuda.so"] = table[DRIVER]  # PyTorch 2.1.0's name for it, and Triton links -lcuda
    known = ctypes.CDLL(core).frag_pretend_is_nothing
    known.restype = ctypes.c_bool

    def target(soname, name):
        for form in ("frag_pretend%d_%s" % (cudart_major(soname) or 13, name), "frag_pretend_" + name):
            if form in entries:
                return form
        return "frag_pretend_nothing" if known(name.encode()) else UNKNOWN
    os.makedirs(out, exist_ok=True)
    link = os.path.join(out, os.path.basename(core))
    if not os.path.exists(link):
        os.symlink(os.path.abspath(core), link)
    for soname, functions in table.items():
        if functions or soname not in (NVML,):
            with open(os.path.join(out, soname), "wb") as f:
                f.write(library(soname, functions, functools.partial(target, soname), core))
    no_card(os.path.join(out, NO_CARD), table[DRIVER])
    return sorted(table)
