"""Steps are steps: what grows from pass to pass is a finding of its own, and one pass is no leak."""
from support.small import cuda, nn, sys, torch

# case: validation
# run: record --frames -- validation
# run: diagnose run.cft
# match: ^verdict: growth inside a phase
# match: ^memory grows by .* pass after pass after the last step, .*; 9[0-9] % of it is requested at .*steps_phases.py:.*; no backward pass releases it

# python: shell("$CUFRAG advise run.cft")
# match: ^nothing kept in a phase +.*steps_phases.py:

# the arithmetic agrees with itself, and the line with most of the growth is blamed
# case: losses
# run: record --frames -- losses
# run: diagnose run.cft
# match: ^memory that outlives its pass grows by .* over 40 passes .*; 6[0-9] % of it is requested at .*steps_phases.py:<2>
# check: (lambda m: abs(float(m[1]) * 40 - float(m[2])) < 0.3)(re.search("by ([0-9.]+) MiB per pass, ([0-9.]+) MiB", log))

# case: forward
# run: record --frames -- forward
# run: diagnose run.cft
# match: ^verdict: steady
# match: ^nothing is wrong: .*; most is held by .*steps_phases.py
# never: leak

# case: first
# fails: record --frames --capacity 692M --context 300M -- forward
# fails 6: diagnose run.cft
# match: ^verdict: oom: 
# match: ; it ran out in its first step; most is held by .*steps_phases.py
# never: leak

# without stacks, layers are no steps either
# case: layers
# fails: record --capacity 692M --context 300M -- forward
# fails 6: diagnose run.cft
# match: ; it ran out in its first step; record with stacks to see who holds it
# never: leak|found from a request
# run: explain run.cft
# match: was refused in the first step; the program needs more memory

# what is lost by fragmentation leads, and fills the recorded card
# case: pins
# run: PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:20,expandable_segments:True record --gpu v100-16 --frames -- pins
# run: diagnose run.cft
# match: ^verdict: fragmentation
# match: ^memory that outlives its step grows by 2 MiB per step, 80 MiB over 40 steps .* more reserved per step v100-16 of 15[0-9.]* GiB is full after [0-9][0-9] more

# loading grows, too, and a pool for each graph is no leak
# case: loading
# run: record --frames -- loading
# run: diagnose run.cft
# match: ^verdict: fragmentation
# match: ^.* could be saved: with expandable_segments:True
# never: growth

# case: graphs
# run: record --frames -- graphs
# run: diagnose run.cft
# match: ^verdict: fragmentation
# never: leak|growth

# case: retry
# run: record --frames --capacity 9G -- retry
# fails 6: diagnose run.cft
# match: ; 8 GiB of that was allocated by the attempt that was refused at event [0-9]+: the traceback
case = sys.argv[1]

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(256), nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(self.norm(x))))

m = nn.Sequential(*[Block() for _ in range(24 if case == "forward" else 2)]).cuda()
o = torch.optim.AdamW(m.parameters())
total, kept = 0, []
if case == "validation":
    for _ in range(6):
        m(cuda.ones(4096, 256)).square().mean().backward()
        o.step()
        o.zero_grad()
    for _ in range(12):
        x = cuda.ones(4096, 256)
        kept.append(m(x))
for _ in range(40 if case == "losses" else 0):
    x = cuda.ones(4096, 512)
    total = total + torch.relu(m[0].a(x[:, :256]).mul(2)).mean()  # <2>
if case == "loading":
    del m, o
    first, second = ([cuda.empty(n << 18) for _ in range(24)] for n in (530, 270))
    for i in range(24):
        kept.append(cuda.empty(530 << 18))
        first[i] = None
        kept.append(cuda.empty(270 << 18))
    second.clear()
    torch.cuda.empty_cache()
    kept += [cuda.empty(1 << 28) for _ in range(4)]
with torch.no_grad():
    for i in range(12 if case == "graphs" else 0):
        x = cuda.ones(4096 * (i + 1), 256)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            kept.append((g, x, m(x)))
for n in (2, 1) if case == "retry" else ():
    try:
        def attempt():
            held = []
            while True:
                held.append(cuda.empty(n << 28))
        attempt()
    except torch.OutOfMemoryError as e:
        total = e
if case == "forward":
    m(cuda.ones(4096, 256)).square().mean()
for _ in range(40 if case == "pins" else 0):
    a, b = cuda.empty(91 << 18), cuda.empty(91 << 17)
    kept.append(cuda.empty(2 << 18))
    del a, b
