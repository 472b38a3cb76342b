"""The greatest batch that fits, by fit and by scale: greatest_batch.py BATCH."""
from support.small import encoder, sys, train

# needs: tool gnuplot
# run: fit --capacity 1200M --context 512M --vary {b}=1..64 -- {b}
# python:
#   best = int(re.search("^answer: of {b} = .*, (\d+) is the greatest", log, re.M)[1])
#   assert 1 < best < 64
#   match("^ +%d +no " % (best + 1))
#   match("^ +%d +yes " % best)
#   never("^Traceback") or match(r"py:\d+: CUDA out of memory. Tried to allocate [\d.]+ .iB.$")
#   run("scale --capacity 1200M --context 512M --vary {b}=2,4,8 --out curve -- {b}")
#   match("with the settings of the program it is %d$" % best)
#   assert len(lines("curve/scale.csv")) > 6
train(encoder(), int(sys.argv[1]), 128, 512)
