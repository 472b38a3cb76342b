#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cuDNN takes for convolutions, as the table that src/pretend/libraries/conv_table.csv is.

    conv_workspaces.py shapes > shapes.csv                      # no card: the convolutions of common nets
    conv_workspaces.py measure shapes.csv OUT.csv [SECONDS]     # on a card: their workspaces, most wanted first
    conv_workspaces.py search shapes.csv OUT.csv [SECONDS]      # on a card: the same with cudnn.benchmark, as all plans are tried
    conv_workspaces.py spread SEED COUNT > spread.csv           # no card: shapes of no net, as measure takes them, too
    conv_workspaces.py merge OLD.csv NEW.csv > TABLE.csv

shapes needs torchvision and timm; a line is c,k,h,w,r,s,stride,pad,dilation,groups. measure stops after SECONDS (95) with
what it has; what cannot run is left out. A line of the table: op,type,layout,c,k,r,s,stride,pad,dilation,groups,n,h,w,bytes.
"""
import csv
import random
import sys
import time

HEAD = "op,type,layout,c,k,r,s,stride,pad,dilation,groups,n,h,w,bytes"
TORCHVISION = """resnet18 resnet50 vgg16 densenet121 mobilenet_v2 mobilenet_v3_large efficientnet_b0 convnext_tiny vit_b_16 swin_t
    resnext50_32x4d efficientnet_v2_s wide_resnet50_2 googlenet squeezenet1_0 shufflenet_v2_x1_0 alexnet convnext_base
    segmentation.fcn_resnet50 segmentation.deeplabv3_resnet50""".split()
TIMM = "vit_small_patch16_224 vit_large_patch16_224 vit_base_patch32_224 mixer_b16_224 mobilenetv4_conv_medium resnet50d".split()
# c, k, side, kernel, stride: a diffusion model, a U-Net for pictures of 256
MORE = [(4, 320, 64, 3, 1), (320, 320, 64, 3, 1), (320, 320, 64, 3, 2), (320, 640, 32, 3, 1), (640, 640, 32, 3, 1), (640, 640, 32, 3, 2),
        (640, 1280, 16, 3, 1), (1280, 1280, 16, 3, 1), (1280, 1280, 16, 3, 2), (1280, 1280, 8, 3, 1), (2560, 1280, 8, 3, 1),
        (2560, 1280, 16, 3, 1), (1920, 1280, 16, 3, 1), (1920, 640, 32, 3, 1), (1280, 640, 32, 3, 1), (960, 640, 32, 3, 1),
        (960, 320, 64, 3, 1), (640, 320, 64, 3, 1), (320, 4, 64, 3, 1), (320, 320, 64, 1, 1), (640, 640, 32, 1, 1), (1280, 1280, 16, 1, 1),
        (3, 64, 256, 3, 1), (1, 64, 256, 3, 1), (64, 64, 256, 3, 1), (64, 128, 128, 3, 1), (128, 128, 128, 3, 1), (128, 256, 64, 3, 1),
        (256, 256, 64, 3, 1), (256, 512, 32, 3, 1), (512, 512, 32, 3, 1), (512, 1024, 16, 3, 1), (1024, 1024, 16, 3, 1),
        (1024, 512, 32, 3, 1), (512, 256, 64, 3, 1), (256, 128, 128, 3, 1), (128, 64, 256, 3, 1), (64, 2, 256, 1, 1), (64, 1, 256, 1, 1),
        (512, 1024, 32, 2, 2), (256, 512, 64, 2, 2), (128, 256, 128, 2, 2), (64, 128, 256, 2, 2),
        (3, 128, 32, 3, 1), (128, 128, 32, 3, 1), (128, 128, 32, 3, 2), (128, 256, 16, 3, 1), (256, 256, 16, 3, 1), (256, 256, 16, 3, 2),
        (256, 256, 8, 3, 1), (512, 256, 16, 3, 1), (384, 256, 16, 3, 1), (256, 128, 32, 3, 1), (1, 32, 28, 3, 1), (32, 64, 28, 3, 1),
        (3, 64, 32, 3, 1), (64, 64, 32, 3, 1), (64, 128, 32, 3, 2), (128, 128, 16, 3, 1), (128, 256, 16, 3, 2), (256, 512, 8, 3, 2),
        (512, 512, 4, 3, 1)]
# c, k, length, kernel, stride: Whisper, wav2vec 2.0; Conv1d is a convolution of height 1
AUDIO = [(80, 384, 3000, 3, 1), (384, 384, 3000, 3, 2), (80, 512, 3000, 3, 1), (512, 512, 3000, 3, 2), (80, 768, 3000, 3, 1),
         (768, 768, 3000, 3, 2), (1, 512, 16000, 10, 5), (512, 512, 3199, 3, 2), (512, 512, 399, 2, 2)]


def shapes():
    import importlib
    import timm
    import torch
    seen = {}

    def hook(module, args, _):
        x = args[0]
        h, w = (1, x.shape[2]) if x.dim() == 3 else x.shape[2:]
        one = lambda v: v[-1]
        row = (x.shape[1], module.out_channels, h, w, 1 if x.dim() == 3 else module.kernel_size[0], one(module.kernel_size),
               one(module.stride), one(module.padding) if not isinstance(module.padding, str) else module.kernel_size[-1] // 2,
               one(module.dilation), module.groups)
        seen.setdefault(row)
    models = [("torchvision.models." + n).rsplit(".", 1) for n in TORCHVISION]
    for module, name in models + [("timm", n) for n in TIMM]:
        with torch.device("meta"):
            model = timm.create_model(name) if module == "timm" else getattr(importlib.import_module(module), name)(
                weights=None, **({"weights_backbone": None} if "segm" in module else {}))
            for m in model.modules():
                if isinstance(m, torch.nn.Conv2d):
                    m.register_forward_hook(hook)
            model.eval()(torch.empty(2, 3, 224, 224))
        print(name, len(seen), file=sys.stderr)
    for c, k, side, r, stride in MORE:
        seen.setdefault((c, k, side, side, r, r, stride, r // 2 if stride < r else 0, 1, 1))
    for c, k, length, r, stride in AUDIO:
        seen.setdefault((c, k, 1, length, 1, r, stride, 1 if r == 3 and c != 512 else 0, 1, 1))
    for row in seen:
        print(*row, sep=",")


def spread(seed, count):
    """Shapes of no net in particular, to see what lies between those of the table: type,layout,n and a line of shapes."""
    rng = random.Random(seed)
    channels = [3, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512, 640, 768, 960, 1024, 1280, 1536, 2048]
    sides = [4, 5, 7, 8, 10, 13, 14, 16, 17, 20, 25, 28, 31, 32, 33, 40, 45, 48, 50, 56, 64, 65, 75, 80, 97, 100, 112, 128, 160, 192, 256]
    for _ in range(count):
        name, layout = rng.choices([("fp32", "nchw"), ("bf16", "nchw"), ("bf16", "nhwc"), ("fp32", "nhwc"), ("fp16", "nchw"), ("fp16", "nhwc")],
                                   [3, 3, 3, 2, 1, 1])[0]
        n, c, k = rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64]), rng.choice(channels), rng.choice(channels)
        h = rng.choice(sides)
        w, kind, dilation, groups = h if rng.random() < 0.6 else rng.choice(sides), rng.random(), 1, 1
        if kind < 0.4:
            r, stride, pad = 1, rng.choice([1, 1, 1, 1, 2]), 0
        elif kind < 0.6:
            r, stride, pad = 3, rng.choice([1, 1, 1, 2]), 1
        elif kind < 0.7:
            r, stride, pad = 3, 1, rng.choice([2, 4, 6, 12, 18, 24, 36])
            dilation = pad
        elif kind < 0.86:  # single channels, or several together
            r, stride = rng.choice([3, 5, 7]), rng.choice([1, 1, 2])
            pad, groups = r // 2, c if kind < 0.8 else rng.choice([2, 4, 8, 16, 32])
            c = k = max(c, groups) // groups * groups
        else:
            r, stride, pad = rng.choice([(5, 1, 2), (7, 2, 3), (4, 2, 1), (4, 4, 0), (16, 16, 0), (2, 2, 0), (7, 1, 3), (11, 4, 2)])
        if n * h * w * max(c, k) < 1 << 27:
            print(name, layout, n, c, k, h, w, r, r, stride, pad, dilation, groups, sep=",")


def plan_of(path):
    """Lines of `shapes` in several sizes and types, most wanted first: what is interpolated needs the ends and the middle."""
    with open(path) as f:
        rows = [line for line in csv.reader(f) if line]
    if rows and not rows[0][0].isdigit():
        return [(row[0], row[1], *(int(v) for v in row[2:])) for row in rows]
    rows = [tuple(int(v) for v in row) for row in rows]
    return [(t, layout, n, *row) for n in (32, 8, 128, 64, 16)
            for t, layout in (("fp32", "nchw"), ("bf16", "nchw"), ("bf16", "nhwc"), ("fp32", "nhwc")) for row in rows]


def measure(shapes_path, out_path, seconds, search):
    import torch
    torch.backends.cudnn.benchmark = search
    end = time.monotonic() + seconds
    types = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    device, done, failed = "cuda", 0, 0
    with open(out_path, "w") as out:
        print(HEAD, file=out)
        for name, layout, n, c, k, h, w, r, s, stride, pad, dilation, groups in plan_of(shapes_path):
            if time.monotonic() > end:
                print("stopped before %s %s of %d images" % (name, layout, n), file=sys.stderr)
                break
            if n * h * w * max(c, k) * 4 > 8 << 30:
                continue
            form = torch.channels_last if layout == "nhwc" else torch.contiguous_format
            pads = [pad if r > 1 or h > 1 else 0, pad]
            strides = [stride if h > 1 else 1, stride]
            dilations = [dilation if h > 1 else 1, dilation]
            try:
                x = torch.empty(n, c, h, w, device=device, dtype=types[name], memory_format=form)
                f = torch.empty(k, c // groups, r, s, device=device, dtype=types[name], memory_format=form)
                args = [None, strides, pads, dilations, False, [0, 0], groups]
                y = torch.ops.aten.convolution(*((x.to("meta"), f.to("meta")) if search else (x, f)), *args)
                g = torch.empty(y.shape, device=device, dtype=types[name], memory_format=form)
                ops = [("forward", lambda: [torch.ops.aten.convolution(x, f, *args)])]
                if c > 4:  # pictures need no gradient
                    ops.append(("data", lambda: torch.ops.aten.convolution_backward(g, x, f, *args, [True, False, False])))
                ops.append(("filter", lambda: torch.ops.aten.convolution_backward(g, x, f, *args, [False, True, False])))
                del y
                for op, run in ops:
                    if op != "forward" and not search:
                        run()  # the plan is made
                    torch.cuda.reset_peak_memory_stats()
                    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
                    kept = run()
                    peak = torch.cuda.memory_stats()["requested_bytes.all.peak"]
                    size = sum(t.numel() * t.element_size() for t in kept if t is not None)
                    del kept
                    print(op, name, layout, c, k, r, s, stride, pad, dilation, groups, n, h, w, peak - before - size,
                          sep=",", file=out)
                    done += 1
            except RuntimeError as error:
                failed += 1
                print("%s %s %s: %s" % (name, layout, (n, c, k, h, w), str(error).splitlines()[0]), file=sys.stderr)
            x = f = y = g = None
            out.flush()
    print("%d measured, %d could not run, %.0f s left" % (done, failed, end - time.monotonic()), file=sys.stderr)


def merge(paths):
    """One size for each: the newest file's."""
    table = {}
    for path in paths:
        with open(path) as f:
            for row in csv.DictReader(f):
                if row["h"] == row["w"] == row["r"] == row["s"] == "1":
                    row["layout"] = "nhwc"  # one point lies in both ways: cuDNN sees channels last
                key = tuple(row[k] for k in HEAD.split(",")[:3]) + tuple(int(row[k]) for k in HEAD.split(",")[3:-1])
                table[key] = int(row["bytes"])
    print(HEAD)
    for key in sorted(table):
        print(*key, table[key], sep=",")


if __name__ == "__main__":
    if sys.argv[1] == "shapes":
        shapes()
    elif sys.argv[1] == "spread":
        spread(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] in ("measure", "search"):
        measure(sys.argv[2], sys.argv[3], float(sys.argv[4]) if len(sys.argv) > 4 else 95, sys.argv[1] == "search")
    else:
        merge(sys.argv[2:])
