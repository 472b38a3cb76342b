# SPDX-License-Identifier: Apache-2.0
"""llm.py MODEL MODE: rasbt/LLMs-from-scratch's language models of $CODE/pkg with random weights: 150 tokens, greedy. MODEL llama|qwen; MODE
regular|fast|cache, or batch8|batch8cache for eight prompts. The models know nothing, so what they say may be anything; memory does not depend on it."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.environ["CODE"], "pkg"))
for name in ("tiktoken", "tiktoken.load", "matplotlib", "matplotlib.pyplot", "matplotlib.ticker"):  # not used here
    sys.modules[name] = type(sys)(name)
sys.modules["tiktoken.load"].load_tiktoken_bpe = sys.modules["matplotlib.ticker"].MaxNLocator = None
model, mode = sys.argv[1:3]
more, cached, batch = {}, mode.endswith("cache"), 8 if mode.startswith("batch8") else 1
if model == "llama":
    import llms_from_scratch.llama3 as module
    config, tokens = module.LLAMA32_CONFIG_1B, 15
else:
    import llms_from_scratch.qwen3 as module
    config, tokens = module.QWEN_CONFIG_06_B, 18
if cached:
    from importlib import import_module
    folder = "kv_cache_batched" if batch > 1 else "kv_cache"
    module = import_module("llms_from_scratch.%s.%s" % (folder, "llama3" if model == "llama" else "qwen3"))
    generate = import_module("llms_from_scratch.%s.generate" % folder).generate_text_simple
elif batch > 1:
    from llms_from_scratch.ch04 import generate_text_simple as generate
else:
    from llms_from_scratch.ch05 import generate
    more = dict(top_k=1, temperature=0.0)
make = {"llama": "Llama3Model", "qwen": "Qwen3Model"}[model] + ("Fast" if mode == "fast" else "")
torch.set_default_dtype(torch.float32)
net = getattr(module, make)(config).to("cuda").eval()
with torch.no_grad():
    generate(model=net, idx=torch.ones(batch, tokens, dtype=torch.long, device="cuda"), max_new_tokens=150, context_size=config["context_length"], **more)
print("figure %.4f" % (torch.cuda.max_memory_allocated() / 2**30))
