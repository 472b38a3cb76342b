"""A loop that would wait forever for a number that is not computed ends."""
from support.small import cuda

# python: run("record", seconds=240)
# expect: balanced True below True above True written 100
big = cuda.rand(4096, 4096) @ cuda.rand(4096, 4096)

def balance(cost, rounds=0):
    rows, error = cuda.ones(4096), 1e9
    while error > 1e-4:
        error = (cost @ rows - rows).abs().mean()
        rounds += 1
    return rounds

def below(rounds=0):
    while True:
        rounds += 1
        if (big.sum() * rounds).item() < 1:
            break
    return rounds

def above(rounds=0):
    error = big.sum().item()
    while error < 1e6:
        error = (big.sum() - rounds).item()
        rounds += 1
    return rounds

def written(rounds=0):
    while rounds < 50 and (big.sum() * rounds).item() != 7.25:
        rounds += 1
    while (big.sum() * rounds).item() != 7.25:
        rounds += 1
        if rounds == 100:
            break
    return rounds

balanced = all(0 < balance(big) < 30 for _ in range(3))
print("balanced", balanced, "below", below() < 30, "above", above() < 30, "written", written())
