"""What went wrong in programs that were not prepared; each line of the answer is checked."""
from torch.utils._python_dispatch import TorchDispatchMode
from support.small import cuda, F, nn, torch

# run: record
layer = nn.Linear(512, 512).cuda()
with torch.autograd.detect_anomaly():
    layer(cuda.randn(256, 512)).sum().backward()
print("qr", *torch.linalg.qr(cuda.randn(4, 8, 8))[0].shape)
# expect: qr 4 8 8
print("hessian", *torch.func.hessian(lambda x: x.sin().sum())(cuda.randn(8)).shape)
# expect: hessian 8 8
rows, pack = cuda.randn(3, 8, 64), nn.utils.rnn
packed = pack.pack_padded_sequence(rows, torch.tensor([5, 8, 7]), batch_first=True, enforce_sorted=False)
out, lengths = pack.pad_packed_sequence(nn.LSTM(64, 64, batch_first=True, device="cuda")(packed)[0], batch_first=True)
print("packed", packed.unsorted_indices.tolist(), lengths.tolist())
# expect: packed [2, 0, 1] [5, 8, 7]

class Look(TorchDispatchMode):
    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        return f(*args, **(kwargs or {}))

with Look():
    print("inside", cuda.tensor([0, 3, 8]).diff().tolist())
# expect: inside [3, 5]
torch.cuda.memory._record_memory_history(max_entries=10)
torch.cuda.memory._record_memory_history(enabled=None)
lp = cuda.randn(50, 4, 20).log_softmax(2)
four = torch.full((4,), 9, dtype=torch.int32).cuda()
print("ctc", F.ctc_loss(lp, torch.randint(1, 20, (36,), dtype=torch.int32).cuda(), four * 5, four).shape)
# match: ^ctc
print("asked", torch.cuda.memory_stats()["allocation.all.allocated"])
# the history is whole, although the program switched its own off
# verify
# check: info()["devices"][0]["allocs_count"] == int(re.search("^asked (.*)", log, re.M)[1]) > 50
