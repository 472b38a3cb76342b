"""vLLM's server, with a Llama of two layers and a tokenizer that this program writes to ./model."""
import json
import os
from tokenizers import Tokenizer, models, pre_tokenizers

# needs: package vllm
# python: shell([python, "serve.py"])
# run: HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 VLLM_USE_DEEP_GEMM=0 layout --serve --gpu l4 --vary tp=1 --requests 64 \
#   --tokens 1024 --json serve.json --- vllm serve model --load-format dummy --enforce-eager --max-model-len 1024 --port 0
# python:
#   row = load("serve.json")["layouts"][0]
#   # two layers of 2 heads of 64, keys and values in bf16: 1,024 bytes a token
#   assert row["cache_bytes"] // 1024 - 32 <= row["cache_tokens_count"] <= row["cache_bytes"] // 1024 + 1024 * 16, row
#   assert row["weight_bytes"] and row["profile_bytes"], row
os.mkdir("model")
words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{"t%d" % i: i for i in range(3, 512)}}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save("model/tokenizer.json")
with open("model/tokenizer_config.json", "w") as f:
    json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, f)
with open("model/config.json", "w") as f:
    json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
               "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
               "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 512,
               "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
               "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1,
               "eos_token_id": 2, "attention_bias": False, "mlp_bias": False}, f)
