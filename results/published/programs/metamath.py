# SPDX-License-Identifier: Apache-2.0
"""metamath.py EXPERIMENT: the training of PEFT's method comparison ($CODE/method_comparison/MetaMathQA/run.py), unchanged, for 20 of its 5000 steps. Made up are the
weights of Llama 3.2 3B and the data: lengths of a lognormal distribution with the published mean (210 tokens), sorted into batches by their own code."""
import os
import random
import statistics
import sys
import types

import torch
import transformers
from transformers import BatchEncoding, LlamaConfig, LlamaForCausalLM
from transformers.modeling_utils import no_init_weights
import peft
import peft.tuners.lora.eva

STEPS, MEAN, SPREAD = 20, 210, 0.45
folder = os.path.join(os.environ["CODE"], "method_comparison/MetaMathQA")
os.chdir(folder)
sys.path.insert(0, folder)
for name in ("bitsandbytes", "datasets"):  # their modules import both; neither is used here
    sys.modules[name] = types.SimpleNamespace(Dataset=None, load_dataset=None)
import run
import utils

for name in ("bitsandbytes", "datasets"):
    del sys.modules[name]


class Batches:
    """As datasets.Dataset: indexed by a slice, gives columns."""

    def __init__(self, count):
        normal = statistics.NormalDist()
        lengths = [round(MEAN * 2.718281828459045 ** (SPREAD * normal.inv_cdf((i + 0.5) / count) - SPREAD ** 2 / 2)) for i in range(count)]
        random.Random(0).shuffle(lengths)
        self.items = [[1] * min(n, 768) for n in lengths]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, part):
        return Columns(input_ids=self.items[part], attention_mask=self.items[part], response=[""] * len(self.items[part]))


class Columns(dict):
    pass


class Tokenizer:
    def pad(self, batch, return_tensors):
        longest = max(len(x) for x in batch["input_ids"])
        ids = [x + [0] * (longest - len(x)) for x in batch["input_ids"]]
        return BatchEncoding({"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(ids)})

    def __call__(self, texts):
        return {"attention_mask": [[1] for _ in texts]}


Tokenizer.eos_token_id = 1


def base_model(**_):
    config = LlamaConfig(vocab_size=128256, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8,
                         head_dim=128, max_position_embeddings=131072, rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=True,
                         bos_token_id=128000, eos_token_id=128001, torch_dtype=torch.bfloat16,
                         rope_scaling=dict(factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0, original_max_position_embeddings=8192, rope_type="llama3"))
    config._attn_implementation = "sdpa"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"), no_init_weights():
        model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    model.tie_weights()
    return model.eval()


utils.get_base_model = base_model
run.get_train_valid_test_datasets = lambda **_: (Batches(4 * STEPS), [], [])
run.evaluate = lambda **_: ([""], [""])
run.get_accuracy = lambda **_: 0.0
run.print_verbose = lambda *_, **__: None
path = os.path.join("experiments", sys.argv[1])
adapter = os.path.exists(os.path.join(path, "adapter_config.json")) and peft.PeftConfig.from_pretrained(path) or None
config = run.get_train_config(os.path.join(path, run.FILE_NAME_TRAIN_PARAMS))
transformers.set_seed(config.seed)
start = run.init_cuda()
model = run.get_model(model_id=config.model_id, dtype=config.dtype, compile=config.compile, attn_implementation=config.attn_implementation,
                      peft_config=adapter, autocast_adapter_dtype=config.autocast_adapter_dtype)
result = run.train(model=model, max_steps=STEPS, batch_size=config.batch_size, batch_size_eval=config.batch_size_eval, tokenizer=Tokenizer(), cuda_memory_init=start,
                   eval_steps=STEPS, generation_kwargs=config.generation_kwargs, grad_norm_clip=config.grad_norm_clip, optimizer_type=config.optimizer_type,
                   optimizer_kwargs=config.optimizer_kwargs, query_template=config.query_template, lr_scheduler_arg=config.lr_scheduler, use_amp=config.use_amp,
                   is_adalora=isinstance(adapter, peft.AdaLoraConfig))
print(result.error_msg or "", flush=True)
print("figure %.1f" % (result.metrics[0]["mem allocated avg"] / 2**20))
