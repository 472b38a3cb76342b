"""Small trainings by frameworks: framework.py NAME. Prints of its rank "NAME VERSION done REQUESTS
BYTES PEAK": the requests, their bytes, and the most that was requested at once."""
import importlib
import os
import sys

import torch
from torch import nn

# case: lightning_ddp lightning_fsdp deepspeed_1 deepspeed_2 deepspeed_3 \
#   deepspeed_adam deepspeed_pipeline torchao_adam trl_sft trl_dpo trl_grpo trl_lora megatron_tp megatron_pipeline
# python: framework(case.partition("_")[0], *["peft"] * (case == "trl_lora"))
# it comes as source: pip compiles it for a quarter of an hour
# case: transformer_engine_sequence transformer_engine_context
# python: framework("transformer_engine", "megatron")
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
card = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
WIDTH, STEPS = 512, 3
TEXT = " ".join("w%d" % i for i in range(100))

def layers(count=3):
    return [nn.TransformerEncoderLayer(WIDTH, 8, 2 * WIDTH, batch_first=True) for _ in range(count)]

def batch():
    return torch.randn(4, 64, WIDTH, device=card)

def lightning(strategy):
    import lightning.pytorch

    class Net(lightning.pytorch.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(*layers())

        def training_step(self, x, _):
            return self.net(x).square().mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())
    data = torch.utils.data.DataLoader(torch.randn(4 * STEPS * world, 64, WIDTH), batch_size=4)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    cards = int(os.environ["LOCAL_WORLD_SIZE"])
    trainer = lightning.pytorch.Trainer(accelerator="gpu", devices=cards, strategy=strategy, max_epochs=1, **quiet)
    trainer.fit(Net(), data)

def deepspeed(kind):
    """Stages of ZeRO; adam: its optimizer for the host, which it compiles at the first use."""
    if kind == "pipeline":
        return deepspeed_pipeline()
    import deepspeed
    own, zero = kind == "adam", {"stage": 2 if kind == "adam" else int(kind)}
    if kind in ("2", "adam"):
        zero["offload_optimizer"] = {"device": "cpu"}
    settings = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": zero,
                "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}
    if own:
        settings["optimizer"] = {"type": "AdamW"}
    net = nn.Sequential(*layers())
    optimizer = None if own else torch.optim.AdamW(net.parameters())
    engine, optimizer, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(),
                                                 config=settings, optimizer=optimizer)
    assert type(optimizer.optimizer).__name__ == ("DeepSpeedCPUAdam" if own else "AdamW")
    for _ in range(STEPS):
        engine.backward(engine(batch().bfloat16()).square().mean())
        engine.step()

def deepspeed_pipeline():
    """Its pipeline engine: stages tell each other their shapes, and send what they computed."""
    import deepspeed
    from deepspeed.pipe import PipelineModule
    deepspeed.init_distributed("nccl")
    loss = nn.functional.mse_loss
    net = PipelineModule(layers(4), num_stages=world, loss_fn=loss, partition_method="uniform")
    settings = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4, "bf16": {"enabled": True},
                "optimizer": {"type": "AdamW", "params": {"torch_adam": True}}}
    parameters = [p for p in net.parameters() if p.requires_grad]
    engine, *_ = deepspeed.initialize(model=net, model_parameters=parameters, config=settings)
    data = iter(lambda: (batch().bfloat16(), batch().bfloat16()), None)
    for _ in range(STEPS):
        engine.train_batch(data)

