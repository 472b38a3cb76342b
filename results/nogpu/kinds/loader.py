# SPDX-License-Identifier: Apache-2.0
"""Data loading: workers with pinned memory, a prefetching stream with record_stream, fp16 with a scaler, channels last, an average of weights, evaluation."""
import copy

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        r = np.random.default_rng(i)
        return torch.from_numpy(r.random((3, 256, 256), dtype=np.float32)), torch.from_numpy(r.integers(0, 21, (256, 256)))


class Prefetch:
    def __init__(self, loader):
        self.loader, self.stream = iter(loader), torch.cuda.Stream()
        self.load()

    def load(self):
        try:
            x, y = next(self.loader)
        except StopIteration:
            self.batch = None
            return
        with torch.cuda.stream(self.stream):
            self.batch = (x.to("cuda", non_blocking=True, memory_format=torch.channels_last), y.to("cuda", non_blocking=True))

    def __iter__(self):
        while self.batch is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.batch
            for t in batch:
                t.record_stream(torch.cuda.current_stream())
            self.load()
            yield batch


def conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.1, inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([conv(3, 32), conv(32, 64), conv(64, 128), conv(128, 256)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(256, 128, 2, 2), nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)])
        self.join = nn.ModuleList([conv(256, 128), conv(128, 64), conv(64, 32)])
        self.head = nn.Conv2d(32, 21, 1)

    def forward(self, x):
        kept = []
        for d in self.down:
            x = d(nn.functional.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


def main():
    torch.manual_seed(0)
    net = UNet().cuda().to(memory_format=torch.channels_last)
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    o = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler()
    loader = DataLoader(Data(), batch_size=24, num_workers=2, pin_memory=True, persistent_workers=True, prefetch_factor=2)
    for _ in range(2):
        for x, y in Prefetch(loader):
            with torch.autocast("cuda", torch.float16):
                loss = nn.functional.cross_entropy(net(x), y, label_smoothing=0.1, ignore_index=0)
            scaler.scale(loss).backward()
            scaler.unscale_(o)
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            scaler.step(o)
            scaler.update()
            o.zero_grad()
            average.update_parameters(net)
    confusion = torch.zeros(21, 21, dtype=torch.long, device="cuda")
    average.eval()
    with torch.inference_mode():
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            p = average(x).argmax(1)
            keep = y != 255
            confusion += torch.bincount(y[keep] * 21 + p[keep], minlength=441).view(21, 21)
    (confusion.diag().float() / confusion.sum(1)).nanmean().item()
    best = copy.deepcopy(net.state_dict())
    net.load_state_dict({k: v.cpu() for k, v in best.items()})


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
