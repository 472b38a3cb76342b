# SPDX-License-Identifier: Apache-2.0
"""A vLLM engine without its weights: serving.py MODEL [ARGUMENTS AS JSON], as in a row of serving.csv. It writes the model's configuration
and a tokenizer of a few words into the folder MODEL, builds the engine, and ends.

    cufrag record --no-gpu --gpu l40s --gpus 2 -o run.cft -- python serving.py qwen25-32b '{"tensor_parallel_size": 2}'
"""
import json
import os
import sys


def llama(hidden, inner, layers, kv, vocabulary, length, heads=32, **more):
    return {**dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu", hidden_size=hidden, intermediate_size=inner,
                   num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, vocab_size=vocabulary, max_position_embeddings=length,
                   rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=False, attention_bias=False, mlp_bias=False), **more}


def qwen2(inner, layers, length, **more):
    return {**dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_act="silu", hidden_size=5120, num_attention_heads=40,
                   num_key_value_heads=8, intermediate_size=inner, num_hidden_layers=layers, vocab_size=152064, max_position_embeddings=length,
                   rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=False, use_sliding_window=False), **more}


def qwen3(hidden, inner, layers, heads, kv, **more):
    return {**dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_act="silu", head_dim=128, hidden_size=hidden,
                   intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, vocab_size=151936,
                   max_position_embeddings=40960, rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=False, attention_bias=False), **more}


FP8_BLOCKS = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}
QWEN3_MOE = dict(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True,
                 num_experts=128, num_experts_per_tok=8)
QWEN2_7B = dict(hidden_size=3584, num_attention_heads=28, num_key_value_heads=4)
QWEN2_1_5B = dict(hidden_size=1536, num_attention_heads=12, num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True)

