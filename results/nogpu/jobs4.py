# SPDX-License-Identifier: Apache-2.0
"""Jobs of two ranks by the libraries that people use (transformers, accelerate, peft), on two cards: same frame, same rows as jobs2.py.

    jobs4.py all OUT.csv [NAME...]                         one after another on this host's cards
    torchrun --nproc-per-node 2 jobs4.py NAME              one of them: a line of each rank
"""
import shutil, tempfile

import jobs2
from jobs2 import *
from jobs2 import J, BF, F, card, dist, every, job, main, nn, os, rank, sys, torch, world

jobs2.__file__ = __file__
J.clear()
SMALL = dict(hidden_size=768, num_hidden_layers=8, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048, vocab_size=32000)


def net(kind, config, dt=None, **k):
    """With the same random weights on both ranks."""
    import transformers as t

    torch.manual_seed(0)
    m = getattr(t, kind)(getattr(t, config)(**k))
    return m.to(dt) if dt else m


def text(n, length, words=32000):
    g = torch.Generator().manual_seed(rank)
    return [{"input_ids": (x := torch.randint(0, words, (length,), generator=g)), "labels": x} for _ in range(n)]


def train(model, data, evaluate=None, **k):
    from transformers import Trainer, TrainingArguments

    where = tempfile.mkdtemp()
    k = dict(per_device_train_batch_size=4, max_steps=5, logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True) | k
    t = Trainer(model, TrainingArguments(where, **k), train_dataset=data, eval_dataset=evaluate)
    t.train()
    shutil.rmtree(where, ignore_errors=True)
    return t


def looped(accelerator, model, batches, lr=1e-4, clip=True):
    o = torch.optim.AdamW(model.parameters(), lr=lr)
    model, o, data = accelerator.prepare(model, o, torch.utils.data.DataLoader(batches, batch_size=4))
    for b in data:
        with accelerator.accumulate(model):
            accelerator.backward(model(**b).loss)
            if clip and accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            o.step()
            o.zero_grad()
    return model


def sharding(version, layer, **k):
    from accelerate import FullyShardedDataParallelPlugin

    return FullyShardedDataParallelPlugin(fsdp_version=version, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=[layer], **k)


# Trainer


@job(2)
def trainer_ddp_qwen3_accumulates():
    m = net("Qwen3ForCausalLM", "Qwen3Config", **SMALL, head_dim=64)
    train(m, text(96, 1024), bf16=True, gradient_accumulation_steps=2, optim="adamw_torch_fused")


@job(2)
def trainer_ddp_checkpoints_gpt2_fp16():
    m = net("GPT2LMHeadModel", "GPT2Config", n_embd=768, n_layer=8, n_head=12)
    train(m, text(64, 768), fp16=True, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False})


@job(2)
def trainer_evaluates_bert():
    """Logits of both ranks are gathered while it evaluates; the last batch is not full."""
    m = net("BertForSequenceClassification", "BertConfig", num_hidden_layers=6, num_labels=7)
    rows = [{"input_ids": torch.randint(0, 30000, (256,)), "labels": torch.tensor(i % 7)} for i in range(70)]
    train(m, rows, rows[:45], eval_strategy="steps", eval_steps=2, per_device_eval_batch_size=8, bf16=True)


@job(2)
def trainer_fsdp_mistral():
    m = net("MistralForCausalLM", "MistralConfig", **SMALL, sliding_window=512)
    train(m, text(64, 1024), bf16=True, fsdp="full_shard auto_wrap", fsdp_config={"transformer_layer_cls_to_wrap": ["MistralDecoderLayer"]})


