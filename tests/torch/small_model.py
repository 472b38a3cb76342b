# SPDX-License-Identifier: Apache-2.0
"""A Llama of two layers for a serving engine, and a tokenizer: small_model.py FOLDER."""
import json
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

folder = sys.argv[1]
words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{"t%d" % i: i for i in range(3, 512)}}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save(folder + "/tokenizer.json")
with open(folder + "/tokenizer_config.json", "w") as f:
    json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, f)
with open(folder + "/config.json", "w") as f:
    json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 512, "intermediate_size": 1024,
               "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 2048,
               "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1,
               "eos_token_id": 2, "attention_bias": False, "mlp_bias": False}, f)
