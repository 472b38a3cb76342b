# full screen: sizes, signs, sort, choice, the question before a kill, stop and every way out, by a terminal of the test
# needs: cc python3
. "$DATA/made.sh"
fake_nvml these
export LC_ALL=C.UTF-8 TERM=vt100
cat > keys.py << 'PY'
import os, re, resource, shutil, signal, struct, subprocess, sys, tempfile, time
sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests", "cli", "data"))
from terminal import Terminal

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
# a command line is what the program says of itself: escapes, a title, a bell, bytes that are no text
hostile = b"evil\x1b[31m\x1b]0;title\x07\x9b5n\xff \xe2\x80\xae end"
def victim(name):
    return subprocess.Popen([name, "300"], executable=os.path.realpath("/bin/sleep"))
victims = [victim(hostile), victim("alpha"), victim("größe")]
pids = [v.pid for v in victims]
os.environ["FAKE_PIDS"] = " ".join("%d:%d" % (v.pid, g) for v, g in zip(victims, (7, 30, 5)))
command = [os.environ["CUFRAG"], "monitor", "--interval", "100ms"]

def check(what, good):
    print(what, "yes" if good else "NO", flush=True)

def order(t):
    t.take()
    found = [int(w) for line in t.screen.text().split("\n") for w in line.split()[1:2] if w.isdigit() and int(w) in pids]
    return [pids.index(p) for p in found]

def opened():
    t = Terminal(command)
    t.wait_for("gpu 0")
    return t

def asked(t):
    t.type("T")
    return t.wait_for("SIGTERM to pid")

def comes(t, good):
    end = time.time() + 60
    while time.time() < end and not good():
        t.take()
    return good()

def plain(t, locale):
    text = t.screen.text()
    return all(len(line) <= t.screen.columns for line in text.split("\n")) and (locale != "C" or text.isascii())

# every size and both charsets
for locale in "C.UTF-8", "C":
    for rows, columns in (24, 60), (24, 80), (10, 100), (30, 140), (50, 200), (3, 20), (1, 1):
        t = Terminal(command, rows, columns, LC_ALL=locale)
        small = rows < 10
        seen = t.wait_for("q: end" if columns > 10 else "[a-z]") and (small or t.wait_for("gpu 0 .*10 GiB of 100 GiB") and t.wait_for("^0 +%d .*30 GiB.* alpha" % pids[1]))
        check("%s %dx%d" % (locale, columns, rows), seen and plain(t, locale))
        t.type("q")
        if t.told() != "exit 0 cooked":
            print("bad end")
        if columns == 200:
            seen = t.wait_for(re.escape("evil?[31m?]0;title??5n? ??? end"))
            check("%s hostile as text" % locale, seen and b"\x1b]" not in t.raw and b"\x9b" not in t.raw and b"\x07" not in t.raw)
        t.close()

t = Terminal(command + ["--web", "0"], 24, 60)
check("the page's address in 60 columns", t.wait_for("^page: http://127.0.0.1:[0-9]+/[0-9a-f]{28}/$"))
t.close()

# what a process under cufrag says of itself (base/live_page.h)
page = "/dev/shm/cufrag-%d" % pids[2]
gib = 1 << 30
try:
    with open(page, "wb") as file:
        file.write(b"cufragp1" + struct.pack("<4Q24s8Q", 1, pids[2], 2, time.clock_gettime_ns(time.CLOCK_MONOTONIC), b"record", 0, gib, 2 * gib, 4 * gib, gib, gib, 9, 0).ljust(2104, b"\0"))
    os.chmod(page, 0o600)
    t = Terminal(command, 24, 140)
    check("allocated and reserved", t.wait_for("^0 +%d .* 5 GiB +2 GiB +4 GiB +1 GiB +1 GiB " % pids[2]))
    t.type("....")
    check("by allocated", t.wait_for("allocatedv") and comes(t, lambda: order(t)[0] == 2))
    t.close()
    os.unlink(page)
except OSError:  # no shared memory here
    check("allocated and reserved", True)
    check("by allocated", True)

