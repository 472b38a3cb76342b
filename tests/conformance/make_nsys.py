#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes samples/nsys: what `nsys export --type sqlite` makes of a run with --cuda-memory-usage=true, cut to the tables around
memory, with the columns of its published schema.
    make_nsys.py OUT
A stream-ordered pool with its requests, device and managed memory, a page-locked host buffer, what a module takes, on two cards."""
import os
import sqlite3
import sys

DEVICE, HOST, MANAGED, STATIC = 2, 1, 4, 5
rows = [  # start ns, device, address, bytes, kind, operation, name, stream, pool
    (812345678, 0, 139637976727552, 2097152, STATIC, 0, "module", None, None),
    (813000000, 0, 139637978824704, 1048576, DEVICE, 0, None, None, None),
    (813500000, 0, 139637980921856, 4096, HOST, 0, None, None, None),
    (814000000, 0, 139638000000000, 30000128, DEVICE, 0, None, 13, 42949672960),
    (814200000, 0, 139638040000000, 12345678, DEVICE, 0, None, 13, 42949672960),
    (814300000, 1, 139640000000000, 777, DEVICE, 0, None, 7, None),
    (815000000, 0, 139638000000000, 30000128, DEVICE, 1, None, 13, 42949672960),
    (815500000, 0, 139650000000000, 65536, MANAGED, 0, None, None, None),
    (816000000, 0, 139638040000000, 12345678, DEVICE, 1, None, 13, 42949672960),
    (816500000, 0, 139637978824704, 1048576, DEVICE, 1, None, None, None),
    (817000000, 1, 139640000000000, 777, DEVICE, 1, None, 7, None),
    (817500000, 0, 139650000000000, 65536, MANAGED, 1, None, None, None),
]
if os.path.exists(sys.argv[1]):
    os.remove(sys.argv[1])
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA page_size = 512")
db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
db.execute("INSERT INTO StringIds VALUES (1, 'cudaMalloc_v3020')")
db.execute("CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)")
db.executemany("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (?, ?, ?)", [
    (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"), (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
    (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"), (4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed")])
db.execute("CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)")
db.execute("""CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL,
    bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, name TEXT,
    correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER, localMemoryPoolReleaseThreshold INTEGER,
    localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER,
    importedMemoryPoolProcessId INTEGER)""")
for n, (start, device, address, size, kind, oper, name, stream, pool) in enumerate(rows):
    db.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?, 297237575106560, ?, 1, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
               (start, device, address, size, kind, oper, name, 5121 + n, stream, pool,
                0 if pool else None, 33554432 if pool else None, size if pool else None))
db.close()
