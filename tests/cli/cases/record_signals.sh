# a signal to cufrag alone is passed on to the program; one to the whole group, as by a terminal, is not, because it has it
# needs: python3
cat > program << 'END'
for s in INT TERM HUP USR1; do trap "echo $s >> got" $s; done
cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/17.pickle"
echo $$ > ready
while [ ! -e enough ]; do sleep 0.02; done
END
python3 - << 'END'
import os, signal, subprocess, time
def until(there):
    for _ in range(3000):
        if there():
            return
        time.sleep(0.02)
def send(kill, number):
    for s in (signal.SIGINT, signal.SIGCHLD):  # a shell's background jobs ignore the one, daemons the other
        signal.signal(s, signal.SIG_DFL if s == signal.SIGINT else signal.SIG_IGN)
    for name in ("got", "ready", "enough"):
        open(name, "w").close()
        os.unlink(name)
    job = subprocess.Popen([os.environ["CUFRAG"], "record", "--no-gpu", "--keep-writes", "-o", "run.cft", "--", "sh", "program"], start_new_session=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: os.path.exists("ready"))
    for to in kill:
        to(job.pid, number)
    until(lambda: os.path.exists("got"))
    time.sleep(0.3)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    open("enough", "w").close()
    pid, status = os.waitpid(job.pid, 0)
    print(number.name, [k.__name__ for k in kill], open("got").read().split(), os.waitstatus_to_exitcode(status))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    send([os.kill], number)
    send([os.killpg], number)
send([os.kill, os.killpg], signal.SIGTERM)  # as timeout does
# Ctrl-Z stops cufrag with the program, so that the shell has its terminal back. The shell is Python here: bash -c with set -m
# ends by itself now and then if a job stops while it waits for another command.
os.unlink("enough")
job = subprocess.Popen([os.environ["CUFRAG"], "record", "--no-gpu", "--keep-writes", "-o", "none.cft", "--", "sh", "-c",
                        "touch runs; while [ ! -e enough ]; do sleep 0.02; done"], stderr=subprocess.DEVNULL, preexec_fn=os.setpgrp)
until(lambda: os.path.exists("runs"))
os.killpg(job.pid, signal.SIGTSTP)
until(lambda: os.WIFSTOPPED(os.waitpid(job.pid, os.WUNTRACED | os.WNOHANG)[1]))
print("T", flush=True)
open("enough", "w").close()
os.killpg(job.pid, signal.SIGCONT)
print(job.wait(60))
END
# standard output has no reader: the recording is still written
"$CUFRAG" record --no-gpu -o unread.cft -- sh -c 'cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/17.pickle"; echo cudaNeverHeardOf > "$CUFRAG_PRETEND_CALLS"; sleep 0.3' 2>&1 | true
# a program without its files says so
cp "$CUFRAG" alone
./alone run -- true 2>&1
rm alone
ls
