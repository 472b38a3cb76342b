"""Caches of a model that generates."""
from transformers import LlamaConfig, LlamaForCausalLM
from support.small import torch

# needs: package transformers
# run: advise --changes static_cache,cache_fp8,chunked_prefill
# match: tried 3 changes
# match: chunked_prefill .* tried\b
# never: left out
config = LlamaConfig(vocab_size=4000, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4)
m = LlamaForCausalLM(config).to(torch.bfloat16).cuda()
m.generate(torch.randint(0, 4000, (4, 1500)).cuda(), max_new_tokens=8, min_new_tokens=8)
