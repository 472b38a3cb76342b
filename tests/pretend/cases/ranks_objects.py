"""Objects of other ranks: of those that do not run, they are this rank's own."""
from support.ranks import begin, dist, rank, torch, world
from support.small import cuda, sys

# run: record --ranks 1 --world 2
# expect: objects [{'rank': 1}, {'rank': 1}] [1] [4, 4] [{'rank': 1}, {'rank': 1}]
# run: record --ranks 0,1 --world 2
# expect: objects [{'rank': 0}, {'rank': 1}] [0] [4, 4] None
# expect: objects [{'rank': 0}, {'rank': 1}] [0] [4, 4] [{'rank': 0}, {'rank': 1}]
begin(takes_card=False)
gathered, given, collected = [None] * world, [rank], [None] * world if rank == 1 else None
dist.all_gather_object(gathered, {"rank": rank})
dist.broadcast_object_list(given, src=0)
counts = [cuda.zeros(1, dtype=torch.long) for _ in gathered]
dist.all_gather(counts, cuda.tensor([4]))
dist.gather_object({"rank": rank}, collected, dst=1)
said = "objects %s %s %s %s\n" % (gathered, given, torch.cat(counts).tolist(), collected)
sys.stdout.write(said)  # in one piece, beside other ranks
dist.destroy_process_group()
