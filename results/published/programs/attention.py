# SPDX-License-Identifier: Apache-2.0
"""attention.py MODEL train|generate|forward SIZE...: tables of Hugging Face's model pages that compare eager attention with SDPA, in half precision with random
weights. A SIZE is BATCHxLENGTH. The loops are those of the two scripts by which the pages' authors measured (fxmarty's; linked from the pull requests), with
fewer steps: memory does not change after the second one. The figure is the peak that is allocated, in MB."""
import gc
import json
import os
import shutil
import sys

import torch
import transformers

MODELS = {  # class for training, class for inference, configuration, kind of checkpoint
    "bert": ("BertLMHeadModel", "BertLMHeadModel", {}, "safetensors"),
    "gpt2-large": ("GPT2LMHeadModel", "GPT2LMHeadModel", dict(n_embd=1280, n_layer=36, n_head=20), "safetensors"),
    "pythia-410m": ("GPTNeoXForCausalLM", "GPTNeoXForCausalLM", dict(
        vocab_size=50304, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, max_position_embeddings=2048), "half safetensors"),
    "opt-350m": ("OPTForCausalLM", "OPTForCausalLM", dict(
        vocab_size=50272, hidden_size=1024, num_hidden_layers=24, ffn_dim=4096, max_position_embeddings=2048, num_attention_heads=16, word_embed_proj_dim=512,
        do_layer_norm_before=False, dropout=0.1), "half bin"),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertModel", {}, "safetensors"),
    "albert": ("AlbertModel", "AlbertModel", dict(
        hidden_size=768, num_attention_heads=12, intermediate_size=3072, embedding_size=128, num_hidden_layers=12), "safetensors"),
    "albert-lm": ("AlbertForMaskedLM", "AlbertModel", dict(
        hidden_size=768, num_attention_heads=12, intermediate_size=3072, embedding_size=128, num_hidden_layers=12), "safetensors"),
    "albert-classes": ("AlbertForSequenceClassification", "AlbertForSequenceClassification", dict(
        hidden_size=768, num_attention_heads=12, intermediate_size=3072, embedding_size=128, num_hidden_layers=12), "safetensors"),
    "biogpt": ("BioGptForCausalLM", "BioGptModel", {}, "bin"),
}


def train(model, batch, length):
    inputs = {"input_ids": torch.randint(model.config.vocab_size - 1, (batch, length)).cuda(), "attention_mask": torch.ones(batch, length, dtype=torch.int64).cuda()}
    model.train()
    for turn in range(2):
        for _ in range(1 + turn):
            model.zero_grad()
            outputs = model(**inputs)
            loss = outputs[0].sum()
            loss.backward()
        if turn == 0:
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.empty_cache()


def infer(model, batch, length, generate):
    ids, mask = torch.randint(high=5, size=(batch, length)), torch.ones((batch, length))
    mask[0, 0] = 0
    ids, mask = ids.to("cuda"), mask.to("cuda")

    def call():
        if not generate:
            return model(ids, mask)
        model.generation_config.eos_token_id = None
        return model.generate(ids, attention_mask=mask, generation_config=transformers.GenerationConfig(
            max_new_tokens=100, min_new_tokens=100, use_cache=True, pad_token_id=0, eos_token_id=None, num_beams=1, do_sample=False))

    def measured():
        torch.cuda.reset_peak_memory_stats()
        for _ in range(2):  # the number takes the place of the result before, as in the script
            _ = call()
    with torch.inference_mode():
        _ = call()  # stays
        measured()


def write(name, options, kind):
    """A checkpoint of zeros, as the page's authors loaded one: where its tensors were in between decides which blocks the weights get."""
    dtype = torch.float16 if kind.startswith("half") else torch.float32
    made = getattr(transformers, name)
    with torch.device("meta"):
        model = made(made.config_class(**options))
    os.makedirs("checkpoint", exist_ok=True)
    model.config.save_pretrained("checkpoint")
    shapes, at = {}, 0
    for key, w in sorted(model.state_dict().items()) if "safetensors" in kind else ():
        if key not in model._tied_weights_keys if model._tied_weights_keys else True:
            shapes[key] = {"dtype": "F16" if dtype == torch.float16 else "F32", "shape": list(w.shape), "data_offsets": [at, at + w.numel() * dtype.itemsize]}
            at += w.numel() * dtype.itemsize
    if shapes:
        shapes["__metadata__"] = {"format": "pt"}
        header = json.dumps(shapes).encode()
        header += b" " * (-len(header) % 8)
        with open("checkpoint/model.safetensors", "wb") as f:
            f.write(len(header).to_bytes(8, "little") + header)
            f.truncate(8 + len(header) + at)
    else:
        torch.save({key: torch.zeros(w.shape, dtype=dtype) for key, w in model.state_dict().items()}, "checkpoint/pytorch_model.bin")
    return made


name, what = sys.argv[1:3]
training, inference, options, kind = MODELS[name]
shutil.rmtree("checkpoint", ignore_errors=True)
made = write(training if what == "train" else inference, options, kind)
for attention in ("sdpa", "eager") if what == "train" else ("eager", "sdpa"):
    with torch.device("cuda"):
        model = made.from_pretrained("checkpoint", torch_dtype=torch.float16, attn_implementation=attention)
    model = model.to("cuda")
    for size in sys.argv[3:]:
        batch, length = map(int, size.split("x"))
        try:
            train(model, batch, length) if what == "train" else infer(model, batch, length, what == "generate")
        except torch.cuda.OutOfMemoryError:  # as some did there
            torch.cuda.empty_cache()
            continue
        print("figure %s %s %.3f" % (attention, size, torch.cuda.max_memory_allocated() / 1e6), flush=True)
    del model
    gc.collect()
shutil.rmtree("checkpoint")
