# SPDX-License-Identifier: Apache-2.0
"""diffusion.py sd15 TYPE plain|sdpa | flux: pictures by diffusers' own classes with random weights. sd15: Stable Diffusion 1.5 without its safety
checker, 30 steps, 512 x 512, as in sayakpaul's tables; flux: one pass of the transformer of FLUX.1 as in diffusers' benchmarks."""
import sys

import torch


def sd15(dtype, attention):
    from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
    from diffusers.models.attention_processor import AttnProcessor
    from transformers import CLIPTextConfig, CLIPTextModel
    dtype = getattr(torch, dtype)
    with torch.device("cuda"):
        torch.set_default_dtype(dtype)
        text = CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12)).eval()
        unet = UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8).eval()
        vae = AutoencoderKL(block_out_channels=(128, 256, 512, 512), latent_channels=4, layers_per_block=2, sample_size=512,
                            down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4).eval()
    if attention == "plain":
        for part in (unet, vae):
            part.set_attn_processor(AttnProcessor())
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(30)
    with torch.no_grad():
        states = torch.cat([text(torch.ones(1, 77, dtype=torch.long, device="cuda"))[0] for _ in range(2)])
        latents = torch.randn(1, 4, 64, 64, device="cuda")
        for t in scheduler.timesteps:
            noise = unet(torch.cat([latents] * 2), t, states).sample
            first, second = noise.chunk(2)
            latents = scheduler.step(first + 7.5 * (second - first), t, latents).prev_sample.to(dtype)
        vae.decode(latents / 0.18215).sample


def flux(dtype="bfloat16"):
    from diffusers import FluxTransformer2DModel
    torch.set_default_dtype(getattr(torch, dtype))
    with torch.device("cuda"):
        net = FluxTransformer2DModel(guidance_embeds=True).eval()
        given = dict(hidden_states=torch.randn(1, 4096, 64), encoder_hidden_states=torch.randn(1, 512, 4096), pooled_projections=torch.randn(1, 768),
                     timestep=torch.tensor([1.0]), img_ids=torch.randn(4096, 3), txt_ids=torch.randn(512, 3), guidance=torch.tensor([3.5]))
        with torch.no_grad():
            net(**given)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    print("figure %.3f" % (torch.cuda.max_memory_allocated() / 2**30))
