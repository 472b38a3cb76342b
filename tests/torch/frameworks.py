# SPDX-License-Identifier: Apache-2.0
"""Small trainings by frameworks, one rank of several: frameworks.py NAME. Prints "NAME VERSION done REQUESTS BYTES PEAK": of
this rank, the number of requests, their bytes, and the most that was requested at once."""
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


def deepspeed(stage, offload=False, own=False):
    import deepspeed
    zero = {"stage": stage}
    if offload:
        zero["offload_optimizer"] = {"device": "cpu"}
    settings = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": zero, "zero_allow_untested_optimizer": True,
                "zero_force_ds_cpu_optimizer": False}
    if own:
        settings["optimizer"] = {"type": "AdamW"}
    net = model()
    engine, optimizer, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=settings,
                                                 optimizer=None if own else torch.optim.AdamW(net.parameters()))
    assert type(optimizer.optimizer).__name__ == ("DeepSpeedCPUAdam" if own else "AdamW")
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


def deepspeed_adam():
    """Its optimizer for the host, which it compiles at the first use."""
    return deepspeed(2, offload=True, own=True)


def torchao_adam():
    """One compilation for each shape of a parameter, as on a card."""
    import torchao.optim
    from torch._dynamo.utils import counters
    net = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(3)]).cuda()
    optimizer = torchao.optim.AdamW8bit(net.parameters())
    for _ in range(STEPS):
        net(batch()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert counters["stats"]["unique_graphs"] == len({p.shape for p in net.parameters()}), counters["stats"]
    return torchao


def language():
    """A small language model and a tokenizer whose tokens are words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["<s>", "</s>", "<unk>"] + ["w%d" % i for i in range(253)])}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return (LlamaForCausalLM(LlamaConfig(vocab_size=256, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4)),
            PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>"))


def trl(kind, rows, peft=False, trainer=None, **more):
    import datasets
    import trl
    net, words = language()
    if peft:
        from peft import LoraConfig
        trainer = dict(trainer or {}, peft_config=LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    settings = getattr(trl, kind + "Config")(output_dir="trl", max_steps=STEPS, per_device_train_batch_size=4, report_to=[], save_strategy="no", bf16=True, disable_tqdm=True, **more)
    getattr(trl, kind + "Trainer")(model=net, args=settings, processing_class=words, train_dataset=datasets.Dataset.from_list(rows * 32), **(trainer or {})).train()
    return trl


TEXT = " ".join("w%d" % i for i in range(100))


def trl_sft():
    return trl("SFT", [{"text": TEXT}])


def trl_lora():
    return trl("SFT", [{"text": TEXT}], peft=True, gradient_checkpointing=True)


def trl_dpo():
    return trl("DPO", [{"prompt": TEXT, "chosen": "w1 w2", "rejected": "w3"}], trainer={"ref_model": language()[0]})


def trl_grpo():
    return trl("GRPO", [{"prompt": TEXT}], num_generations=4, max_completion_length=8, trainer={"reward_funcs": lambda completions, **_: [float(len(c)) for c in completions]})


def megatron_tp():
    """The loop of Megatron core's quick start, on its tensor-parallel GPT."""
    import megatron.core
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import TransformerConfig
    torch.distributed.init_process_group("nccl")
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=torch.distributed.get_world_size())
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    config = TransformerConfig(num_layers=3, hidden_size=WIDTH, num_attention_heads=8, use_cpu_initialization=True, pipeline_dtype=torch.float32,
                               tensor_model_parallel_size=torch.distributed.get_world_size())
    net = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(), vocab_size=1024, max_sequence_length=64).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    places, mask = torch.arange(64, device=card).expand(4, 64), torch.ones(64, 64, device=card).triu(1).bool().expand(4, 1, 64, 64)
    for _ in range(STEPS):
        tokens = torch.randint(0, 1024, (4, 64), device=card)
        net(tokens, places, mask, labels=tokens).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return megatron.core


