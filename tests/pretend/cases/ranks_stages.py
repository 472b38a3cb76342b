"""Stages of a pipeline, and the clock that all ranks share: ranks_stages.py clocks|pipeline."""
import inspect
from support.ranks import begin, card, dist, end, expect, full, rank, torch, world
from support.small import sys, time

# case: clocks
# needs: torch>=2.3
# run: record --ranks 0,1 -- clocks
# check: agree(2) is None

# case: pipeline
# needs: torch>=2.4
# run: record --gpus 2 --- torchrun --nproc-per-node 2 CASE pipeline
# check: agree(2) is None
# verify

def clocks():
    """What is received is over when the sender has begun, on the clock that all ranks share."""
    y = torch.empty(1 << 20, device=card)

    def work(count):
        for _ in range(count):
            y.add_(1)
    for ahead in range(2):
        x = full(rank)
        work(1)
        dist.all_reduce(x)
        torch.cuda.synchronize()
        if rank == ahead:
            time.sleep(1)
        if rank:
            work(200)
            dist.send(x, 0)
            continue
        dist.recv(x, 1)
        event = torch.cuda.Event()
        event.record()
        is_over = [event.query()]
        for count in (150, 100):
            work(count)
            is_over.append(event.query())
        expect("over", is_over, [False, False, True])

def pipeline():
    """Stages tell each other their shapes before they begin."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]).to(card)
    required = inspect.signature(PipelineStage).parameters["input_args"].default is inspect.Parameter.empty  # PyTorch 2.5
    stage = PipelineStage(model, rank, world, card, **({"input_args": (torch.zeros(16, 256, device=card),)} if required else {}))
    schedule = Schedule1F1B(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        x = torch.randn(64, 256, device=card)
        schedule.step(*([x] if rank == 0 else []), **({"target": x} if rank == world - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()

begin()
globals()[sys.argv[1]]()
end()
