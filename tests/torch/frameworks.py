# SPDX-License-Identifier: Apache-2.0
"""Small trainings by frameworks, one rank of several: frameworks.py NAME. Prints "NAME VERSION done"."""
import os
import sys

import torch

rank, card = int(os.environ["RANK"]), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
WIDTH, STEPS = 512, 3


def model():
    return torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(WIDTH, 8, 2 * WIDTH, batch_first=True) for _ in range(3)])


def batch():
    return torch.randn(4, 64, WIDTH, device=card)


def accelerate_ddp(plugin=None):
    import accelerate
    accelerator = accelerate.Accelerator(mixed_precision="bf16", fsdp_plugin=plugin)
    net = model()
    net, optimizer = accelerator.prepare(net, torch.optim.AdamW(net.parameters()))
    for _ in range(STEPS):
        accelerator.backward(net(batch()).square().mean())
        accelerator.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return accelerate


def accelerate_fsdp2():
    from accelerate import FullyShardedDataParallelPlugin
    return accelerate_ddp(FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap",
                                                         transformer_cls_names_to_wrap=["TransformerEncoderLayer"]))


def lightning(strategy):
    import lightning
    import lightning.pytorch

    class Net(lightning.pytorch.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = model()

        def training_step(self, x, _):
            return self.net(x).square().mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())
    data = torch.utils.data.DataLoader(torch.randn(4 * STEPS * int(os.environ["WORLD_SIZE"]), 64, WIDTH), batch_size=4)
    lightning.pytorch.Trainer(accelerator="gpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy=strategy, max_epochs=1, logger=False,
                              enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False).fit(Net(), data)
    return lightning


def lightning_ddp():
    return lightning("ddp")


def lightning_fsdp():
    return lightning("fsdp")


def deepspeed(stage, offload=False):
    import deepspeed
    zero = {"stage": stage}
    if offload:
        zero["offload_optimizer"] = {"device": "cpu"}
    settings = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": zero, "zero_allow_untested_optimizer": True,
                "zero_force_ds_cpu_optimizer": False}
    net = model()
    engine, *_ = deepspeed.initialize(model=net, optimizer=torch.optim.AdamW(net.parameters()), config=settings)
    for _ in range(STEPS):
        engine.backward(engine(batch().bfloat16()).square().mean())
        engine.step()
    return deepspeed


def deepspeed_1():
    return deepspeed(1)


def deepspeed_2():
    return deepspeed(2, offload=True)


def deepspeed_3():
    return deepspeed(3)


torch.cuda.set_device(card)
framework = globals()[sys.argv[1]]()
print("%s %s done" % (sys.argv[1], framework.__version__), flush=True)
