# SPDX-License-Identifier: Apache-2.0
"""Of tests/cli/cases/signals.sh: runs each command to its end, then ends it at places spread over its calls.

A file is complete if it is, byte for byte, what the whole run wrote, or has its end; VARIES names the files of which
this has to do, because there are times in them, or because less was asked for in time.
Prints a line for each command, and what is wrong.
"""
import os, shlex, shutil, signal, subprocess

here, program = os.environ["HERE"], os.environ["CUFRAG"]
traces, data = os.environ["TRACES"], os.environ["ROOT"] + "/tests/cli/data"
work, temp = here + "/work", here + "/temp"
leak, scale = traces + "/leak.frames.cft", " ".join(f"{data}/scale/batch{n}.cft" for n in (2, 4, 8))

COMMANDS = f"""
compare {leak} --policies pytorch;buddy;planned --optimum bound --formats svg --no-host --out out --json j.json --csv c.csv
replay {leak} --policy pytorch --no-host --json j.json --csv c.csv
fit {leak} --policies pytorch --json j.json --csv c.csv
tune {leak} --space buddy --json j.json --csv c.csv
bench --device sim --csv c.csv
plan {leak} --nodes 100 -o x.plan --placement p.csv --json j.json --csv c.csv
gen repeat {leak} --times 3 -o x.cft
import {data}/seeddemo.pickle.xz -o x.cft
export {leak} --to csv -o x.csv
explain {leak} --out out --json j.json --stacks f
diagnose {leak} --json j.json
diff {leak} {traces}/seeddemo.default.cft --out out --json j.json
info {leak} --json j.json
verify {leak} --json j.json
list gpus --json j.json
scale --at 2,4,8 {scale} --to 32 -o x.cft --out out --json j.json --csv c.csv
sweep {leak} {traces}/seeddemo.default.cft --policies pytorch --threads 2 -o x.sqlite --csv c.csv
fleet {here}/results.sqlite --out out --json j.json --csv c.csv
monitor --interval 10ms --count 2 --csv m.csv --textfile m.prom
record -o x.cft -- {here}/program
record --no-gpu -o x.cft -- sh -c 'cp {traces}/seeddemo.default.cft "$CUFRAG_RECORD/1.pickle"'
"""
VARIES = {"bench": ["c.csv"], "sweep": ["k.csv"], "monitor": ["m.csv", "m.prom"], "record": ["x.cft"],
          "plan": ["j.json", "p.csv", "c.csv"]}
ENDS = {".svg": b"</svg>", ".html": b"</html>", ".json": b"}"}
# how many places for each signal
POINTS = ({signal.SIGINT: 5, signal.SIGTERM: 2, signal.SIGHUP: 1, signal.SIGXFSZ: 1} if os.environ.get("FRAG_TEST_NIGHTLY")
          else {signal.SIGINT: 2, signal.SIGTERM: 1, signal.SIGXFSZ: 1})


def tree(top):
    found = {}
    for folder, folders, files in os.walk(top):
        for name in files + [f + "/" for f in folders]:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, top) if not name.endswith("/") else os.path.relpath(path, top) + "/"] = (
                b"" if name.endswith("/") else open(path, "rb").read())
    return found


def run(words, at, number, blocks="unlimited"):
    for folder in (work, temp):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
    path = os.environ["PATH"] if words[0] == "compare" else here + "/bin:" + os.environ["PATH"]  # charts are drawn once
    env = dict(os.environ, PATH=path, LD_PRELOAD=here + "/signal_at.so", SIGNAL_AT=str(at), SIGNAL_WITH=str(int(number)),
               SIGNAL_COUNT=here + "/count", TMPDIR=temp)
    limited = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", program] + words
    got = subprocess.run(limited, cwd=work, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    return got.returncode, tree(work), tree(temp), got.stderr.decode("utf-8", "replace").strip()


def sound(words, path, content, whole):
    if path.endswith("/"):
        return path == "out/"
    if path not in whole:
        return path == "x.sqlite.part"  # what the same command goes on with
    if content == whole[path]:
        return True
    if path.endswith(".cft"):
        return subprocess.run([program, "info", "-"], input=content, capture_output=True).returncode in (0, 6)  # 6: a program ended out of memory
    end = ENDS.get(os.path.splitext(path)[1], b"")
    varies = words[0] == "compare" or path in VARIES.get(words[0], [])
    return varies and content.endswith(b"\n") and content.rstrip().endswith(end)


OUTPUT_OPTIONS = ("-o", "--out", "--json", "--csv", "--placement", "--stacks", "--textfile")


def missing(words, whole):
    """Outputs that the command line names and a whole run did not write; a page has its text and charts."""
    named = [value for option, value in zip(words, words[1:]) if option in OUTPUT_OPTIONS]
    gone = [name for name in named if name not in whole and name + "/" not in whole]
    if "out" in named:
        gone += [f"out/*{end}" for end in (".html", ".svg", ".csv") if not any(p.endswith(end) for p in whole)]
    return gone


def check(words, whole, what, got, statuses):
    status, files, left, said = got
    wrong = [f"{p} is incomplete" for p, c in files.items() if not sound(words, p, c, whole)]
    wrong += [f"left {p}" for p in left]
    wrong += [f"{p} is missing" for p in whole if status == 0 and p not in files]
    if status not in statuses:
        wrong.append(f"exit {status}: {said}")
    for w in wrong:
        print(f"{' '.join(words)[:40]} … {what}: {w}")
    return not wrong


for line in COMMANDS.strip().split("\n"):
    words = shlex.split(line)
    status, whole, left, said = run(words, 0, signal.SIGINT)
    calls = int(open(here + "/count").read())
    good = check(words, whole, "whole", (status, whole, left, said), [0, 1] if words[0] != "record" else [0])
    if missing(words, whole):
        good = False
        print(f"{line}: not written: {' '.join(missing(words, whole))}")
    done = status
    for number, points in POINTS.items():
        for i in range(points):
            at = 1 + (2 * i + 1) * calls // (2 * points)
            # done nevertheless, interrupted with or without results, or ended at once
            statuses = [done] if number == signal.SIGXFSZ else [done, 4, -number]
            good &= check(words, whole, f"{number.name} at call {at} of {calls}", run(words, at, number), statuses)
    # a watch goes on without its files, and a program that is recorded has the limit, too
    for blocks in (0, 2) if words[0] != "monitor" else ():
        got = run(words, 0, signal.SIGINT, blocks)
        # without a file of any length nothing can be held back either
        good &= check(words, whole, f"files of {blocks} blocks", got, [done, 3 if "--no-gpu" in words and blocks else 5])
    print(words[0], "ok" if good else "NOT OK")