def megatron_engine(**parts):
    """A GPT of Transformer Engine's layers in bf16, split as told; each rank of a context has its part of each sequence."""
    import megatron.core
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_with_transformer_engine_spec
    from megatron.core.transformer.transformer_config import TransformerConfig
    torch.distributed.init_process_group("nccl")
    parallel_state.initialize_model_parallel(**{k: v for k, v in parts.items() if k.endswith("_size")})
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    config = TransformerConfig(num_layers=3, hidden_size=WIDTH, num_attention_heads=8, bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16,
                               gradient_accumulation_fusion=False, attention_dropout=0, hidden_dropout=0, **parts)
    net = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_with_transformer_engine_spec(), vocab_size=1024, max_sequence_length=512).cuda().bfloat16()
    optimizer = torch.optim.AdamW(net.parameters())
    length = 512 // parts.get("context_parallel_size", 1)
    for _ in range(STEPS):
        tokens = torch.randint(0, 1024, (4, length), device=card)
        net(tokens, torch.arange(length, device=card).expand(4, length), None, labels=tokens).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return megatron.core


def transformer_engine_sequence():
    return megatron_engine(tensor_model_parallel_size=int(os.environ["WORLD_SIZE"]), sequence_parallel=True)


def transformer_engine_context():
    return megatron_engine(context_parallel_size=int(os.environ["WORLD_SIZE"]))


def deepspeed_pipeline():
    """Its pipeline engine: stages tell each other their shapes, and send what they computed."""
    import deepspeed
    from deepspeed.pipe import PipelineModule
    deepspeed.init_distributed("nccl")
    layers = [torch.nn.TransformerEncoderLayer(WIDTH, 8, 2 * WIDTH, batch_first=True) for _ in range(4)]
    net = PipelineModule(layers, num_stages=int(os.environ["WORLD_SIZE"]), loss_fn=torch.nn.functional.mse_loss, partition_method="uniform")
    engine, *_ = deepspeed.initialize(model=net, model_parameters=[p for p in net.parameters() if p.requires_grad],
                                      config={"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4, "bf16": {"enabled": True},
                                              "optimizer": {"type": "AdamW", "params": {"torch_adam": True}}})
    data = iter(lambda: (batch().bfloat16(), batch().bfloat16()), None)
    for _ in range(STEPS):
        engine.train_batch(data)
    return deepspeed


def megatron_pipeline():
    """A GPT in two virtual stages on each rank, by Megatron core's interleaved schedule, its DDP and its distributed optimizer."""
    import megatron.core
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt import GPTModel
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.transformer.transformer_config import TransformerConfig
    torch.distributed.init_process_group("nccl")
    world = torch.distributed.get_world_size()
    parts = 2
    parallel_state.initialize_model_parallel(pipeline_model_parallel_size=world, virtual_pipeline_model_parallel_size=parts)
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    config = TransformerConfig(num_layers=world * parts, hidden_size=WIDTH, num_attention_heads=8, bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16,
                               recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1, gradient_accumulation_fusion=False,
                               pipeline_model_parallel_size=world, virtual_pipeline_model_parallel_size=parts)
    config.finalize_model_grads_func = finalize_model_grads
    chunks = []
    for i in range(parts):
        net = GPTModel(config, get_gpt_layer_local_spec(), 1024, 64, pre_process=rank == 0 and i == 0, post_process=rank == world - 1 and i == parts - 1,
                       share_embeddings_and_output_weights=False, vp_stage=i).cuda().bfloat16()
        chunks.append(DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True), net))
    optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16, use_distributed_optimizer=True), chunks)
    places, mask = torch.arange(64, device=card).expand(4, 64), torch.ones(64, 64, device=card).triu(1).bool().expand(4, 1, 64, 64)

    def forward(data, net):
        tokens = next(data)
        return net(tokens, places, mask, labels=tokens), lambda losses: (losses.float().mean(), {})
    tokens = iter(lambda: torch.randint(0, 1024, (4, 64), device=card), None)
    for _ in range(STEPS):
        for chunk in chunks:
            chunk.zero_grad_buffer()
        optimizer.zero_grad()
        get_forward_backward_func()(forward_step_func=forward, data_iterator=[tokens] * parts, model=chunks, num_microbatches=4, seq_length=64,
                                    micro_batch_size=4, forward_only=False)
        assert optimizer.step()[0]
    return megatron.core


torch.cuda.set_device(card)
framework = globals()[sys.argv[1]]()
said = torch.cuda.memory_stats()
print("%s %s done %d %d %d" % (sys.argv[1], framework.__version__, said["allocation.all.allocated"], said["requested_bytes.all.allocated"],
                               said["requested_bytes.all.peak"]), flush=True)
