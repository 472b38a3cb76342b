"""No room for a recording: the program goes on, and the command says so and fails: REQUESTS."""
from support.small import cuda, sys

# case: file
# run: run -- 1
# python:
#   shell("ulimit -f 20; $CUFRAG run --no-gpu --record run.cft -- %s no_room.py 20000" % python, 5)
#   expect("done")
#   match("1 of 1 processes could not write all")
#   assert not os.path.exists("run.cft") and any(".cft" in f for f in os.listdir("run.cft.parts"))

# what the program prints has no room, either
# case: folder
# run: run -- 1
# python:
#   try:
#       shell("[ -w /dev/full -a $(id -u) = 0 ] && mkdir tmp && mount -t tmpfs -o size=64k none tmp")
#   except AssertionError:
#       skip("cannot mount a small folder here")
#   try:
#       small = os.path.abspath("tmp")
#       run("record -- 20000", status=5, TMPDIR=small)
#       match("1 of 1 recordings could not be written")
#       assert not os.path.exists("run.cft")
#       shell("head -c 64k /dev/zero > tmp/full", status=...)
#       run("layout --gpu h100 --policies pytorch --check 0 --vary {n}=20000 -- {n}", status=..., TMPDIR=small)
#       match("n=20000 failed, .*set TMPDIR to a folder with more room")
#   finally:
#       shell("umount tmp")
for i in range(int(sys.argv[1])):
    kept = cuda.zeros(10 + i)
print("done")
