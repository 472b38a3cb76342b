# where another Transformer Engine asks for the blocks of its norms, the answer names both releases
# needs: python3
"$CUFRAG" record --no-gpu -o run.cft -- python3 -c '
import cufrag_card, importlib.metadata as installed
for release in "2.13.0", "2.9.0", "2.130":
    installed.version = lambda name: release
    print(repr(cufrag_card.norms(b"2.13")))
print(repr(cufrag_card.norms(None)))' 2> /dev/null
