"""fit keeps its recording until the command, the environment or a file that was read changes."""
import size
from support.small import cuda, os, torch

# python:
#   fit = " --cards cards.csv --margin 0 --policy pytorch --"
#   def again(kept, fit="fit" + fit, answer="", stdin="/dev/null", **variables):
#       line = "$CUFRAG fit --no-gpu %s %s kept_recordings.py < %s > out 2> err; status=$?; cat out err; exit $status"
#       text = shell(line % (fit[4:], python, stdin), env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **variables))
#       assert kept is None or kept == bool(re.search("recorded on .* with the same command", text))
#       assert answer in text, "no " + answer
#       return lines("out")
#   write("cards.csv", "name,memory\nl4,22G\n"), write("size.py", "MIB = 8"), write("count.txt", "2")
#   assert again(False) == again(True) == again(True, SHLVL="77")
#   write("size.py", "MIB = 64\n")
#   again(False, answer="reserves 128 MiB"), again(True)
#   write("count.txt", "3\n")
#   again(False, answer="reserves 192 MiB"), again(True)
#   again(False, ANYTHING="1"), os.utime("kept_recordings.py"), again(False)
#   # what a pipe holds is not known
#   again(None, stdin="<(echo)"), again(False, stdin="<(echo)")
#   again(False, "fit --fresh" + fit)
#   # a program that reads what it writes finds it the next time only if its writes are kept
#   again(None, WRITES="1"), again(True, WRITES="1")
#   again(None, "fit --keep-writes" + fit, WRITES="2"), again(False, "fit --keep-writes" + fit, WRITES="2")
kept = [cuda.empty(size.MIB << 20, dtype=torch.uint8) for _ in range(int(open("count.txt").read()))]
if os.environ.get("WRITES"):
    open("state", "w").write("x")
    open("state").read()
