#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings cut as PyTorch's ring of entries cuts them: what does verify say of a history that began late?

    torch_late.py PROGRAM FOLDER [--lost 0.3,0.6] [--filter REGEX] [--keep FOLDER] [--show]

PROGRAM is cufrag; FOLDER holds snapshots NAME.pickle[.xz], each with a NAME.json beside it whose "verify_args" are options of
verify. Of each history the first part (--lost: these shares) is taken away on every device; what is left is a file as the
recorder writes it when its ring is too short. Prints a line per recording that is not identical (--show: per recording), then
the verdicts by release (what stands before the workload in NAME). Exit status 1 if one is different. --keep: the files stay there.
"""
import argparse, collections, concurrent.futures, glob, json, lzma, os, pickle, re, shlex, subprocess, sys, tempfile


def load(path):
    with (lzma.open(path) if path.endswith(".xz") else open(path, "rb")) as f:
        return pickle.load(f)


def arguments(path):
    beside = re.sub(r"\.pickle(\.xz)?$", ".json", path)
    if not os.path.exists(beside):
        return []
    with open(beside) as f:
        return shlex.split(json.load(f).get("verify_args") or "")


def cut(path, share, folder):
    """The snapshot without the first `share` of the entries of each device; None where none is left."""
    snapshot = load(path)
    snapshot["device_traces"] = [t[int(len(t) * share) :] for t in snapshot["device_traces"]]
    if not any(snapshot["device_traces"]):
        return None
    name = re.sub(r"\.pickle(\.xz)?$", "", os.path.basename(path))
    out = os.path.join(folder, "%s.lost%02d.pickle" % (name, round(share * 100)))
    with open(out, "wb") as f:
        pickle.dump(snapshot, f, protocol=4)
    return out


def verify(program, path, share, folder, keep):
    late = cut(path, share, folder)
    if not late:
        return None
    try:
        done = subprocess.run([program, "verify", late] + arguments(path), capture_output=True, text=True, timeout=300)
        said = done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        said = "verdict: took too long"
    verdict = re.search(r"^verdict: (.*)$", said, re.M)
    why = re.search(r"(first difference|undetermined): (.*)$", said, re.M)
    if not keep:
        os.unlink(late)
    return (
        os.path.basename(late),
        verdict.group(1) if verdict else "refused",
        why.group(2) if why else said.strip().split("\n")[-1] if not verdict else "",
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("folder")
    p.add_argument("--lost", default="0.3,0.6")
    p.add_argument("--filter", default="")
    p.add_argument("--keep")
    p.add_argument("--show", action="store_true")
    a = p.parse_args()
    folder = a.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    files = sorted(f for f in glob.glob(a.folder + "/*.pickle*") if re.search(a.filter, os.path.basename(f)))
    table = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(verify, a.program, f, float(s), folder, a.keep) for f in files for s in a.lost.split(",")
        ]
        for job in jobs:
            if not job.result():
                continue
            name, verdict, why = job.result()
            release = re.match(r"(\d+\.)*\d+(?=\.\D)|", name).group(0) or "-"
            table[release][verdict] += 1
            if a.show or verdict != "identical":
                print("%-44s %-14s %s" % (name, verdict, why[:200]))
    if not a.keep:
        os.rmdir(folder)
    words = sorted({v for t in table.values() for v in t})
    for release in sorted(table, key=lambda r: [int(x) for x in r.split(".") if x.isdigit()]):
        print("%-8s %s" % (release, ", ".join("%d %s" % (table[release][v], v) for v in words)))
    return any(t["different"] for t in table.values())


if __name__ == "__main__":
    sys.exit(main())