MODELS = {
    "llama2-7b": llama(4096, 11008, 32, 32, 32000, 4096),
    "llama3-8b": llama(4096, 14336, 32, 8, 128256, 8192),
    "llama31-8b": llama(4096, 14336, 32, 8, 128256, 131072, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192}),
    "qwen25-14b": qwen2(13824, 48, 131072),
    "qwen25-32b": qwen2(27648, 64, 32768),
    "qwq-32b": qwen2(27648, 64, 131072),
    "qwen25-7b-awq": qwen2(18944, 28, 32768, **QWEN2_7B, quantization_config={
        "bits": 4, "group_size": 128, "quant_method": "awq", "version": "gemm", "zero_point": True}),
    "llama31-70b-w8a8": llama(8192, 28672, 80, 8, 128256, 131072, heads=64, quantization_config={
        "quant_method": "compressed-tensors", "format": "int-quantized", "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": {
            "targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True, "dynamic": False},
            "input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": True, "dynamic": True}}}}),
    "opt-125m": dict(architectures=["OPTForCausalLM"], model_type="opt", activation_function="relu", do_layer_norm_before=True, ffn_dim=3072,
                     hidden_size=768, max_position_embeddings=2048, num_attention_heads=12, num_hidden_layers=12, vocab_size=50272,
                     word_embed_proj_dim=768, torch_dtype="float16", pad_token_id=1),
    "llama32-1b": llama(2048, 8192, 16, 8, 128256, 131072, head_dim=64, tie_word_embeddings=True, rope_scaling={
        "rope_type": "llama3", "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192}),
    "llama32-3b": llama(3072, 8192, 28, 8, 128256, 131072, heads=24, head_dim=128, tie_word_embeddings=True, rope_scaling={
        "rope_type": "llama3", "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192}),
    "qwen25-math-1.5b": qwen2(8960, 28, 4096, **QWEN2_1_5B),
    "qwen25-1.5b": qwen2(8960, 28, 32768, **QWEN2_1_5B),
    "qwen25-0.5b": qwen2(4864, 24, 32768, hidden_size=896, num_attention_heads=14, num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
    "qwen25-7b": qwen2(18944, 28, 32768, **QWEN2_7B),
    "r1-qwen-1.5b": qwen2(8960, 28, 131072, **{**QWEN2_1_5B, "tie_word_embeddings": False}),
    "r1-qwen-7b": qwen2(18944, 28, 131072, **QWEN2_7B),
    "gpt2-chinese": dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", activation_function="gelu", n_ctx=1024, n_embd=768, n_head=12,
                         n_layer=12, n_positions=1024, vocab_size=21128, layer_norm_epsilon=1e-5),
    "granite4-micro": dict(architectures=["GraniteMoeHybridForCausalLM"], model_type="granitemoehybrid", hidden_act="silu", hidden_size=2560,
                           intermediate_size=8192, shared_intermediate_size=8192, num_hidden_layers=40, num_attention_heads=40, num_key_value_heads=8,
                           layer_types=["attention"] * 40, num_local_experts=0, num_experts_per_tok=0, position_embedding_type="rope", rope_theta=1e7,
                           attention_multiplier=0.015625, embedding_multiplier=12, logits_scaling=10, residual_multiplier=0.22, attention_bias=False,
                           vocab_size=100352, max_position_embeddings=131072, rms_norm_eps=1e-5, tie_word_embeddings=True, mamba_n_heads=128,
                           mamba_n_groups=1, mamba_d_state=256, mamba_d_head="auto", mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=256,
                           mamba_conv_bias=True, mamba_proj_bias=False),
    "exaone4-32b-fp8": dict(architectures=["Exaone4ForCausalLM"], model_type="exaone4", hidden_act="silu", hidden_size=5120, intermediate_size=27392,
                            head_dim=128, num_hidden_layers=64, num_attention_heads=40, num_key_value_heads=8, vocab_size=102400,
                            max_position_embeddings=131072, rms_norm_eps=1e-5, rope_theta=1e6, tie_word_embeddings=False, sliding_window=4096,
                            sliding_window_pattern="LLLG", layer_types=["full_attention" if i % 4 == 3 else "sliding_attention" for i in range(64)],
                            quantization_config={"activation_scheme": "dynamic", "quant_method": "fp8", "fmt": "e4m3",
                                                 "modules_to_not_convert": ["lm_head"], "weight_block_size": [128, 128]}),
    "qwen3-0.6b": qwen3(1024, 3072, 28, 16, 8, tie_word_embeddings=True),
    "qwen3-4b": qwen3(2560, 9728, 36, 32, 8, tie_word_embeddings=True),
    "qwen3-8b": qwen3(4096, 12288, 36, 32, 8),
    "qwen3-8b-fp8": qwen3(4096, 12288, 36, 32, 8, quantization_config=FP8_BLOCKS),
    "qwen3-14b": qwen3(5120, 17408, 40, 40, 8),
    "qwen3-32b": qwen3(5120, 25600, 64, 64, 8),
    "qwen3-30b": qwen3(2048, 6144, 48, 32, 4, **QWEN3_MOE, moe_intermediate_size=768),
    "qwen3-30b-fp8": qwen3(2048, 6144, 48, 32, 4, **QWEN3_MOE, moe_intermediate_size=768, max_position_embeddings=262144, rope_theta=1e7,
                           quantization_config=FP8_BLOCKS),
    "qwen3-235b-fp8": qwen3(4096, 12288, 94, 64, 4, **QWEN3_MOE, moe_intermediate_size=1536, quantization_config=FP8_BLOCKS),
}


def write(name):
    from tokenizers import Tokenizer, models
    os.makedirs(name, exist_ok=True)
    with open(name + "/config.json", "w") as f:
        json.dump({"torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2, **MODELS[name]}, f)
    Tokenizer(models.WordLevel({"<unk>": 0, "<s>": 1, "</s>": 2}, unk_token="<unk>")).save(name + "/tokenizer.json")
    with open(name + "/tokenizer_config.json", "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, f)


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    write(sys.argv[1])
    from vllm import LLM
    LLM(sys.argv[1], load_format="dummy", skip_tokenizer_init=True, **json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}"))
