# SPDX-License-Identifier: Apache-2.0
"""With --values computed: operators of the card that the CPU does not have, or that go on by numbers which they made, give what the CPU's modules
give. Prints "is not" where they do not, and how many were alike."""
# run: record --values computed
# expect: alike 28
import torch
import torch.nn as nn
import torch.nn.functional as F

alike = 0


def both(name, make, tolerance=1e-3):
    """make: a list of tensors, by device."""
    global alike
    got = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        got.append([t.detach().float().cpu() for t in make(device)])
    same = len(got[0]) == len(got[1]) and all(torch.allclose(a, b, tolerance, tolerance) for a, b in zip(*got))
    alike += same
    if not same:
        print("%s: %s is not %s" % (name, [t.flatten()[:3].tolist() for t in got[1]], [t.flatten()[:3].tolist() for t in got[0]]))


def flat(values):
    return [t for v in values for t in flat(v)] if isinstance(values, (tuple, list)) else [values]


def trained(make, inputs, call=None, training=True):
    """What a module gives, all gradients, and its buffers."""
    def run(device):
        module, given = make().to(device).train(training), [x.to(device, copy=True).requires_grad_() for x in inputs]
        made = flat(call(module, *given) if call else module(*given))
        sum((t * torch.linspace(0.5, 1.5, t.numel(), device=device).view(t.shape)).sum() for t in made).backward()
        return made + [x.grad for x in given] + [p.grad for p in module.parameters()] + list(module.buffers())
    return run


def packed(module, x):
    y, states = module(nn.utils.rnn.pack_padded_sequence(x, [7, 5, 2]))
    return y.data, states


class Sampled(nn.Module):
    def forward(self, x, grid):
        return F.grid_sample(x, grid, align_corners=True)


class Grid(nn.Module):
    def forward(self, theta):
        return F.affine_grid(theta, (4, 3, 5, 6), align_corners=True)


def synchronized(images):
    """A norm over several ranks in its parts, of which there is one here, beside the whole."""
    def run(device):
        x, weight, bias = images.to(device, copy=True), torch.full((6,), 2.0, device=device), torch.ones(6, device=device)
        mean, var, grad = torch.zeros(6, device=device), torch.ones(6, device=device), x.cos()
        if device == "cpu":
            x, weight, bias = (t.requires_grad_() for t in (x, weight, bias))
            y = F.batch_norm(x, mean, var, weight, bias, True)
            y.backward(grad)
            return [y, mean, var, weight.grad, bias.grad, x.grad]
        own, rstd = torch.batch_norm_stats(x, 1e-5)
        count = torch.tensor([x.numel() / 6], device=device)
        own, rstd = torch.batch_norm_gather_stats_with_counts(x, own[None], rstd[None], mean, var, 0.1, 1e-5, count)
        sums = torch.batch_norm_backward_reduce(grad, x, own, rstd, weight, True, True, True)
        return [torch.batch_norm_elemt(x, weight, bias, own, rstd, 1e-5), mean, var, *sums[2:],
                torch.batch_norm_backward_elemt(grad, x, own, rstd, weight, *sums[:2], count.int())]
    return run


def counted(device):
    i = torch.arange(1000, device=device) * 7 % 9
    return [torch.bincount(i), torch.bincount(i, minlength=20), torch.arange(5, device=device).repeat_interleave(torch.arange(5, device=device)),
            torch.isin(i, torch.tensor([1, 3], device=device)), torch.searchsorted(torch.arange(9, device=device), i), torch.histc(i.float(), 9)]


def solved(device):
    a = torch.eye(5, device=device) * 3 + torch.arange(25.0, device=device).view(5, 5).cos()
    a = a @ a.mT
    return [torch.linalg.cholesky(a), torch.linalg.inv(a), torch.linalg.eigvals(a).abs().sort()[0], torch.linalg.matrix_exp(a / 30)]


torch.manual_seed(0)
images, words = torch.randn(4, 6, 9, 10), torch.randn(7, 3, 5)
for training in (True, False):
    both("norm", trained(lambda: nn.BatchNorm2d(6), [images], training=training))
both("net", trained(lambda: nn.Sequential(nn.Conv2d(6, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 8, 3)), [torch.randn(16, 6, 64, 64)]), 5e-3)
both("norm of ranks", synchronized(images))
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    for settings in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}, {"bias": False}):
        both("%s %s" % (kind.__name__, settings), trained(lambda: kind(5, 8, **settings), [words]))
    both("packed", trained(lambda: kind(5, 8), [words], packed))
both("LSTM with a projection", trained(lambda: nn.LSTM(5, 8, proj_size=4), [words]))
for cell in (nn.LSTMCell, nn.GRUCell):
    for bias in (True, False):
        both(cell.__name__, trained(lambda: cell(5, 8, bias=bias), [words[0]]))
both("sampled", trained(Sampled, [images, torch.rand(4, 5, 5, 2) * 2 - 1]))
both("grid", trained(Grid, [torch.randn(4, 2, 3)]))
both("counted", counted)
both("solved", solved)
print("alike", alike)
