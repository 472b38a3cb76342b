# SPDX-License-Identifier: Apache-2.0
"""pipelines.py flux STEPS | sd3 default|no_t5 | sdxl STEPS: pictures of 1024 x 1024 by diffusers' own pipelines, with random weights and made-up tokens. flux: Hugging Face's
blog on quantization backends, in bfloat16 (reserved); sd3: its blog on Stable Diffusion 3, in half precision (allocated); sdxl: diffusers' page
on loading pipelines: Stable Diffusion XL, then the same with perturbed-attention guidance (allocated)."""
import sys
import types

import torch


class Tokens:
    """In place of a tokenizer, which needs a download."""

    def __init__(self, length):
        self.model_max_length = length

    def __call__(self, texts, max_length=None, padding=None, **_):
        count = 1 if isinstance(texts, str) else len(texts)
        return types.SimpleNamespace(input_ids=torch.ones(count, max_length or self.model_max_length, dtype=torch.long))

    def tokenize(self, _):
        return []

    def batch_decode(self, *_):
        return ""


def t5(half):
    from transformers import T5Config, T5EncoderModel
    net = T5EncoderModel(T5Config(vocab_size=32128, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64, feed_forward_proj="gated-gelu",
                                  dense_act_fn="gelu_new", is_gated_act=True, tie_word_embeddings=False)).eval()
    if half:  # what transformers keeps in single precision
        for block in net.encoder.block:
            block.layer[-1].DenseReluDense.wo.float()
    return net


def vae(**more):
    from diffusers import AutoencoderKL
    return AutoencoderKL(block_out_channels=(128, 256, 512, 512), latent_channels=16, layers_per_block=2, sample_size=1024, use_quant_conv=False,
                         use_post_quant_conv=False, down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, **more).eval()


def clip(made, **more):
    from transformers import CLIPTextConfig
    return made(CLIPTextConfig(bos_token_id=0, eos_token_id=2, **more)).eval()


def flux(steps):
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel
    from transformers import CLIPTextModel
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        parts = dict(vae=vae(scaling_factor=0.3611, shift_factor=0.1159),
                     text_encoder=clip(CLIPTextModel, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12), text_encoder_2=t5(False),
                     transformer=FluxTransformer2DModel(guidance_embeds=True).eval())
    torch.set_default_dtype(torch.float32)
    pipe = FluxPipeline(scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True), tokenizer=Tokens(77), tokenizer_2=Tokens(512), **parts)
    pipe.to("cuda")
    print("figure loaded %.3f" % (torch.cuda.max_memory_reserved() / 1024**3), flush=True)
    pipe(prompt="", height=1024, width=1024, guidance_scale=3.5, num_inference_steps=int(steps), max_sequence_length=512, generator=torch.manual_seed(0))
    print("figure peak %.3f" % (torch.cuda.max_memory_reserved() / 1024**3), flush=True)


def sd3(kind):
    from diffusers import FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline
    from transformers import CLIPTextModelWithProjection
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        parts = dict(transformer=SD3Transformer2DModel(sample_size=128, patch_size=2, num_layers=24, attention_head_dim=64, num_attention_heads=24,
                                                       joint_attention_dim=4096, caption_projection_dim=1536, pooled_projection_dim=2048, out_channels=16,
                                                       pos_embed_max_size=192).eval(),
                     vae=vae(scaling_factor=1.5305, shift_factor=0.0609),
                     text_encoder=clip(CLIPTextModelWithProjection, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
                                       projection_dim=768),
                     text_encoder_2=clip(CLIPTextModelWithProjection, hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                                         projection_dim=1280, hidden_act="gelu"),
                     text_encoder_3=t5(True) if kind != "no_t5" else None)
    torch.set_default_dtype(torch.float32)
    pipe = StableDiffusion3Pipeline(scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0), tokenizer=Tokens(77), tokenizer_2=Tokens(77),
                                    tokenizer_3=Tokens(256) if kind != "no_t5" else None, **parts)
    pipe.to("cuda")
    print("loaded %.3f" % (torch.cuda.memory_allocated() / 1024**3))
    torch.cuda.reset_peak_memory_stats()
    for _ in range(2):
        pipe(prompt="a", generator=torch.manual_seed(0), num_inference_steps=4)
    print("figure peak %.3f" % (torch.cuda.max_memory_allocated() / 1024**3), flush=True)


def sdxl(steps):
    from diffusers import AutoencoderKL, AutoPipelineForText2Image, EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTextModelWithProjection
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        parts = dict(unet=UNet2DConditionModel(sample_size=128, block_out_channels=(320, 640, 1280), transformer_layers_per_block=(1, 2, 10),
                                               down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                                               up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), attention_head_dim=(5, 10, 20),
                                               cross_attention_dim=2048, use_linear_projection=True, addition_embed_type="text_time",
                                               addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816).eval(),
                     vae=AutoencoderKL(block_out_channels=(128, 256, 512, 512), latent_channels=4, layers_per_block=2, sample_size=1024,
                                       scaling_factor=0.13025, force_upcast=True, down_block_types=("DownEncoderBlock2D",) * 4,
                                       up_block_types=("UpDecoderBlock2D",) * 4).eval(),
                     text_encoder=clip(CLIPTextModel, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12),
                     text_encoder_2=clip(CLIPTextModelWithProjection, hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                                         projection_dim=1280, hidden_act="gelu"))
    torch.set_default_dtype(torch.float32)
    scheduler = EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", timestep_spacing="leading", steps_offset=1)
    pipe = StableDiffusionXLPipeline(scheduler=scheduler, tokenizer=Tokens(77), tokenizer_2=Tokens(77), **parts).to("cuda")
    for name in ("first", "pag"):
        pipe("a", num_inference_steps=int(steps))
        print("figure %s %.3f" % (name, torch.cuda.max_memory_allocated() / 1024**3), flush=True)
        if name == "first":
            pipe = AutoPipelineForText2Image.from_pipe(pipe, enable_pag=True)


globals()[sys.argv[1]](*sys.argv[2:])
