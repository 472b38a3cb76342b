# SPDX-License-Identifier: Apache-2.0
"""Writes in many ways and reads back what it wrote (tests/cli/cases/hold_writes.sh)."""
import json
import logging
import mmap
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile


def write(path, text, mode="w"):
    with open(path, mode) as f:
        f.write(text)


def read(path):
    with open(path) as f:
        return f.read()


def prepare():
    with sqlite3.connect("runs.db") as c:
        c.execute("create table runs (n)")


def replace():
    write("state.tmp", json.dumps({"epoch": 2}))
    os.replace("state.tmp", "state.json")
    return json.loads(read("state.json")) == {"epoch": 2} and not os.path.exists("state.tmp")


def rebuild():
    shutil.rmtree("runs")
    gone = "runs" not in os.listdir(".")
    os.makedirs("runs/b/c")
    write("runs/b/c/y", "y")
    return gone and os.listdir("runs") == ["b"]


def database():
    c = sqlite3.connect("runs.db")
    c.execute("insert into runs values (1)")
    c.commit()
    return c.execute("select count(*) from runs").fetchone() == (1,)


def mapped():
    with open("map.bin", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        m[:3] = b"abc"
    return read("map.bin") == "abc45678\n"


def log():
    logging.basicConfig(filename="train.log", filemode="w", level=logging.INFO, format="%(message)s")
    logging.info("step")
    return read("train.log") == "step\n"


def links():
    write("latest", "new")
    return read("best.pt") == "new" and os.path.islink("latest")


def hard_links():
    os.chmod("h1", 0o644)
    write("h1", "more", "a")
    return read("h2") == "h\nmore"


def descriptors():
    folder = os.open("old", os.O_RDONLY)
    os.close(os.open("f", os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=folder))
    os.rename("f", "g", src_dir_fd=folder, dst_dir_fd=folder)
    try:
        os.open("best.pt", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return os.listdir(folder) == ["g"] and os.listdir("old") == ["g"]


def metadata():
    fd = os.open("best.pt", os.O_RDONLY)
    os.fchmod(fd, 0o600)
    os.utime(fd, (1, 1))
    os.truncate("best.pt", 1)
    return os.stat("best.pt").st_size == 1


def children():
    subprocess.run(["sh", "-c", "echo child > train.log; mv best.pt moved.pt"], env={"PATH": os.environ["PATH"]}, check=True)
    subprocess.run([sys.executable, "-c", "open('python', 'w').write('p')"], check=True)
    return read("train.log") == "child\n" and not os.path.exists("best.pt") and read("python") == "p"


def many():
    pids = []
    for i in range(64):
        pids.append(os.fork())
        if not pids[-1]:
            write("shared", "%d\n" % i, "a")
            os._exit(0)
    for pid in pids:
        os.waitpid(pid, 0)
    return {int(n) for n in read("shared").split()} == set(range(64))


def temporary():
    with tempfile.NamedTemporaryFile(dir=".", delete=False) as f:
        f.write(b"t")
    os.replace(f.name, "from_temporary")
    return read("from_temporary") == "t" and os.path.isdir(tempfile.gettempdir())


def long():
    path = os.getcwd()
    while len(path) + 201 < 3890:
        path += "/" + "d" * 200
        os.mkdir(path)
    path += "/" + "f" * 100
    path = os.path.join(path[:-101], "f" * min(255, 4095 - len(path[:-101]) - 1))
    write(path, "long")
    print("long", len(path) > 3900, read(path))


if __name__ == "__main__":
    if sys.argv[1:] in (["prepare"], ["long"]):
        globals()[sys.argv[1]]()
        sys.exit()
    ways = [replace, rebuild, database, mapped, log, links, hard_links, descriptors, metadata, children, many, temporary]
    if os.environ.get("RANK") == "1":  # beside rank 0, in the same folder
        ways = [many]
    failed = [way.__name__ for way in ways if not way()]
    print("wrote all" if not failed else "failed: " + " ".join(failed), flush=True)
