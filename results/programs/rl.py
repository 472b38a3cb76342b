# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning."""
from common import *


@program("on-policy rollouts")
def ppo_vec():
    n = 1024
    pi = on(lambda: nn.Sequential(nn.Linear(48, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(),
                                  nn.Linear(256, 12)))
    vf = on(lambda: nn.Sequential(nn.Linear(48, 256), nn.Tanh(), nn.Linear(256, 1)))
    ls = nn.Parameter(torch.zeros(12, device=dev))
    o = torch.optim.Adam([*pi.parameters(), *vf.parameters(), ls], 3e-4)
    for it in range(2):
        obs, act, lp, val, rew = [], [], [], [], []
        s = N(n, 48)
        with torch.no_grad():
            for t in range(16):
                d = torch.distributions.Normal(pi(s), ls.exp())
                a = d.sample()
                obs.append(s)
                act.append(a)
                lp.append(d.log_prob(a).sum(-1))
                val.append(vf(s)[:, 0])
                s = torch.tanh(s + 0.1 * N(n, 48))
                rew.append(-s.square().sum(-1))
            adv, g = [], torch.zeros(n, device=dev)
            nv = vf(s)[:, 0]
            for t in reversed(range(16)):
                dl = rew[t] + 0.99 * nv - val[t]
                g = dl + 0.95 * 0.99 * g
                adv.insert(0, g)
                nv = val[t]
            O, A, L, D, V_ = map(torch.cat, (obs, act, lp, adv, val))
            ret = D + V_
            D = (D - D.mean()) / (D.std() + 1e-8)
        for e in range(2):
            for ix in torch.randperm(16 * n, device=dev).split(4096):
                d = torch.distributions.Normal(pi(O[ix]), ls.exp())
                r = (d.log_prob(A[ix]).sum(-1) - L[ix]).exp()
                l = (-torch.min(r * D[ix],
                                r.clamp(0.8, 1.2) * D[ix]).mean() + 0.5 *
                     (vf(O[ix])[:, 0] - ret[ix]).square().mean() -
                     0.01 * d.entropy().sum(-1).mean())
                o.zero_grad()
                l.backward()
                nn.utils.clip_grad_norm_([*pi.parameters(), *vf.parameters(), ls], 0.5)
                o.step()


@program("a replay buffer")
def dqn_replay():
    q = on(lambda: nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2),
                                 nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
                                 nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6)))
    t = deepcopy(q)
    o = torch.optim.RMSprop(q.parameters(), 1e-4)
    buf = torch.zeros(20000, 4, 84, 84, dtype=torch.uint8, device=dev)
    for i in range(30):
        a = q(buf[i:i + 1].float() / 255).argmax(1).item()
        buf[i + 1] = T(4, 84, 84, v=255).byte()
        ix = T(64, v=20000)
        s = buf[ix].float() / 255
        with torch.no_grad():
            y = t(s).max(1)[0]
        l = F.smooth_l1_loss(q(s).gather(1, T(64, 1, v=6))[:, 0], y)
        o.zero_grad()
        l.backward()
        nn.utils.clip_grad_value_(q.parameters(), 1)
        o.step()
