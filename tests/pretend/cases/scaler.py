"""Gradients of half precision: whether they overflow, and so whether a step is skipped."""
from support.small import cuda, F, nn, sys, torch

# gradients are not computed: a line says so, and the user may say which steps overflow
# case: told
# run: record -- plain
# expect: plain 65536.0 [3, 3]
# run: info run.cft
# match: invented 3 x at .*scaler.py:<1>: whether gradients overflow
# python:
#   write("told", "scaler.py:%s 1 1 0\n" % filled("<1>"))
#   run("record --values told -- plain")
#   # before PyTorch 2.3, the scale itself is not computed
#   expect("plain %s [1, 1]" % (65536.0 if release("torch") < [2, 3] else 16384.0))

# case: small
# run: record -- small
# expect: small 65536.0 [3, 3]

# losses that add up frames or rows are too steep at their own end
# case: steep
# needs: torch>=2.3
# run: record -- steep
# expect: frames 8192.0 []
# expect: sums 8192.0 []
# expect: means 65536.0 [3, 3]

def train(name, layer, batch, loss):
    scaler, optimizer = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)(), torch.optim.AdamW(layer.parameters())
    for _ in range(3):
        with torch.autocast("cuda", torch.float16):
            scaler.scale(loss(layer(cuda.randn(batch, layer.in_features)).float())).backward()
        scaler.step(optimizer)  # <1>
        scaler.update()
        optimizer.zero_grad()
    print(name, scaler.get_scale(), [int(s["step"]) for s in optimizer.state.values()])

if sys.argv[1] == "plain":
    train("plain", nn.Linear(4096, 4096).cuda(), 256, lambda y: y.square().mean())
elif sys.argv[1] == "small":
    train("small", nn.Linear(512, 512).cuda(), 256, lambda y: y.square().mean())
else:
    torch.backends.cudnn.enabled = False
    sizes = torch.full((4,), 200), torch.full((4,), 20)
    text, rows = cuda.randint(1, 32, (4, 20)), cuda.randint(0, 32, (800,))
    losses = {"frames": lambda y: F.ctc_loss(y.log_softmax(-1).view(4, 200, 32).transpose(0, 1), text, *sizes, reduction="sum"),
              "sums": lambda y: F.cross_entropy(y / 0.1, rows, reduction="sum"),
              "means": lambda y: F.cross_entropy(y / 0.1, rows)}
    for name, loss in losses.items():
        train(name, nn.Linear(4096, 32).cuda(), 800, loss)
