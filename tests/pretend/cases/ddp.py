"""DistributedDataParallel in processes of torchrun, and as ranks of cufrag's own."""
from support.ranks import begin, dist, rank, torch, world
from support.small import encoder, train

# case: torchrun
# run: record --- torchrun --nproc-per-node 2 CASE
# match: rank 1 of 2 done
# match: 2 devices
# verify

# PyTorch's own recorder, of all that torchrun starts; the card is a pretended one all the same
# case: own_recorder
# fails 3: record --gpus 2 -o outer.cft --- \
#   cufrag record --torch -o run.cft -- torchrun --nproc-per-node 2 CASE
# match: rank 1 of 2 done
# match: run.cft: 2 devices
# check: not os.path.exists("outer.cft")
# verify

# case: ranks
# run: record --ranks 0,5 --world 8
# match: rank 5 of 8 done
# match: 2 devices
# verify
begin(takes_card=False)
train(torch.nn.parallel.DistributedDataParallel(encoder()), 4, 128, 512)
print("rank %d of %d done" % (rank, world))
dist.destroy_process_group()
