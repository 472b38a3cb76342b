# SPDX-License-Identifier: Apache-2.0
"""nets.py NAME TYPE LAYOUT BATCH SIDE: three training steps of a net of timm or torchvision, and the allocator's peaks."""
import sys, json, torch, torch.nn.functional as F
name, t, lay, b, side = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
torch.manual_seed(0)
if name.startswith("tv_"):
    import torchvision
    kw = dict(num_classes=100)
    if name[3:] in ("googlenet", "inception_v3"): kw.update(init_weights=False, aux_logits=False)
    m = getattr(torchvision.models, name[3:])(**kw)
else:
    import timm
    m = timm.create_model(name, num_classes=100)
fmt = torch.channels_last if lay == "nhwc" else torch.contiguous_format
m = m.cuda().to(memory_format=fmt)
o = torch.optim.SGD(m.parameters(), 0.01, momentum=0.9)
dt = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[t]
for i in range(3):
    x = torch.randn(b, 3, side, side, device="cuda").to(memory_format=fmt)
    with torch.autocast("cuda", dt, enabled=dt is not None):
        loss = F.cross_entropy(m(x), torch.randint(0, 100, (b,), device="cuda"))
    o.zero_grad(); loss.backward(); o.step()
torch.cuda.synchronize()
s = torch.cuda.memory_stats()
print("RESULT " + json.dumps(dict(name="_".join(sys.argv[1:]), requested=s["requested_bytes.all.peak"], allocated=s["allocated_bytes.all.peak"], reserved=s["reserved_bytes.all.peak"], requests=s["allocation.all.allocated"], segments=s["segment.all.allocated"])))
