# SPDX-License-Identifier: Apache-2.0
"""What a launcher gives its processes, and what the program then is: launchers.py … KIND …"""
import os
import sys

import torch

kind = next(w for w in sys.argv if w in ("accelerate", "deepspeed", "plain", "trainer"))  # layout appends what it varies


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)

    def forward(self, x):
        return self.layer(x)


def net():
    return torch.nn.Sequential(*[Block() for _ in range(3)])


def accelerate():
    from accelerate import Accelerator
    acc = Accelerator()
    model = net()
    model, optimizer = acc.prepare(model, torch.optim.AdamW(model.parameters()))
    for _ in range(4):
        acc.backward(model(torch.randn(8, 64, 256, device="cuda")).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    return acc.distributed_type.value, acc.mixed_precision, acc.num_processes


def deepspeed():
    import deepspeed
    rank = next(int(w.split("=")[1]) for w in sys.argv if w.startswith("--local_rank="))
    torch.cuda.set_device(rank)
    deepspeed.init_distributed()
    model = net()
    engine = deepspeed.initialize(config=sys.argv[sys.argv.index("--deepspeed_config") + 1], model=model, model_parameters=model.parameters())[0]
    for _ in range(4):
        x = torch.randn(engine.train_micro_batch_size_per_gpu(), 64, 256, device="cuda", dtype=torch.bfloat16)
        engine.backward(engine(x).float().square().mean())
        engine.step()
    return engine.zero_optimization_stage(), engine.train_micro_batch_size_per_gpu()


def trainer():
    from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
    arguments, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses([w for w in sys.argv[1:] if w != kind])
    tokens = torch.arange(256) % 1000
    model = LlamaForCausalLM(LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4, vocab_size=1000))
    Trainer(model=model, args=arguments, train_dataset=[{"input_ids": tokens, "labels": tokens}] * 64).train()
    return arguments.per_device_train_batch_size, arguments.gradient_checkpointing


def plain():
    rank = next(int(w.split("=")[1]) for w in sys.argv if w.startswith("--local-rank="))
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(net().cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model(torch.randn(8, 64, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.distributed.get_world_size(),


assert __name__ == "__main__" and sys.path[0] == os.path.dirname(os.path.realpath(__file__)), sys.path
said = "%s %s\n" % (kind, " ".join(str(s) for s in globals()[kind]()))
if os.environ.get("RANK") == "0":
    with open("seen", "a") as f:
        f.write(said)
