# SPDX-License-Identifier: Apache-2.0
"""A Llama 3.2 of two layers as published ones lie in a folder, with random weights, tokenizers for transformers and for torchtune, and texts: tiny_llama.py FOLDER."""
import base64
import json
import os
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder = sys.argv[1]
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
