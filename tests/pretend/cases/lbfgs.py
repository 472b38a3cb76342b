"""LBFGS stops where the loss no longer falls: invented losses do fall."""
from support.small import cuda, nn, torch

# run: record
# expect: lbfgs 8 8 4
# expect: lbfgs 9 8 4
# verify
for search in None, "strong_wolfe":
    net = nn.Sequential(nn.Linear(4096, 4096), nn.Tanh(), nn.Linear(4096, 4096)).cuda()
    x = cuda.randn(256, 4096)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=8, history_size=4, line_search_fn=search)
    calls = 0

    def closure():
        global calls
        calls += 1
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss
    optimizer.step(closure)
    state = optimizer.state[optimizer._params[0]]
    print("lbfgs", calls, state["n_iter"], len(state["old_dirs"]))
