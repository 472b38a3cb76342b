# a script of Python in place of a command: what does it need, and on which card? Here a shell that
# leaves a recording stands for the interpreter. It is fit --no-gpu.
mkdir bin && printf '#!/bin/sh\necho "runs: $*" >&2\ncp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/1.pickle"\n' > bin/python3
chmod +x bin/python3 && : > train.py
PATH=$PWD/bin:$PATH "$CUFRAG" train.py --batch 8
