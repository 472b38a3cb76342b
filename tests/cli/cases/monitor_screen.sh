# full screen on a terminal of 100 by 16: what is drawn, and q
# needs: cc python3
. "$DATA/made.sh"
fake_nvml growth
export TERM=vt100 LC_ALL=C.UTF-8 PYTHONPATH="$DATA" PYTHONDONTWRITEBYTECODE=1
cat > seen.py << 'PY'
import os, sys
from terminal import Terminal
def see(wanted, *options, **environment):
    t = Terminal([os.environ["CUFRAG"], "monitor", "--interval", "100ms", *options], 16, 100, **environment)
    seen = [(w, t.wait_for(w)) for w in wanted]
    if "--plain" not in options:
        t.type("q")
    print(t.told())
    for w, there in seen:
        print(w, "yes" if there else "NO")
    t.close()
see(["cufrag monitor", "q: end", "gpu 0", "██", "░░", "▇", "50 GiB of 100 GiB", "busy  98 %", "NVIDIA H100", "alarm: gpu 0 uses 9"],
    "--alarm", "85%")
see(["non-releasable", "4000002"], FAKE_NVML="processes")
see([r"used \(10 %\)"], "--plain", "--count", "3", FAKE_NVML="processes")
PY
python3 seen.py
rm seen.py
