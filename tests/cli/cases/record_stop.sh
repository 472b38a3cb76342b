# Ctrl-Z stops cufrag with the program, so that the shell has its terminal back. The shell is Python here: bash -c with set -m ends
# by itself now and then if a job stops while it waits for another command.
# needs: python3
python3 - << 'END' 2> said
import os, signal, subprocess, time
def until(what):
    end = time.time() + 60
    while not what() and time.time() < end:
        time.sleep(0.02)
with open("err", "w") as err:
    job = subprocess.Popen([os.environ["CUFRAG"], "record", "--no-gpu", "--keep-writes", "-o", "run.cft", "--", "sh", "-c", "touch runs; until [ -e enough ]; do sleep 0.02; done"],
                           stderr=err, preexec_fn=os.setpgrp)
until(lambda: os.path.exists("runs"))
os.killpg(job.pid, signal.SIGTSTP)
until(lambda: os.WIFSTOPPED(os.waitpid(job.pid, os.WUNTRACED | os.WNOHANG)[1]))
print("T", flush=True)
open("enough", "w").close()
os.killpg(job.pid, signal.SIGCONT)
print(job.wait(60))
END
rm -f runs enough
