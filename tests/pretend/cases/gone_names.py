"""A coming release may lack any private name that cufrag asks for: each is hidden in turn
(support/hidden). The program ends as before, and cufrag says what is missing: KIND."""
from support.small import blocks, cuda, nn, sys, torch, train

# case: plain
# python: hide("plain", r"torch\.(_|cuda)")

# case: ranks
# python: hide("ranks", r".*(distributed_c10d|nn\.parallel)", "--ranks 0 --world 2")

# case: compiled
# needs: package triton
# python: hide("compiled", ".*(triton|_dynamo)")

# case: advice
# run: HIDDEN=torch.nn.modules.module.Module._call_impl PYTHONPATH=support/hidden advise --changes sgd -- plain
# match: ^sgd .* tried\b
# match: went on without what advise sees by Module._call_impl

# which module asks for a card is not seen, so only PyTorch itself is loaded before the forks
# case: layouts
# python: layout("--jobs 1 --vary {n}=1,2,3 -- plain {n}", HIDDEN="torch.cuda._lazy_init", PYTHONPATH="support/hidden")
# check: sum(",fits," in line for line in lines("rows.csv")) == 3
# never: started anew

# the roles are not known without the groups
# case: roles
# fails: HIDDEN=torch.distributed.distributed_c10d._new_process_group_helper PYTHONPATH=support/hidden \
#   record --ranks roles --world 4 -- ranks
# match: went on without roles of ranks: .*_new_process_group_helper
# match: roles of the ranks are not known

def net():
    return nn.Sequential(*blocks(3, 256, 512)).cuda()

def plain():
    train(net(), 64, 256)
    scaler = torch.cuda.amp.GradScaler()
    x = cuda.randn(10, requires_grad=True)
    scaler.scale(x.sum()).backward()
    print("said", (cuda.arange(1000) % 3 == 0).sum().item(), scaler.get_scale())

def compiled():
    train(torch.compile(net()), 64, 256)
    counts = cuda.zeros(1000)
    double[(1,)](counts, 1000, BLOCK=1024)
    print("said", counts.sum().item())

def ranks():
    import torch.distributed as dist
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    told = [{"rank": dist.get_rank()}]
    dist.broadcast_object_list(told, src=1)
    print("said", told)
    group, cpu = dist.new_group(list(range(dist.get_world_size()))), dist.new_group(backend="gloo")
    dist.all_reduce(cuda.ones(4), group=group)
    dist.all_reduce(torch.ones(4), group=cpu)
    train(nn.parallel.DistributedDataParallel(net()), 64, 256)
    dist.destroy_process_group()

if sys.argv[1] == "compiled":
    import triton
    import triton.language as tl

    @triton.jit
    def double(x, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

globals()[sys.argv[1]]()
print("said done", flush=True)