t = Terminal(command, 24, 100)
t.wait_for("alpha")
check("as listed", comes(t, lambda: order(t) == [0, 1, 2]))
t.type("...")
check("by the driver's bytes", t.wait_for("driverv") and comes(t, lambda: order(t) == [1, 0, 2]))
t.type("/")
check("the other way", t.wait_for("driver\\^") and comes(t, lambda: order(t) == [2, 0, 1]))
t.type("/" + "," * 4)
check("by command", t.wait_for("commandv") and comes(t, lambda: order(t) == [1, 0, 2]))
t.type("\x1bOC")
check("moved command lines", t.wait_for("%d .* - m\\?\\]0;title" % pids[0]))
t.type("\x1bOD")
t.type("h")
check("help", t.wait_for("choose a process"))
t.type("x")
for columns in 60, 200, 100:
    t.resize(20, columns)
    check("resized to %d" % columns, t.wait_for("^cufrag monitor.{%d}h: keys  q: end$" % (columns - 14 - 15)))

# nothing is ended without a choice and a yes
t.type("T")
check("no choice", t.wait_for("choose a process first"))
t.type("\t")  # the first row: alpha
t.type("T")
check("the question", t.wait_for("SIGTERM to pid %d of [a-z]+, no GPU open\\?" % pids[1]))
t.type("n")
check("no", t.wait_for("pid %d was left alone" % pids[1]) and victims[1].poll() is None)
asked(t)
t.type("q")
check("q is no yes", t.wait_for("left alone") and victims[1].poll() is None)
t.type("Ty")
check("SIGTERM", victims[1].wait(20) == -signal.SIGTERM and t.wait_for("SIGTERM was sent to pid %d, " % pids[1]))
t.type("\x1bOB")
t.type("Ky")
check("SIGKILL", t.wait_for("SIGKILL was sent to pid %d, " % pids[0]) and victims[0].wait(20) == -signal.SIGKILL)
t.type("\x1bOB")
asked(t)
last = victims[2]
last.terminate()
last.wait()
t.type("y")
check("ended meanwhile", t.wait_for("pid %d (has ended already|cannot be seen)" % last.pid))
t.type("q")
check("q", t.told() == "exit 0 cooked")
t.close()

if os.getuid() == 0:  # as somebody else, who must be able to read the library
    os.environ["FAKE_PIDS"] = "%d:3" % os.getpid()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy("lib/libnvidia-ml.so.1", folder)
        os.chmod(folder, 0o755)
        os.chmod(folder + "/libnvidia-ml.so.1", 0o755)
        t = Terminal(["/bin/sh", "-c", 'exec setpriv --reuid=65534 --clear-groups "$@"', "sh"] + command, LD_LIBRARY_PATH=folder)
        if t.wait_for("^0 +%d |setpriv|denied|cannot" % os.getpid()) and "gpu 0" in t.screen.text():
            t.type("\tK")
            check("another user's", t.wait_for("pid %d belongs to root: only its owner can end it" % os.getpid()))
        else:
            check("another user's", True)  # the user nobody may not even start it here
        t.close()
else:
    check("another user's", True)

# the terminal is as before, whatever ends or stops it
os.environ["TERM"] = "xterm"
def clean(t):
    t.take()
    tail = t.raw[t.raw.rfind(b"\x1b[?1049h"):]
    return b"\x1b[?1049l" in tail and tail.rfind(b"\x1b[?25h") > tail.rfind(b"\x1b[?25l")
t = opened()
t.type("\x1a")
check("Ctrl-Z", t.told() == "stopped cooked" and clean(t))
t.screen.size(24, 100)
t.resume()
check("goes on", t.wait_for("cufrag monitor.*q: end") and not clean(t))
os.kill(t.pid, signal.SIGSTOP)
t.told()
t.screen.size(24, 100)
t.resume()
check("SIGSTOP and on", t.wait_for("cufrag monitor.*q: end"))
t.type("\x03")
check("Ctrl-C", t.told() == "exit 0 cooked" and clean(t))
t.close()
for sig in "TERM", "HUP", "QUIT", "SEGV", "ABRT", "USR1", "ALRM":
    t = opened()
    number = getattr(signal, "SIG" + sig)
    os.kill(t.pid, number)
    wanted = "exit 0 cooked" if sig in ("TERM", "HUP") else "signal %d cooked" % number
    check("SIG" + sig, t.told() == wanted and clean(t))
    t.close()
t = opened()
os.kill(t.pid, signal.SIGSTOP)  # so that both come at once
t.told()
for _ in range(2):
    os.kill(t.pid, signal.SIGINT)
os.kill(t.pid, signal.SIGTERM)
t.resume()
check("two signals", t.told() in ("signal 2 cooked", "signal 15 cooked", "exit 0 cooked") and clean(t))
t.close()
t = opened()
os.close(t.fd)
check("the terminal went away", t.told() == "exit 0 gone")
PY
timeout 600 python3 keys.py
