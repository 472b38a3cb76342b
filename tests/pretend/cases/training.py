"""A small training, under settings of the recording."""
from support.small import encoder, most_reserved, os, torch, train

p = torch.cuda.get_device_properties(0)
print(p.name, "%d.%d" % (p.major, p.minor), p.multi_processor_count)
train(encoder(), 8, 128, 512, say=print)
if os.environ.get("CUFRAG_RUN"):
    most_reserved()

# case: recorded
# run: record --gpu l4
# expect: NVIDIA L4 8.9 58
# verify
# run: info run.cft
# match: invented .* at .*small.py:
# run: fit run.cft --policy pytorch
# match: is an estimate

# a reservation is as large as the card of the recording
# case: expandable
# python:
#   for gpu in "h100", "h200":
#       run("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True record --gpu " + gpu)
#       verify()
#       run("info run.cft")
#       match("expandable segments on")
#       match("^checked .*verified identical")

# case: few_addresses
# python: shell("ulimit -v 60000000; $CUFRAG record --no-gpu -o run.cft -- %s training.py" % python, None)
# match: cannot reserve .* of addresses

# what was taken out of the cache, or a crash cut off, is made again
# case: damaged_cache
# python:
#   import glob, os
#   cache, bin = os.path.abspath("cache"), os.path.abspath("bin")
#   os.mkdir(bin)
#   run("record --values none", XDG_CACHE_HOME=cache)
#   os.remove(*glob.glob("cache/cufrag/pretend-*/*/libcublas.so.*"))
#   run("record", XDG_CACHE_HOME=cache, CXX="none", PATH=bin)
#   match(r"no C\+\+ compiler")
#   wheel, = glob.glob("cache/cufrag/pretend-*/*")
#   write(wheel + "/cufrag_values.so", "")
#   run("record", XDG_CACHE_HOME=cache, CXX="none", PATH=bin)
#   match(r"no C\+\+ compiler")

# case: back_end_without_history
# fails 3: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync record
# match: ^loss
# match: keeps no history of its back end cudaMallocAsync

# case: hidden_cards
# run: CUDA_VISIBLE_DEVICES=1 record --gpus 2
# match: ^loss
# fails: CUDA_VISIBLE_DEVICES= record --gpus 2
# match: CUDA_VISIBLE_DEVICES shows the program only
# run: CUDA_VISIBLE_DEVICES=7 record
# match: ^loss

# the policy is asked what PyTorch's own allocator is asked, call by call to the end of PyTorch's
# recording: what a program frees on its way out is there only under a policy
# case: live_policies
# python:
#   run("record -o plain.cft")
#   plain = asked("plain.cft")
#   for policy in ("pytorch", "pytorch:expandable_segments:True", "vmm", "tlsf", "gmlake", "rmm-pool:initial=64M",
#                  "limit:bytes=2G/bfc"):
#       said = run("run --policy %s --record live.cft" % policy)
#       match("loss", 3)
#       assert plain and asked("live.cft")[:len(plain)] == plain, policy
#       # it reserves what its simulation does; vmm's budget goes by the clock, not the same twice
#       reserved(said, policy, share=0.05 if policy == "vmm" else 0)

# case: live_own_policy
# needs: tool cc
# python:
#   shell("cc -std=c17 -O2 -shared -fPIC -I%s/src/include -o mine.so %s/docs/external-policy/mine.c" % (root, root))
#   reserved(run("run --policy limit:bytes=1G/./mine.so --record live.cft"), "./mine.so")