@job(2)
def trainer_low_rank_ddp():
    from peft import LoraConfig, get_peft_model

    m = net("LlamaForCausalLM", "LlamaConfig", BF, **SMALL | dict(hidden_size=1536, num_hidden_layers=12, intermediate_size=4096))
    m.enable_input_require_grads()
    m = get_peft_model(m, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM"))
    train(m, text(64, 1024), bf16=True, gradient_checkpointing=True, ddp_find_unused_parameters=False)


@job(2)
def trainer_images_vit():
    m = net("ViTForImageClassification", "ViTConfig", num_hidden_layers=8, num_labels=100)
    rows = [{"pixel_values": torch.randn(3, 224, 224), "labels": torch.tensor(i % 100)} for i in range(160)]
    train(m, rows, per_device_train_batch_size=16, fp16=True, optim="adafactor", label_smoothing_factor=0.1)


# Accelerate


@job(2)
def accelerate_fsdp2_checkpoints():
    from accelerate import Accelerator

    a = Accelerator(mixed_precision="bf16", fsdp_plugin=sharding(2, "LlamaDecoderLayer", activation_checkpointing=True))
    looped(a, net("LlamaForCausalLM", "LlamaConfig", **SMALL), text(48, 2048))


@job(2)
def accelerate_fsdp2_on_the_host():
    from accelerate import Accelerator

    a = Accelerator(mixed_precision="bf16", fsdp_plugin=sharding(2, "LlamaDecoderLayer", cpu_offload=True))
    looped(a, net("LlamaForCausalLM", "LlamaConfig", **SMALL), text(32, 1024), clip=False)


@job(2)
def accelerate_fsdp1_gpt2_no_sync():
    from accelerate import Accelerator

    a = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2, fsdp_plugin=sharding(1, "GPT2Block"))
    looped(a, net("GPT2LMHeadModel", "GPT2Config", n_embd=768, n_layer=8, n_head=12), text(48, 768))


@job(2)
def accelerate_t5_fp16():
    """Decoder and encoder of different lengths, half precision with a scaler."""
    from accelerate import Accelerator, DistributedDataParallelKwargs

    a = Accelerator(mixed_precision="fp16", kwargs_handlers=[DistributedDataParallelKwargs(gradient_as_bucket_view=True, static_graph=True)])
    rows = [{"input_ids": torch.randint(0, 30000, (512,)), "labels": torch.randint(0, 30000, (128,))} for _ in range(48)]
    looped(a, net("T5ForConditionalGeneration", "T5Config", d_model=768, d_ff=2048, num_layers=6, num_heads=12, decoder_start_token_id=0), rows)


