# SPDX-License-Identifier: Apache-2.0
"""Static CUDA runtimes in the program's libraries: nvcc links the runtime statically by default,
and CuPy's wheels have it so.

Such a runtime needs a driver with more than the public calls, so its functions are replaced in
memory (static_runtime.c). That patches foreign code, hence the rules. A function is replaced if

* its library is not NVIDIA's;
* the library contains a whole runtime, by its symbol table: functions with names of the runtime
  that it does not export, among them the one that registers kernels. An exported cudaMalloc is the
  library's own;
* its name is public in NVIDIA's headers (runtime_names.csv), and it is long enough for the jump;
* the memory equals the file: this file was loaded, and the function was not patched by others.

A stripped library is left alone, and finds no card.
"""
import contextlib
import ctypes
import os
import re
import struct
import threading

import cufrag_stubs

NVIDIAS = re.compile(r"lib(cuda\.so|cudart[.-]|cudnn|cublas|cudss|cufft|cufile|cupti|curand|cusolver|cusparse|cutensor|nccl|npp[cis]|nvblas|nvcomp|"
                     r"nvfatbin|nvidia-|nvinfer|nvjpeg|nvjitlink|nvperf|nvrtc|nvshmem|nvtoolsext)", re.IGNORECASE)
REGISTERS, COUNTS = b"__cudaRegisterFatBinary", b"cudaGetDeviceCount"
SYMBOLS, FUNCTION, EXECUTED = 2, 2, 4
FATBIN = 24  # size of nvcc's descriptor of a source file


class Libraries:
    def __init__(self, core):
        self.core, self.lock, self.seen = ctypes.CDLL(core), threading.RLock(), set()
        self.core.frag_pretend_loaded.restype = ctypes.c_char_p
        self.published = {name.encode() for name in cufrag_stubs.runtime_names()}

    def look(self):
        """Patches libraries loaded since the last call. The core is called without the GIL."""
        with self.lock:
            loaded = os.fsdecode(self.core.frag_pretend_loaded()).split("\n")
            for line in [one for one in loaded if one not in self.seen]:
                self.seen.add(line)
                base, _, path = line.partition(" ")
                if path and not NVIDIAS.match(os.path.basename(path)):
                    with contextlib.suppress(OSError, ValueError, IndexError, struct.error):
                        self.adopt(cufrag_stubs.content_of(path), int(base, 16))

    def adopt(self, data, base):
        sections = cufrag_stubs.sections_of(data)
        table = next((s for s in sections if s.kind == SYMBOLS), None)
        strings = part(data, sections[table.link]) if table else b""
        if REGISTERS not in strings:
            return
        found = self.functions(part(data, table), strings)
        if REGISTERS not in found or COUNTS not in found or b"cudaBindTexture" in found:  # CUDA 11
            return
        replaced, major = False, 12 if b"cudaGetDeviceProperties_v2" in found else 13
        for name, (section, value, size) in found.items():
            s = sections[section]
            at = s.offset + value - s.address
            replaced |= s.flags & EXECUTED and self.core.frag_pretend_replace(
                ctypes.c_void_p(base + value), data[at:at + size], ctypes.c_size_t(size), name, major)
        end = max(s.address + s.size for s in sections)
        for s in sections:
            if replaced and s.name == ".nvFatBinSegment":
                self.core.frag_pretend_adopt(*(ctypes.c_uint64(n) for n in (base, base + end, base + s.address, s.size // FATBIN)))

    def functions(self, table, strings):
        """{name: (section, address, bytes)} of public names that are not exported."""
        found = {}
        for at, info, other, section, value, size in struct.iter_unpack("<IBBHQQ", table):
            if info & 15 == FUNCTION and section and (info >> 4 == 0 or other & 3):
                name = strings[at:strings.index(b"\0", at)]
                if name in self.published:
                    found[name] = section, value, size
        return found


def part(data, section):
    return data[section.offset:section.offset + section.size]
