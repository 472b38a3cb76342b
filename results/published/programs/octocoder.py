# SPDX-License-Identifier: Apache-2.0
"""octocoder.py: Hugging Face's tutorial on optimizing LLMs: octocoder's shape with random weights, 60 tokens after a short prompt."""
import torch
from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM

config = GPTBigCodeConfig(vocab_size=49152, n_positions=8192, n_embd=6144, n_layer=40, n_head=48, n_inner=24576, multi_query=True,
                          activation_function="gelu_pytorch_tanh", attention_softmax_in_fp32=True, scale_attention_softmax_in_fp32=True,
                          pad_token_id=0, bos_token_id=0, eos_token_id=None, torch_dtype="bfloat16")
config._attn_implementation = "eager"
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    net = GPTBigCodeForCausalLM(config).eval()
torch.cuda.reset_peak_memory_stats()  # the constructor makes the tied weights twice, loading does not
prompt = torch.randint(1, 40000, (1, 23), device="cuda")
with torch.no_grad():
    net.generate(prompt, max_new_tokens=60, do_sample=False)
print("figure %.6f" % (torch.cuda.max_memory_allocated() / 2**30))