def torchao(kind):
    """One compilation for each shape of a parameter, as on a card."""
    import torchao.optim
    from torch._dynamo.utils import counters
    net = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(3)]).cuda()
    optimizer = torchao.optim.AdamW8bit(net.parameters())
    for _ in range(STEPS):
        net(batch()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert counters["stats"]["unique_graphs"] == len({p.shape for p in net.parameters()})

def language():
    """A small language model and a tokenizer whose tokens are words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    names = ["<s>", "</s>", "<unk>"] + ["w%d" % i for i in range(253)]
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(names)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    sizes = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4)
    special = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>")
    return (LlamaForCausalLM(LlamaConfig(vocab_size=256, **sizes)),
            PreTrainedTokenizerFast(tokenizer_object=words, **special))

def trl(kind):
    import datasets
    import trl
    row, more, trainer = {"text": TEXT}, {}, {}
    if kind == "lora":
        from peft import LoraConfig
        trainer = {"peft_config": LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")}
        more = {"gradient_checkpointing": True}
    elif kind == "dpo":
        row, trainer = {"prompt": TEXT, "chosen": "w1 w2", "rejected": "w3"}, {"ref_model": language()[0]}
    elif kind == "grpo":
        row, more = {"prompt": TEXT}, {"num_generations": 4, "max_completion_length": 8}
        trainer = {"reward_funcs": lambda completions, **_: [float(len(c)) for c in completions]}
    net, words = language()
    name = {"lora": "SFT"}.get(kind, kind.upper())
    settings = getattr(trl, name + "Config")(output_dir="trl", max_steps=STEPS,
                                             per_device_train_batch_size=4, bf16=True, report_to=[],
                                             save_strategy="no", disable_tqdm=True, **more)
    data = datasets.Dataset.from_list([row] * 32)
    getattr(trl, name + "Trainer")(model=net, args=settings, processing_class=words, train_dataset=data, **trainer).train()

def megatron_parts(**parts):
    """Its groups of ranks, and what a GPT needs."""
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig
    torch.distributed.init_process_group("nccl")
    parallel_state.initialize_model_parallel(**{k: v for k, v in parts.items() if k.endswith("parallel_size")})
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    return GPTModel, TransformerConfig(**{"num_layers": 3, "hidden_size": WIDTH, "num_attention_heads": 8, **parts})

BF16 = dict(bf16=True, params_dtype=torch.bfloat16)

def megatron(kind):
    """tp: the loop of Megatron core's quick start, on its tensor-parallel GPT."""
    if kind == "pipeline":
        return megatron_pipeline()
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    GPT, config = megatron_parts(tensor_model_parallel_size=world, use_cpu_initialization=True, pipeline_dtype=torch.float32)
    net = GPT(config=config, transformer_layer_spec=get_gpt_layer_local_spec(), vocab_size=1024, max_sequence_length=64).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    places, mask = torch.arange(64, device=card).expand(4, 64), mask_of_later()
    for _ in range(STEPS):
        tokens = torch.randint(0, 1024, (4, 64), device=card)
        net(tokens, places, mask, labels=tokens).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

def mask_of_later():
    return torch.ones(64, 64, device=card).triu(1).bool().expand(4, 1, 64, 64)

def transformer_engine(kind):
    """A GPT of its layers in bf16; each rank of a context has its part of each sequence."""
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_with_transformer_engine_spec as spec
    split = {"sequence": dict(tensor_model_parallel_size=world, sequence_parallel=True),
             "context": dict(context_parallel_size=world)}[kind]
    GPT, config = megatron_parts(pipeline_dtype=torch.bfloat16, gradient_accumulation_fusion=False,
                                 attention_dropout=0, hidden_dropout=0, **BF16, **split)
    net = GPT(config=config, transformer_layer_spec=spec(), vocab_size=1024, max_sequence_length=512).cuda().bfloat16()
    optimizer, length = torch.optim.AdamW(net.parameters()), 512 // split.get("context_parallel_size", 1)
    for _ in range(STEPS):
        tokens = torch.randint(0, 1024, (4, length), device=card)
        net(tokens, torch.arange(length, device=card).expand(4, length), None, labels=tokens).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

def megatron_pipeline():
    """A GPT in two virtual stages on each rank: interleaved schedule, DDP, distributed optimizer."""
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.pipeline_parallel import get_forward_backward_func
    parts = 2
    GPT, config = megatron_parts(num_layers=world * parts, pipeline_dtype=torch.bfloat16,
                                 recompute_granularity="full", recompute_method="uniform",
                                 recompute_num_layers=1, gradient_accumulation_fusion=False,
                                 pipeline_model_parallel_size=world,
                                 virtual_pipeline_model_parallel_size=parts, **BF16)
    config.finalize_model_grads_func = finalize_model_grads
    chunks, sharded = [], dict(use_distributed_optimizer=True)
    for i in range(parts):
        ends = dict(pre_process=rank == 0 and i == 0, post_process=rank == world - 1 and i == parts - 1, vp_stage=i)
        net = GPT(config, get_gpt_layer_local_spec(), 1024, 64, share_embeddings_and_output_weights=False, **ends)
        chunks.append(DistributedDataParallel(config, DistributedDataParallelConfig(**sharded), net.cuda().bfloat16()))
    optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1e-4, **BF16, **sharded), chunks)
    places, mask = torch.arange(64, device=card).expand(4, 64), mask_of_later()

    def forward(data, net):
        tokens = next(data)
        return net(tokens, places, mask, labels=tokens), lambda losses: (losses.float().mean(), {})
    tokens = iter(lambda: torch.randint(0, 1024, (4, 64), device=card), None)
    for _ in range(STEPS):
        for chunk in chunks:
            chunk.zero_grad_buffer()
        optimizer.zero_grad()
        get_forward_backward_func()(forward_step_func=forward, data_iterator=[tokens] * parts,
                                    model=chunks, num_microbatches=4, seq_length=64,
                                    micro_batch_size=4, forward_only=False)
        assert optimizer.step()[0]

torch.cuda.set_device(card)
name, _, kind = sys.argv[1].rpartition("_")
globals()[name](kind)
version = importlib.import_module("megatron.core" if name in ("megatron", "transformer_engine") else name).__version__
said = torch.cuda.memory_stats()
kinds = "allocation.all.allocated", "requested_bytes.all.allocated", "requested_bytes.all.peak"
print(sys.argv[1], version, "done", *(said[kind] for kind in kinds), flush=True)
