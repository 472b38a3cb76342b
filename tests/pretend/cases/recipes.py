"""Commands of frameworks, unchanged, on a Llama 3.2 of two layers with tokenizers and texts, which
this program writes into ./tiny."""
import base64
import json
import os
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

# needs: package transformers tokenizers
# case: torchtune
# needs: tool tune
# python:
#   shell([python, "recipes.py"])
#   small = ("vocab_size=128256 num_layers=2 num_heads=4 num_kv_heads=2 embed_dim=256 max_seq_len=1024 intermediate_dim=512").split()
#   files = (" tokenizer.path=tiny/original/tokenizer.model checkpointer.checkpoint_dir=tiny dataset.source=json dataset.split=train "
#            "dataset.data_files=tiny/texts.json output_dir=out max_steps_per_epoch=2 gradient_accumulation_steps=1 ")
#   one = ("full_finetune_single_device --config llama3_2/1B_full_single_device optimizer=torch.optim.AdamW optimizer.fused=True "
#          "model._component_=torchtune.models.llama3_2.llama3_2")
#   two = ("--nproc_per_node 2 lora_finetune_distributed --config llama3_2/1B_lora "
#          "model._component_=torchtune.models.llama3_2.lora_llama3_2")
#   for recipe, said in (one, "at .*/recipes/full_finetune_single_device.py:"), (two, "^device 1"):
#       run("HF_HUB_OFFLINE=1 record --gpu h100 --- tune run " + recipe + files + " ".join("model." + s for s in small))
#       verify()
#       run("info run.cft")
#       match(said)

# case: axolotl
# needs: tool axolotl
# python:
#   shell([python, "recipes.py"])
#   write("sft.yaml", "\n".join(("base_model: tiny", "datasets:", "- { path: tiny/texts.json, ds_type: json, type: alpaca }",
#         "output_dir: out", "sequence_len: 256", "micro_batch_size: 2", "gradient_accumulation_steps: 2", "max_steps: 2",
#         "num_epochs: 1", "optimizer: adamw_torch", "learning_rate: 0.0002", "bf16: true", "adapter: lora", "lora_r: 8",
#         "lora_alpha: 16", "lora_target_linear: true", "attn_implementation: sdpa", "")))
#   run("HF_HUB_OFFLINE=1 AXOLOTL_DO_NOT_TRACK=1 record --- axolotl train sft.yaml")
# match: Training completed
# verify
folder = "tiny"
config = LlamaConfig(vocab_size=128256, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                     max_position_embeddings=1024, tie_word_embeddings=True)
LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["<unk>", "<s>", "</s>", "word", "answer"])}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>").save_pretrained(folder)
os.makedirs(os.path.join(folder, "original"), exist_ok=True)
with open(os.path.join(folder, "original", "tokenizer.model"), "w") as f:  # one token for each byte
    f.writelines("%s %d\n" % (base64.b64encode(bytes([i])).decode(), i) for i in range(256))
with open(os.path.join(folder, "texts.json"), "w") as f:
    json.dump([{"instruction": "word " * (10 + i % 30), "input": "", "output": "answer " * 20} for i in range(64)], f)
