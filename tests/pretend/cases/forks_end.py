"""Forks collect and destroy only what the program made; their files are written to the end."""
import gc
from support.small import cuda, os, sys

# python:
#   write("site-packages/early.py", '''
#   class Taken:
#       def __del__(self, to=open("apart", "a")):
#           to.write("apart\\n")
#   taken, log = Taken(), open("loaded", "a")
#   ''')
#   layout("--jobs 1 --vary {n}=1,2,3,4,5,6 -- {n}")
#   assert sorted(lines("ends")) == ["0"] + ["1"] * 7, lines("ends")
#   assert sum(lines("text%d" % n).count("written") for n in range(1, 7)) == 6
#   assert lines("loaded").count("written") == 8 and lines("apart").count("apart") == 1
import early

class Last:
    def __del__(self, count=gc.get_freeze_count, write=os.write, to=os.open("ends", os.O_WRONLY | os.O_APPEND | os.O_CREAT)):
        write(to, b"%d\n" % (count() > 100000))

cuda.zeros(1 << 20)
last = [Last(), open("text" + sys.argv[1], "w")]
last.append(last)
last[1].write("written\n")
early.log.write("written\n")
