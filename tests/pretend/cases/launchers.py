"""A program sees the same under cufrag as under its own launcher: launchers.py ... KIND ..."""
import os
import sys
from support.small import step, torch

# case: plain
# python: launched("plain 2", "", "python -m torch.distributed.launch --nproc_per_node=2 CASE plain")

# case: accelerate
# needs: package accelerate
# python:
#   write("fsdp.yaml", "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
#         "  fsdp_transformer_layer_cls_to_wrap: Block\nnum_machines: 1\nnum_processes: 8\n")
#   launched("accelerate FSDP bf16 2", "",
#            "accelerate launch --num_processes 2 --mixed_precision bf16 --config_file fsdp.yaml CASE accelerate")
#   launched("accelerate FSDP fp16 2", "--preset huggingface --vary precision=fp16",
#            "accelerate launch --config_file=fsdp.yaml CASE accelerate", False)

# case: deepspeed
# needs: package deepspeed
# python:
#   write("ds.json", '{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3},'
#         '"optimizer": {"type": "AdamW", "params": {"torch_adam": true}}}')
#   command = "deepspeed --num_gpus 2 CASE --deepspeed_config ds.json deepspeed"
#   launched("deepspeed 3 2", "", command)
#   launched("deepspeed 1 4", "--preset deepspeed --vary zero=1 --vary mb=4", command, False)

# case: trainer
# needs: package transformers accelerate
# python:
#   launched("trainer 4 True", "--preset huggingface --vary mb=4 --vary ac=full", "torchrun --nproc_per_node=2 CASE --output_dir "
#            "out.dir --max_steps 3 --per-device-train-batch-size=1 --report_to none --save_strategy no trainer", False)
kind = next(word for word in sys.argv if word in ("accelerate", "deepspeed", "plain", "trainer"))

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
    config = sys.argv[sys.argv.index("--deepspeed_config") + 1]
    engine = deepspeed.initialize(config=config, model=model, model_parameters=model.parameters())[0]
    for _ in range(4):
        x = torch.randn(engine.train_micro_batch_size_per_gpu(), 64, 256, device="cuda", dtype=torch.bfloat16)
        engine.backward(engine(x).float().square().mean())
        engine.step()
    return engine.zero_optimization_stage(), engine.train_micro_batch_size_per_gpu()

def trainer():
    from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
    given = [word for word in sys.argv[1:] if word != kind]
    arguments, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(given)
    tokens = torch.arange(256) % 1000
    config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4, vocab_size=1000)
    data = [{"input_ids": tokens, "labels": tokens}] * 64
    Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=data).train()
    return arguments.per_device_train_batch_size, arguments.gradient_checkpointing

def plain():
    rank = next(int(w.split("=")[1]) for w in sys.argv if w.startswith("--local-rank="))
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(net().cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        step(optimizer, model(torch.randn(8, 64, 256, device="cuda")).sum())
    return torch.distributed.get_world_size(),

assert __name__ == "__main__" and sys.path[0] == os.path.dirname(os.path.realpath(__file__))
said = "%s %s\n" % (kind, " ".join(str(s) for s in globals()[kind]()))
if os.environ.get("RANK") == "0":
    with open("seen", "a") as f:
        f.write(said)
