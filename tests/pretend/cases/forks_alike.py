"""Forked layouts are as those started anew, whatever the program does to its process: KIND."""
import random
import signal
import threading
import numpy
from support.small import os, sys, time, torch, train

# python:
#   of = {}
#   for way in "--fresh", "":
#       layout(way + " --jobs 2 --vary {kind}=plain,folder,child,thread,closed,exits,group,parent -- {kind}", ...)
#       of[way] = [line.replace(",card,", ",recorded,") for line in lines("rows.csv")]
#       drawn = [line.split() for line in lines("numbers")]
#       os.remove("numbers")
#   assert of[""] == of["--fresh"] and any("three is no number" in line for line in of[""]), of
#   never("started anew")
#   assert len(drawn) >= 8 and all(len(set(column)) == len(drawn) for column in zip(*drawn)), drawn
#   assert not left()
kind = sys.argv[1]
assert __name__ == "__main__" and sys.modules["__main__"].__file__ == os.path.abspath(__file__) and len(sys.argv) == 2
assert os.environ["CUFRAG_RECORD"] and not [n for n in os.environ if n.startswith("CUFRAG_KEPT")]
assert sys.path[0] == os.path.dirname(os.path.realpath(__file__)) and threading.current_thread() is threading.main_thread()
with open("numbers", "a") as f:
    f.write("%r %r\n" % (random.random(), numpy.random.rand()))
if kind == "folder":
    os.makedirs("plain.new", exist_ok=True)
    os.chdir("plain.new")
if kind == "closed":
    files = [open(os.devnull) for _ in range(200)]
    os.close(0), os.close(1), os.close(2)
if kind == "thread":
    threading.Thread(target=time.sleep, args=(10000,), daemon=True).start()
layer = torch.nn.Linear(512, 512 + len(kind)).cuda()
train(layer, 64, 512, steps=4)
if kind == "exits":
    sys.exit("three is no number")
if kind == "group":
    os.killpg(0, signal.SIGKILL)
if kind == "parent":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3)
if kind == "child":
    if os.fork() == 0:
        time.sleep(10000)
