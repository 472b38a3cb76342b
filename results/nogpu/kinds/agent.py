# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning on the card: many environments, masks that choose rows, replay with priorities, several networks, target copies, advantage scans."""
import copy

import torch
import torch.nn as nn


class Environments:
    def __init__(self, n):
        self.state, self.steps = torch.randn(n, 32, device="cuda"), torch.zeros(n, dtype=torch.long, device="cuda")

    def step(self, action):
        self.state = self.state * 0.99 + torch.nn.functional.one_hot(action, 32).float() * 0.1
        self.steps += 1
        done = self.steps >= 20 + torch.arange(len(action), device="cuda") % 13
        self.state[done] = torch.randn(int(done.sum()), 32, device="cuda")
        self.steps[done] = 0
        return self.state, self.state[:, 0].clone(), done


class Replay:
    def __init__(self, n):
        self.n, self.at, self.full = n, 0, 0
        self.s, self.s2 = torch.zeros(n, 32, device="cuda"), torch.zeros(n, 32, device="cuda")
        self.a, self.r, self.d = torch.zeros(n, dtype=torch.long, device="cuda"), torch.zeros(n, device="cuda"), torch.zeros(n, device="cuda")
        self.p = torch.zeros(n, device="cuda")

    def add(self, s, a, r, s2, d):
        i = (torch.arange(len(a), device="cuda") + self.at) % self.n
        self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i] = s, a, r, s2, d.float()
        self.p[i] = 1.0
        self.at, self.full = (self.at + len(a)) % self.n, min(self.full + len(a), self.n)

    def sample(self, n):
        total = self.p[:self.full].pow(0.6).cumsum(0)
        i = torch.searchsorted(total, torch.rand(n, device="cuda") * total[-1]).clamp(max=self.full - 1)
        return i, self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i]


def mlp(a, b):
    return nn.Sequential(nn.Linear(a, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, b)).cuda()


def main():
    torch.manual_seed(0)
    env, replay, q = Environments(4096), Replay(1 << 20), mlp(32, 16)
    target, o = copy.deepcopy(q), torch.optim.AdamW(q.parameters(), lr=1e-4)
    s = env.state
    for step in range(60):
        with torch.no_grad():
            explore = torch.rand(4096, device="cuda") < 0.2
            a = torch.where(explore, torch.randint(0, 16, (4096,), device="cuda"), q(s).argmax(1))
        s2, r, d = env.step(a)
        replay.add(s, a, r, s2, d)
        s = s2
        if step % 4 == 3:
            i, bs, ba, br, bs2, bd = replay.sample(65536)
            with torch.no_grad():
                goal = br + 0.99 * (1 - bd) * target(bs2).gather(1, q(bs2).argmax(1, keepdim=True)).squeeze(1)
            error = q(bs).gather(1, ba[:, None]).squeeze(1) - goal
            nn.functional.huber_loss(error, torch.zeros_like(error)).backward()
            o.step()
            o.zero_grad()
            replay.p[i] = error.detach().abs() + 1e-3
            with torch.no_grad():
                for t, p in zip(target.parameters(), q.parameters()):
                    t.lerp_(p, 0.01)
    del replay, bs, bs2, error, goal
    actor, critic = mlp(32, 16), mlp(32, 1)
    o = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4, eps=1e-5)
    for _ in range(2):
        rows = []
        with torch.no_grad():
            for _ in range(32):
                policy = torch.distributions.Categorical(logits=actor(s))
                a = policy.sample()
                s2, r, d = env.step(a)
                rows.append((s, a, policy.log_prob(a), critic(s).squeeze(1), r, d.float()))
                s = s2
            S, A, L, V, R, D = map(torch.stack, zip(*rows))
            gain, carry = torch.zeros_like(R), 0
            for t in range(30, -1, -1):
                delta = R[t] + 0.99 * V[t + 1] * (1 - D[t]) - V[t]
                carry = gain[t] = delta + 0.99 * 0.95 * (1 - D[t]) * carry
        data = [x.flatten(0, 1) for x in (S, A, L, gain, gain + V)]
        for _ in range(2):
            for i in torch.randperm(len(data[0]), device="cuda").split(16384):
                bs, ba, bl, bg, bv = (x[i] for x in data)
                policy = torch.distributions.Categorical(logits=actor(bs))
                ratio = (policy.log_prob(ba) - bl).exp()
                bg = (bg - bg.mean()) / (bg.std() + 1e-8)
                loss = -torch.min(ratio * bg, ratio.clamp(0.8, 1.2) * bg).mean() + (critic(bs).squeeze(1) - bv).square().mean() - 0.01 * policy.entropy().mean()
                o.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
                o.step()
    firsts = (torch.cat([torch.zeros(1, 4096, device="cuda"), D[:-1]]) > 0).nonzero()
    S[firsts[:, 0], firsts[:, 1]].mean(0)
    torch.unique(A, return_counts=True)
    torch.histc(R, 100)
    R.flatten().quantile(torch.tensor([0.1, 0.5, 0.9], device="cuda"))


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
