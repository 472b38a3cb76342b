#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that convolutions take while they run: nogpu_conv.py OUT.csv

Run on a card and, with the same file, without one (`cufrag record --no-gpu --values none`): what the card takes more
is cuDNN's workspace. One line per measurement:
op,type,layout,n,c,h,w,k,r,s,stride,pad,groups,extra_bytes (peak over what was there and what came out).
"""
import itertools
import sys

import torch

# in, out, kernel, stride, groups, size of the image: those of ResNet, EfficientNet, ConvNeXt, ViT, a U-Net
SHAPES = [(3, 64, 7, 2, 1, 224), (64, 64, 1, 1, 1, 56), (64, 64, 3, 1, 1, 56), (64, 256, 1, 1, 1, 56), (256, 64, 1, 1, 1, 56),
          (256, 128, 1, 1, 1, 56), (128, 128, 3, 2, 1, 56), (128, 512, 1, 1, 1, 28), (256, 512, 1, 2, 1, 56),
          (512, 128, 1, 1, 1, 28), (128, 128, 3, 1, 1, 28), (512, 256, 1, 1, 1, 28), (256, 256, 3, 2, 1, 28),
          (256, 1024, 1, 1, 1, 14), (512, 1024, 1, 2, 1, 28), (1024, 256, 1, 1, 1, 14), (256, 256, 3, 1, 1, 14),
          (1024, 512, 1, 1, 1, 14), (512, 512, 3, 2, 1, 14), (512, 2048, 1, 1, 1, 7), (1024, 2048, 1, 2, 1, 14),
          (2048, 512, 1, 1, 1, 7), (512, 512, 3, 1, 1, 7), (64, 128, 3, 2, 1, 56), (64, 128, 1, 2, 1, 56), (128, 256, 3, 2, 1, 28),
          (3, 384, 16, 16, 1, 224), (3, 768, 16, 16, 1, 224), (3, 96, 4, 4, 1, 224), (96, 192, 2, 2, 1, 56), (96, 96, 7, 1, 96, 56),
          (192, 192, 7, 1, 192, 28), (3, 32, 3, 2, 1, 224), (32, 32, 3, 1, 32, 112), (32, 16, 1, 1, 1, 112), (96, 96, 3, 2, 96, 112),
          (4, 128, 3, 1, 1, 64), (128, 256, 3, 1, 1, 64), (256, 512, 3, 1, 1, 32), (512, 512, 3, 1, 1, 16), (1024, 512, 3, 1, 1, 16),
          (256, 256, 3, 1, 1, 64)]


def measure(run):
    """Bytes of the peak above what is there before and what came out."""
    run()  # plans are made
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    kept = run()
    peak = torch.cuda.memory_stats()["requested_bytes.all.peak"]
    out = sum(t.numel() * t.element_size() for t in kept if t is not None)
    return peak - before - out


def main():
    out = open(sys.argv[1], "w")
    print("op,type,layout,n,c,h,w,k,r,s,stride,pad,groups,extra_bytes", file=out)
    for (c, k, r, stride, groups, size), (n, scale), (name, dtype), layout in itertools.product(
            SHAPES, ((16, 1), (32, 1), (64, 1), (32, 5 / 7)), (("bf16", torch.bfloat16), ("fp32", torch.float32)), ("nchw", "nhwc")):
        h = int(size * scale)
        form = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        pad = r // 2 if stride < r else 0
        x = torch.empty(n, c, h, h, device="cuda", dtype=dtype, memory_format=form).normal_()
        w = torch.empty(k, c // groups, r, r, device="cuda", dtype=dtype, memory_format=form).normal_()
        def forward(): return [torch.ops.aten.convolution(x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups)]
        y = forward()[0]
        g = torch.empty_like(y).normal_()

        def backward(mask):
            return list(torch.ops.aten.convolution_backward(g, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, mask))
        for op, run in (("forward", forward), ("data", lambda: backward([True, False, False])), ("filter", lambda: backward([False, True, False]))):
            print(op, name, layout, n, c, h, h, k, r, r, stride, pad, groups, measure(run), sep=",", file=out, flush=True)
        del x, w, y, g
    out.close()


main()
