#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One command for some time with logs that combine features, and with samples that were damaged: commands.py PROGRAM COMMAND SECONDS [SEED]

PROGRAM is best the one of BUILD=asan. A run is bad that ends by a signal or with a status that docs/install.md does not name, that a
sanitizer stops, that takes over five minutes, that prints control characters or invalid JSON, or
that fails and leaves a file. The input of each kind of bad run stays in the working folder, with
the command line in its name's .txt. Last line: runs, bad runs, and their number by status.
"""
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = [f for f in glob.glob(os.path.join(HERE, "../conformance/samples/*")) + glob.glob(os.path.join(HERE, "corpus/*/*"))
           if os.path.isfile(f) and os.path.getsize(f) < 60000]
STATUS = {0, 1, 2, 3, 4, 5, 6}
SIZES = [[512], [512, 1 << 20], [1 << 20, 2 << 20, 20 << 20], [1, 10 << 20, 1 << 30], [3 << 20, (1 << 21) + 512], list(range(512, 99840, 512)), [1 << 38, 1]]
POLICIES = ["recorded", "pytorch", "pytorch:expandable_segments:True", "pytorch:max_split_size_mb:20", "pytorch:garbage_collection_threshold:0.5", "vmm",
            "native", "buddy", "planned", "tlsf", "async", "managed", "limit:bytes=100M/pytorch", "all"]
NUMBERS = [b"0", b"-1", b"18446744073709551615", b"9223372036854775807", b"281474976710656", b"4294967295", b"1e308", b"nan", b"", b"'", b",", b"\n", b"\x1b[31m",
           b"\x00", b"{", b"]", b"\xff"]
NAMES = ["a.py", "torch/nn/modules/linear.py", "</script><b>", "\x1b[31mred", "é.py", "x" * 300, "a\tb", "c.cpp"]


def log(rng):
    """A log as cufrag's CSV: devices, streams, pools, stacks, refusals, trims, marks, equal times, steps, what is never freed."""
    streams, pools, devices, stacks = rng.choice([1, 1, 2, 5, 70]), rng.choice([1, 1, 3, 80]), rng.choice([1, 1, 1, 2, 5]), rng.choice([0, 1, 2, 9, 300])
    sizes, period, free = rng.choice(SIZES), rng.choice([0, 0, 7, 20]), rng.choice([0, .3, .5, .7])
    out = ["action,id,size,stream,time_us,device,pool,stack"]
    out += ["#frame 0x%x\tf%d\t%s\t:%d" % (i + 1, i, rng.choice(NAMES).replace("\t", " "), i + 1) for i in range(stacks)]
    out += ["#stack %d %s" % (i + 1, " ".join("0x%x" % rng.randint(1, stacks) for _ in range(rng.choice([1, 1, 3])))) for i in range(stacks)]
    live, now = [], 0
    for i in range(rng.choice([1, 5, 20, 60, 200, 800])):
        now += rng.choice([0, 0, 1, 1000, 10 ** 6])
        kind, device, stack = rng.random(), rng.randrange(devices), rng.randint(1, stacks) if stacks else ""
        if kind < .02:
            out.append("trim,0,,,%d,%d" % (now, device))
        elif kind < .05:
            out.append("refused,0,%d,%d,%d,%d,0,%s" % (rng.choice(sizes + [1 << 38]), rng.randrange(streams), now, device, stack))
        elif kind < .07 or (period and i % period == 0):
            out.append("mark,%s,,,%d,%d" % (rng.choice(["Optimizer.step#Adam.step", "epoch", "</b>"]), now, device))
        elif live and rng.random() < free:
            which, device = live.pop(rng.randrange(len(live)))
            out.append("free,%d,,,%d,%d" % (which, now, device))
        else:
            size = sizes[i % period % len(sizes)] if period else rng.choice(sizes)
            out.append("alloc,%d,%d,%d,%d,%d,%d,%s" % (i + 1, size, rng.randrange(streams), now, device, rng.randrange(pools), stack))
            live.append((i + 1, device))
    return ("\n".join(out) + "\n").encode()