@job(2)
def accelerate_low_rank_fsdp2():
    from accelerate import Accelerator
    from peft import LoraConfig, get_peft_model

    a = Accelerator(mixed_precision="bf16", fsdp_plugin=sharding(2, "LlamaDecoderLayer"))
    m = net("LlamaForCausalLM", "LlamaConfig", BF, **SMALL | dict(hidden_size=1536, num_hidden_layers=12, intermediate_size=4096))
    looped(a, get_peft_model(m, LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")), text(32, 1024))


@job(2)
def accelerate_context_parallel():
    """A sequence of 8,192 tokens, half on each rank."""
    from accelerate import Accelerator
    from accelerate.parallelism_config import ParallelismConfig

    a = Accelerator(mixed_precision="bf16", parallelism_config=ParallelismConfig(cp_size=2), fsdp_plugin=sharding(2, "LlamaDecoderLayer"))
    m = net("LlamaForCausalLM", "LlamaConfig", **SMALL)
    m, o = a.prepare(m, torch.optim.AdamW(m.parameters(), 1e-4))
    for i in range(5):
        x = torch.randint(0, 32000, (1, 8192), device=a.device)
        shifted, places = x.clone(), torch.arange(8192, device=a.device)[None]
        with a.maybe_context_parallel(buffers=[x, shifted, places], buffer_seq_dims=[1, 1, 1], no_restore_buffers={x, shifted, places}):
            y = m(input_ids=x, position_ids=places, use_cache=False).logits
            a.backward(F.cross_entropy(y.flatten(0, 1).float(), shifted.flatten()))
            o.step()
            o.zero_grad()


@job(2)
def accelerate_local_steps():
    """Weights are averaged after every fourth step only."""
    from accelerate import Accelerator
    from accelerate.local_sgd import LocalSGD

    a = Accelerator(mixed_precision="bf16")
    m = net("OPTForCausalLM", "OPTConfig", hidden_size=768, num_hidden_layers=6, num_attention_heads=12, ffn_dim=3072, word_embed_proj_dim=768)
    m, o = a.prepare(m, torch.optim.AdamW(m.parameters(), 1e-4))
    with LocalSGD(accelerator=a, model=m, local_sgd_steps=4, enabled=True) as local:
        for i in range(9):
            x = torch.randint(0, 50000, (4, 512), device=a.device)
            a.backward(m(input_ids=x, labels=x).loss)
            o.step()
            o.zero_grad()
            local.step()


# Without either


@job(2)
def tensor_parallel_by_plan():
    """Weights are read from files in their parts; then it answers, and trains."""
    import transformers as t

    where = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(where)
    if rank == 0:
        net("LlamaForCausalLM", "LlamaConfig", BF, **SMALL).save_pretrained(where[0])
    dist.barrier()
    m = t.LlamaForCausalLM.from_pretrained(where[0], tp_plan="auto", dtype=BF)
    torch.manual_seed(1)
    x = torch.randint(3, 32000, (4, 512), device="cuda")
    m.generate(x, max_new_tokens=24, do_sample=False)
    o = torch.optim.SGD(m.parameters(), 1e-3, foreach=False)
    for _ in range(3):
        m(input_ids=x, labels=x).loss.backward()
        o.step()
        o.zero_grad()
    dist.barrier()
    if rank == 0:
        shutil.rmtree(where[0])


@job(2)
def ddp_whisper_bf16():
    m = net("WhisperForConditionalGeneration", "WhisperConfig", d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8, decoder_attention_heads=8,
            encoder_ffn_dim=2048, decoder_ffn_dim=2048).cuda()
    d = nn.parallel.DistributedDataParallel(m, device_ids=[card.index])
    o = torch.optim.AdamW(d.parameters(), 1e-5)
    for _ in range(5):
        with torch.autocast("cuda", BF):
            loss = d(input_features=torch.randn(8, 80, 3000, device="cuda"), labels=torch.randint(0, 50000, (8, 200), device="cuda")).loss
        loss.backward()
        nn.utils.clip_grad_norm_(d.parameters(), 1.0)
        o.step()
        o.zero_grad()


@job(2)
def synchronized_resnet_channels_last():
    m = net("ResNetForImageClassification", "ResNetConfig", num_labels=100)
    m = nn.SyncBatchNorm.convert_sync_batchnorm(m).cuda().to(memory_format=torch.channels_last)
    d = nn.parallel.DistributedDataParallel(m, device_ids=[card.index], gradient_as_bucket_view=True)
    o, scaler = torch.optim.SGD(d.parameters(), 0.1, momentum=0.9), torch.amp.GradScaler("cuda")
    for _ in range(5):
        x = torch.randn(32, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.float16):
            loss = d(pixel_values=x, labels=torch.randint(0, 100, (32,), device="cuda")).loss
        scaler.scale(loss).backward()
        scaler.step(o)
        scaler.update()
        o.zero_grad()


@job(2)
def zero1_of_deberta():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    m = net("DebertaV2ForSequenceClassification", "DebertaV2Config", hidden_size=768, num_hidden_layers=6, num_attention_heads=12, intermediate_size=3072, vocab_size=32000,
            relative_attention=True, position_buckets=256, pos_att_type=["p2c", "c2p"]).cuda()
    d = nn.parallel.DistributedDataParallel(m, device_ids=[card.index], find_unused_parameters=True)
    o = ZeroRedundancyOptimizer(d.parameters(), torch.optim.AdamW, lr=1e-5)
    for i in range(5):
        x = torch.randint(3, 32000, (8, 128 + 64 * i), device="cuda")
        with torch.autocast("cuda", BF):
            loss = d(input_ids=x, labels=torch.randint(0, 2, (8,), device="cuda")).loss
        loss.backward()
        o.step()
        o.zero_grad()


@job(2)
def experts_of_mixtral_fsdp2():
    from torch.distributed.fsdp import fully_shard

    m = net("MixtralForCausalLM", "MixtralConfig", BF, **SMALL | dict(num_hidden_layers=4), num_local_experts=8, num_experts_per_tok=2).cuda()
    for l in m.model.layers:
        fully_shard(l)
    fully_shard(m)
    o = torch.optim.AdamW(m.parameters(), 1e-4, foreach=False)
    for _ in range(4):
        x = torch.randint(3, 32000, (4, 1024), device="cuda")
        m(input_ids=x, labels=x, output_router_logits=True).loss.backward()
        o.step()
        o.zero_grad()


if __name__ == "__main__":
    if "WAITS" in os.environ:
        sys.stdin.readline()
    every(*sys.argv[2:]) if sys.argv[1] == "all" else main(sys.argv[1])
