# full screen on a terminal of 100 by 16: what is drawn, and q
# needs: cc python3
. "$DATA/made.sh"
fake_nvml growth
export TERM=xterm LC_ALL=C.UTF-8
cat > terminal.py << 'PY'
import fcntl, os, pty, re, select, struct, sys, termios, time
pid, fd = pty.fork()
if not pid:
    os.environ.pop("NO_COLOR", None)
    time.sleep(0.2)
    os.execv(os.environ["CUFRAG"], ["cufrag", "monitor"] + sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 16, 100, 0, 0))
wanted = [w for w in sys.stdin.read().split("\n") if w]
out, end, asked = b"", time.time() + 100, False
def missing():
    return [w for w in wanted if not re.search(w, out.decode("utf-8", "replace"))]
while True:
    try:
        if select.select([fd], [], [], 0.05)[0]:
            data = os.read(fd, 65536)
            if not data:
                break
            out += data
    except OSError:
        break
    if not asked and (not missing() or time.time() > end):
        asked = True
        os.write(fd, b"q")
print("exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
text = out.decode("utf-8", "replace")
if "no full screen" in text:
    print(text, file=sys.stderr)
    sys.exit(77)
for w in wanted:
    print(w, "NO" if w in missing() else "yes")
PY
printf '%s\n' 'cufrag monitor' 'q: end' 'gpu 0' '██' '░░' '▇' '50 GiB of 100 GiB' 'busy  98 %' 'NVIDIA H100' 'alarm: gpu 0 uses 9' |
	python3 terminal.py --interval 100ms --alarm 85% || exit
FAKE_NVML=processes
printf '%s\n' 'non-releasable' '4000002' | python3 terminal.py --interval 100ms
printf '%s\n' 'used \(10 %\)' | python3 terminal.py --interval 100ms --plain --count 3