def damaged(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        if not data:
            break
        at = rng.randrange(len(data))
        way = rng.randrange(5)
        if way == 0:
            data[at] = rng.randrange(256)
        elif way == 1:
            found = list(re.finditer(rb"\d+", bytes(data)))
            if found:
                x = rng.choice(found)
                data[x.start():x.end()] = rng.choice(NUMBERS)
        elif way == 2:
            del data[at:at + rng.randrange(1, 64)]
        elif way == 3:
            data[at:at] = data[at:at + rng.randrange(1, 200)]
        else:
            data[at:at] = rng.choice(NUMBERS)
    return bytes(data)


def make_input(rng, folder, name):
    if rng.random() < .6:
        data, ending = log(rng), ".csv"
        if rng.random() < .3:
            data = damaged(rng, data)
    else:
        sample = rng.choice(SAMPLES)
        ending = os.path.splitext(sample)[1]
        with open(sample, "rb") as f:
            data = damaged(rng, f.read())
    path = os.path.join(folder, name + ending)
    with open(path, "wb") as f:
        f.write(data)
    if rng.random() < .1:
        with open(path + ".meta.json", "wb") as f:
            side = b'{"cufrag_meta": 1, "devices": [{"ordinal": 0, "name": "NVIDIA L4", "total_bytes": 23580639232, "context_bytes": 1000, "beside_bytes": 2000}]}'
            f.write(side if rng.random() < .5 else damaged(rng, side))
    return path


def replay_options(rng):
    out = []
    for chance, options in [(.4, ["--limit", rng.choice(["64M", "1G", "0.01", "3"])]), (.2, ["--gpu", rng.choice(["t4", "h100", "b200"])]),
                            (.1, ["--capacity", rng.choice(["1G", "600M"])]), (.1, ["--torch", rng.choice(["2.1", "2.3", "2.11"])]), (.1, ["--seed", "7"]), (.1, ["--context", "0"])]:
        if rng.random() < chance:
            out += options
    return out


def outputs(rng, page=True):
    out = []
    if rng.random() < .3:
        out += ["--json", rng.choice(["-", "o.json"])]
    elif rng.random() < .2:
        out += ["--csv", rng.choice(["-", "o.csv"])]
    if page and rng.random() < .04:
        out += ["--out", "page"]
    return out


def policies(rng, most=3):
    return ["--policies", ";".join(rng.choice(POLICIES) for _ in range(rng.randint(1, most)))]


def layout(rng):
    """Names, values, conditions and commands, most of them wrong; what runs leaves a recording or fails."""
    names = ["{a}", "a", "{b}", "{world}", "{", "{a", "{{a}}", "mb", "{mb}", "\x1b", "é"]
    signs = ["+", "-", "*", "/", "%", "<", "<=", "==", "!=", "&&", "||", "!", "(", ")", "'x'", "0", "1", "1e9", "a", "{b}", "mb", "\"", " "]
    out = ["--no-gpu", "--gpu", rng.choice(["h100", "h100,a100-80", "h101", ""]), "--time-limit", "5", "--jobs", "2"]
    for _ in range(rng.randint(0, 3)):
        out += ["--vary", rng.choice(names) + "=" + rng.choice(["1..4", "1,2", "x", "4..1", "1..64*2", "1,,2", "9" * 30, "", "a{b}"])]
    for _ in range(rng.randint(0, 2)):
        out += ["--where", "".join(rng.choice(signs) for _ in range(rng.choice([1, 3, 7, 200])))]
    for option, values in (("--world", ["1..2", "0", "x", "3"]), ("--rising", ["a", "{mb},a", ","]), ("--preset", ["vllm", "megatron", "x"]), ("--price", ["h100=1", "=", "h100=nan"])):
        if rng.random() < .2:
            out += [option, rng.choice(values)]
    run = "printf 'alloc,1,%s\nfree,1\n' > \"$CUFRAG_RECORD/1.pickle\"" % rng.choice(["512", "99999999999", "x"])
    if rng.random() < .5:  # a right one, so that something runs
        out = out[:2] + ["--gpu", "h100,l4", "--jobs", "2", "--vary", "{a}=" + rng.choice(["1..9", "1,x", "2"]), "--vary", "{mb}=1..4", "--check", rng.choice("09")]
        return out + outputs(rng) + ["--", "sh", "-c", run + rng.choice(["; exit 3", "", ""]), "{a}", "{mb}"]
    return out + outputs(rng) + ["--", *rng.choice([["sh", "-c", run, rng.choice(names), "{a}"], ["false", "{a}"], ["torchrun", "{a}"], ["sh", "-c", "exit 7", "{mb}"]])]


def arguments(rng, command, folder):
    """The command line behind the program's name; files are named relative to the folder."""
    one = os.path.basename(make_input(rng, folder, "x"))
    two = os.path.basename(make_input(rng, folder, "y")) if command in ("diff", "fit", "fleet", "sweep", "compare", "scale", "tune") and rng.random() < .5 else one
    policy = ["--policy", rng.choice(POLICIES[:-1])]
    made = {
        "replay": lambda: [one] + policy + replay_options(rng) + (["--on-oom", "skip"] if rng.random() < .3 else []) + outputs(rng),
        "compare": lambda: [one] + ([two] if two != one else []) + policies(rng) + ["--threads", "1"] + replay_options(rng) + (["--stream"] if rng.random() < .1 else []) + outputs(rng),
        "explain": lambda: [one] + rng.choice([[], ["--at", "peak"], ["--at", "event:3"], ["--by", "stack"], ["--folded", "f", "--speedscope", "s", "--pprof", "p"]])
        + (policy if rng.random() < .3 else []) + replay_options(rng) + outputs(rng),
        "diagnose": lambda: [one] + (policy if rng.random() < .5 else []) + replay_options(rng) + outputs(rng),
        "advise": lambda: [one] + rng.choice([[], [], ["--gpu", "t4"], ["--capacity", "600M"], ["--seed", "7"]]) + outputs(rng),
        "diff": lambda: [one, two] + outputs(rng),
        "fit": lambda: [one] + ([two] if two != one else []) + policies(rng, 2) + ["--threads", "1"] + outputs(rng),
        "tune": lambda: [one, "--budget", "6", "--threads", "1"] + replay_options(rng) + outputs(rng),
        "plan": lambda: [one] + outputs(rng, False),
        "scale": lambda: ["--at", "1,2", one, two, "--to", rng.choice(["4", "1000000"])] + outputs(rng),
        "sweep": lambda: [one] + ([two] if two != one else []) + policies(rng, 2) + ["-o", "r.sqlite"] + (["--fit"] if rng.random() < .2 else []),
        "fleet": lambda: ["r.sqlite"] + outputs(rng),
        "verify": lambda: [one] + replay_options(rng) + outputs(rng, False),
        "info": lambda: [one] + outputs(rng, False),
        "summary": lambda: [one],
        "import": lambda: [one, "-o", "z.cft"],
        "export": lambda: [one, "--to", rng.choice(["memory_viz", "perfetto", "openmetrics", "csv", "minimalloc"]), "-o", "e.out"] + (policy if rng.random() < .4 else []),
        "layout": lambda: layout(rng),
        "view": lambda: [one] + (policies(rng, 2) if rng.random() < .5 else []) + ["--out", "view.html"],
    }[command]()
    if command == "fleet":
        subprocess.run([sys.argv[1], "sweep", one, two, *policies(rng, 2), "-o", "r.sqlite"], cwd=folder, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        path = os.path.join(folder, "r.sqlite")
        if os.path.exists(path) and rng.random() < .5:
            with open(path, "rb") as f:
                data = damaged(rng, f.read())
            with open(path, "wb") as f:
                f.write(data)
        if not os.path.exists(path):
            open(path, "wb").close()
    return ([] if command == "summary" else [command]) + made


def complaint(code, out, err, took, line, folder):
    """What is wrong with a run; None: nothing."""
    if code == "late" or took > 300:
        return "took over five minutes"
    if code < 0 or code not in STATUS:
        return "status %s" % code
    if b"Sanitizer" in err or b"runtime error" in err:
        return next((x for x in err.decode(errors="replace").splitlines() if "ERROR" in x or "runtime error" in x), "sanitizer").split("0x")[0]
    if re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", out + err):
        return "control characters"
    for where, text in (("standard output", out if "-" in line and "--json" in line and line[line.index("--json") + 1] == "-" and code in (0, 1, 6) else None),
                        ("o.json", open(os.path.join(folder, "o.json"), "rb").read() if os.path.exists(os.path.join(folder, "o.json")) else None)):
        if text is not None:
            try:
                json.loads(text)
            except ValueError as e:
                return "%s is no JSON: %s" % (where, e)
    if code in (2, 3) and line[0] != "sweep":
        left = [f for f in ("o.json", "o.csv", "z.cft", "e.out", "page", "view.html") if os.path.exists(os.path.join(folder, f))]
        if left:
            return "failed and left %s" % left[0]
    return None


def main():
    program, command, seconds = os.path.abspath(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    sys.argv[1] = program
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    rng, kept, seen, counts, runs, bad, end = random.Random("%s %d" % (command, seed)), os.getcwd(), set(), {}, 0, 0, time.time() + seconds
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1", LC_ALL="C.UTF-8", TERM="dumb", SOURCE_DATE_EPOCH="0")
    while time.time() < end:
        with tempfile.TemporaryDirectory() as folder:
            line = arguments(rng, command, folder)
            began = time.time()
            process = subprocess.Popen([program, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env, cwd=folder, start_new_session=True)
            try:
                out, err = process.communicate(timeout=360)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                code = "late"
            runs += 1
            counts[code] = counts.get(code, 0) + 1
            wrong = complaint(code, out, err, time.time() - began, line, folder)
            if wrong:
                bad += 1
                if wrong[:80] not in seen:
                    seen.add(wrong[:80])
                    stem = os.path.join(kept, "bad-%s-%d" % (command, len(seen)))
                    for f in glob.glob(os.path.join(folder, "[xyr].*")):
                        os.rename(f, "%s.%s" % (stem, os.path.basename(f)))
                    with open(stem + ".txt", "w") as f:
                        f.write("%s\n%s\n%s\n" % (wrong, " ".join(line), err.decode(errors="replace")[:4000]))
                    print("BAD %s: %s (%s)" % (" ".join(line), wrong, stem), flush=True)
    print("%s: %d runs, %d bad, %s" % (command, runs, bad, " ".join("%s:%d" % (k, v) for k, v in sorted(counts.items(), key=str))), flush=True)
    sys.exit(1 if bad else 0)


main()
