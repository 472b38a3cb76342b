# SPDX-License-Identifier: Apache-2.0
"""Programs that use libraries which the other collections hardly know, as their users do: same frame, same rows.

    third.py OUT WORKERS SECONDS [NAME...]          rows to OUT/rows.csv, all requests and segments to OUT/NAME.npz

diffusers, TRL, PEFT, Liger, fla, timm's recipe, segmentation-models-pytorch, Kornia, MONAI, x-transformers, vector-quantize-pytorch, denoising-diffusion-pytorch,
vit-pytorch, torchao, OpenCLIP, LitGPT, TorchRL, metric learning, forecasts, optimizers of other makers. Widths, heads, vocabularies and inputs are published ones;
the largest models have fewer layers. Weights are random, nothing is downloaded. Names that begin with c_ compile. Where torchao is installed, diffusers, PEFT
and transformers import it, which takes long: its programs ran with a path of their own.
"""

import copy, os, tempfile

import numpy as np

import everyday
from atscale import *
from everyday import J

J.clear()
FP = torch.float32


def seeded(name, out, one=everyday.one):
    """Some of these libraries draw from numpy and from Python's own generator."""
    np.random.seed(0)
    random.seed(0)
    out = os.path.abspath(out)
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        one(name, out)


everyday.one = seeded


def adamw(lr=1e-5, **k):
    return lambda p: torch.optim.AdamW(p, lr, **k)


def steps(ps, opt, loss, n=4, amp=None):
    """The plain loop: autocast around the loss, a step, gradients gone."""
    for _ in range(n):
        with torch.autocast("cuda", amp or BF, enabled=amp is not None):
            l = loss()
        l.backward()
        nn.utils.clip_grad_norm_(ps, 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)


def learnt(m):
    return [p for p in m.parameters() if p.requires_grad]


# ---- diffusers
SD15 = dict(sample_size=64, cross_attention_dim=768)
SDXL = dict(sample_size=128, block_out_channels=(320, 640, 1280), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), transformer_layers_per_block=[1, 2, 4], attention_head_dim=[5, 10, 20], cross_attention_dim=2048,
            use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816)
VAE = dict(block_out_channels=(128, 256, 512, 512), down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=2, latent_channels=4, sample_size=512)


def df(name, dt=FP, **k):
    import diffusers

    return on(getattr(diffusers, name), dt=dt, **k)


def ddpm():
    import diffusers

    return diffusers.DDPMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")


def noised(s, x):
    e = torch.randn_like(x)
    t = torch.randint(0, 1000, (len(x),), device=dev)
    return s.add_noise(x, e, t), e, t


def sigma_noised(x):
    """Flow matching: the mixture, what to predict, the time."""
    e, t = torch.randn_like(x), torch.rand(len(x), device=dev)
    u = t.view(-1, *(1,) * (x.dim() - 1)).to(x.dtype)
    return (1 - u) * x + u * e, e - x, t


@job
def sd15_trains_with_ema():
    """train_text_to_image: half precision with a scaler, frozen encoders, accumulation, EMA of diffusers."""
    import transformers as t
    from diffusers.training_utils import EMAModel

    u, v = df("UNet2DConditionModel", **SD15), df("AutoencoderKL", HF16, **VAE).requires_grad_(False)
    w = on(t.CLIPTextModel, t.CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12), dt=HF16).requires_grad_(False)
    ema, s = EMAModel(u.parameters(), decay=0.999, model_cls=type(u), model_config=u.config), ddpm()

    def loss(m):
        with torch.no_grad():
            z = v.encode(N(4, 3, 512, 512, dt=HF16)).latent_dist.sample() * 0.18215
            h = w(T(4, 77, v=49407))[0]
        x, e, k = noised(s, z.float())
        return F.mse_loss(m(x, k, h).sample.float(), e)

    fit(u, loss, 2, adamw(), amp=HF16, scaler=True, accum=2)
    ema.step(u.parameters())
    ema.store(u.parameters())
    ema.copy_to(u.parameters())
    with torch.no_grad(), torch.autocast("cuda", HF16):
        loss(u)
    ema.restore(u.parameters())
    fit(u, loss, 1, adamw(), amp=HF16, scaler=True)


def sd15_pipe(cls="StableDiffusionPipeline", dt=HF16, **k):
    import diffusers, transformers as t

    u, v = df("UNet2DConditionModel", dt, **SD15), df("AutoencoderKL", dt, **VAE)
    w = on(t.CLIPTextModel, t.CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12), dt=dt)
    p = getattr(diffusers, cls)(vae=v, text_encoder=w, tokenizer=None, unet=u, scheduler=diffusers.DDIMScheduler(clip_sample=False, steps_offset=1), safety_checker=None,
                                feature_extractor=None, requires_safety_checker=False, **k)
    p.set_progress_bar_config(disable=True)
    return p


def words(n, dt=HF16, d=768, length=77):
    return dict(prompt_embeds=N(n, length, d, dt=dt), negative_prompt_embeds=N(n, length, d, dt=dt))


@job
def sd15_pipeline_of_settings():
    """Pictures of several sizes; then slices of attention, the decoder in slices and in tiles, other schedulers."""
    import diffusers

    p = sd15_pipe().to(dev)
    p(**words(2), num_inference_steps=6, output_type="np")
    p.enable_attention_slicing()
    p(**words(1), height=768, width=512, num_inference_steps=4, output_type="np")
    p.disable_attention_slicing()
    p.vae.enable_slicing()
    p.scheduler = diffusers.DPMSolverMultistepScheduler.from_config(p.scheduler.config)
    p(**words(4), num_inference_steps=5, output_type="np")
    p.vae.enable_tiling()
    p.scheduler = diffusers.EulerAncestralDiscreteScheduler.from_config(p.scheduler.config)
    p(**words(1), height=1024, width=1024, num_inference_steps=4, output_type="np", guidance_scale=1.0)


@job
def sd15_moves_between_host_and_card():
    """Models of the pipeline go to the card when their turn comes, and back; then layer by layer for the net alone."""
    p = sd15_pipe().to("cpu")
    torch.cuda.empty_cache()
    p.enable_model_cpu_offload()
    for n in (1, 3):
        p(**words(n), num_inference_steps=4, output_type="np")
    p.maybe_free_model_hooks()


@job
def controlnet_trains():
    """A ControlNet of the net's own weights; the net is frozen, checkpoints, bf16 autocast."""
    import diffusers

    u = df("UNet2DConditionModel", BF, **SD15).requires_grad_(False)
    c = diffusers.ControlNetModel.from_unet(u).to(dev, FP)
    c.enable_gradient_checkpointing()
    u.enable_gradient_checkpointing()
    s = ddpm()

    def loss(c):
        x, e, k = noised(s, N(4, 4, 64, 64))
        h = N(4, 77, 768)
        down, mid = c(x, k, h, N(4, 3, 512, 512), return_dict=False)
        y = u(x.to(BF), k, h.to(BF), down_block_additional_residuals=[d.to(BF) for d in down], mid_block_additional_residual=mid.to(BF)).sample
        return F.mse_loss(y.float(), e)

    fit(c, loss, 3, adamw(1e-5, weight_decay=1e-2), amp=BF)


@job
def dreambooth_with_text_encoder():
    """Prior preservation: one batch of both kinds, cut in halves; text encoder and net learn, checkpointed."""
    import itertools, transformers as t

    u = df("UNet2DConditionModel", **SD15)
    u.enable_gradient_checkpointing()
    w = on(t.CLIPTextModel, t.CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12))
    w.gradient_checkpointing_enable()
    s, v = ddpm(), df("AutoencoderKL", HF16, **VAE).requires_grad_(False)
    ps = list(itertools.chain(u.parameters(), w.parameters()))

    def loss():
        z = v.encode(N(4, 3, 512, 512, dt=HF16)).latent_dist.sample() * v.config.scaling_factor
        x, e, k = noised(s, z.float())
        a, b = u(x, k, w(T(4, 77, v=49407))[0]).sample.chunk(2)
        c, d = e.chunk(2)
        return F.mse_loss(a.float(), c) + F.mse_loss(b.float(), d)

    steps(ps, torch.optim.AdamW(ps, 2e-6), loss, 3, BF)


@job
def textual_inversion():
    """One word of the encoder learns through the frozen net; all others are put back after each step."""
    import transformers as t

    u = df("UNet2DConditionModel", HF16, **SD15).requires_grad_(False)
    u.enable_gradient_checkpointing()
    w = on(t.CLIPTextModel, t.CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12))
    w.resize_token_embeddings(49409)
    w.requires_grad_(False)
    e = w.get_input_embeddings().requires_grad_(True)
    old, s, o = e.weight.data.clone(), ddpm(), torch.optim.AdamW(e.parameters(), 5e-4)
    keep = torch.ones(49409, dtype=torch.bool, device=dev)
    keep[49408] = False
    for _ in range(3):
        x, y, k = noised(s, N(2, 4, 64, 64, dt=HF16))
        ids = T(2, 77, v=49407)
        ids[:, 5] = 49408
        F.mse_loss(u(x, k, w(ids)[0].to(HF16)).sample.float(), y.float()).backward()
        o.step()
        o.zero_grad()
        with torch.no_grad():
            e.weight[keep] = old[keep]


@job
def sdxl_lora_trains():
    """train_text_to_image_lora_sdxl: adapters of PEFT in single precision, all else in bf16, checkpoints, SNR weights; adapters saved and loaded again."""
    from diffusers.training_utils import cast_training_params, compute_snr
    from peft import LoraConfig
    from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict

    u, s = df("UNet2DConditionModel", BF, **SDXL).requires_grad_(False), ddpm()
    v = df("AutoencoderKL", **VAE).requires_grad_(False)
    u.add_adapter(LoraConfig(r=16, lora_alpha=16, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    u.enable_gradient_checkpointing()
    cast_training_params(u, dtype=FP)

    def loss(m):
        with torch.no_grad():
            z = v.encode(N(2, 3, 1024, 1024)).latent_dist.sample().mul(0.13).to(BF)
        x, e, k = noised(s, z)
        c = dict(text_embeds=N(2, 1280, dt=BF), time_ids=torch.tensor([[1024, 1024, 0, 0, 1024, 1024]] * 2, device=dev, dtype=BF))
        snr = compute_snr(s, k)
        l = F.mse_loss(m(x, k, N(2, 77, 2048, dt=BF), added_cond_kwargs=c).sample.float(), e.float(), reduction="none")
        return (l.mean((1, 2, 3)) * torch.stack([snr, 5 * torch.ones_like(k)], 1).min(1)[0] / snr).mean()

    fit(u, loss, 2, adamw(1e-4), amp=BF)
    d = {k: x.clone() for k, x in get_peft_model_state_dict(u).items()}
    set_peft_model_state_dict(u, d)
    fit(u, loss, 1, adamw(1e-4), amp=BF)


@job
def sdxl_pipeline_refines():
    """Picture from words, then from the picture, 1024 by 1024, decoder in single precision by force."""
    import diffusers, transformers as t

    k = dict(vae=df("AutoencoderKL", HF16, force_upcast=True, **VAE), text_encoder=None, tokenizer=None, text_encoder_2=None, tokenizer_2=None, unet=df("UNet2DConditionModel", HF16, **SDXL),
             scheduler=diffusers.EulerDiscreteScheduler())
    p = diffusers.StableDiffusionXLPipeline(**k).to(dev)
    w = dict(words(1, d=2048), pooled_prompt_embeds=N(1, 1280, dt=HF16), negative_pooled_prompt_embeds=N(1, 1280, dt=HF16))
    x = p(**w, num_inference_steps=4, output_type="pt").images
    q = diffusers.StableDiffusionXLImg2ImgPipeline(**p.components).to(dev)
    q(**w, image=x, strength=0.5, num_inference_steps=6, output_type="pt")


@job
def sd3_trains_checkpointed():
    """MMDiT of six blocks, Prodigy, flow matching."""
    from prodigyopt import Prodigy

    m = df("SD3Transformer2DModel", BF, sample_size=128, num_layers=6, num_attention_heads=24, caption_projection_dim=1536, pos_embed_max_size=192, out_channels=16)
    m.enable_gradient_checkpointing()

    def loss(m):
        x, y, t = sigma_noised(N(4, 16, 128, 128, dt=BF))
        return F.mse_loss(m(x, encoder_hidden_states=N(4, 154, 4096, dt=BF), pooled_projections=N(4, 2048, dt=BF), timestep=t * 1000).sample.float(), y.float())

    fit(m, loss, 3, lambda p: Prodigy(p, lr=1.0, weight_decay=0.01, safeguard_warmup=True, use_bias_correction=True))


FLUX = dict(num_layers=2, num_single_layers=4, guidance_embeds=True)


@job
def flux_lora_trains():
    """Flux at its width, two double and four single blocks, LoRA, packed latents, bf16."""
    from peft import LoraConfig

    m = df("FluxTransformer2DModel", BF, **FLUX).requires_grad_(False)
    m.add_adapter(LoraConfig(r=16, lora_alpha=16, target_modules=["attn.to_k", "attn.to_q", "attn.to_v", "attn.to_out.0", "ff.net.0.proj", "ff.net.2"]))
    m.enable_gradient_checkpointing()

    def loss(m):
        h = rng.choice([48, 64])
        x, y, t = sigma_noised(N(2, h * 64, 64, dt=BF))
        return F.mse_loss(m(hidden_states=x, timestep=t, guidance=torch.full((2,), 1.0, device=dev), pooled_projections=N(2, 768, dt=BF), encoder_hidden_states=N(2, 512, 4096, dt=BF),
                            txt_ids=torch.zeros(512, 3, device=dev), img_ids=torch.zeros(h * 64, 3, device=dev)).sample.float(), y.float())

    fit(m, loss, 4, adamw(1e-4), amp=BF, accum=2)


@job
def flux_pipeline():
    """Pictures from embeddings, decoded to 1024 by 1024 and 768 by 1344."""
    import diffusers

    p = diffusers.FluxPipeline(scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True), vae=df("AutoencoderKL", BF, **{**VAE, "latent_channels": 16}, use_quant_conv=False, shift_factor=0.1159,
                               use_post_quant_conv=False), text_encoder=None, tokenizer=None, text_encoder_2=None, tokenizer_2=None, transformer=df("FluxTransformer2DModel", BF, **FLUX))
    for n, h, w in ((1, 1024, 1024), (2, 768, 1344)):
        p(prompt_embeds=N(n, 512, 4096, dt=BF), pooled_prompt_embeds=N(n, 768, dt=BF), height=h, width=w, num_inference_steps=4, output_type="pt")


@job
def dit_xl_trains():
    """DiT-XL/2 of classes at 256 by 256, all 28 blocks, EMA by hand, bf16 autocast."""
    m = df("DiTTransformer2DModel", num_attention_heads=16, attention_head_dim=72, in_channels=4, out_channels=8, num_layers=28, sample_size=32, num_embeds_ada_norm=1000)
    ema, s = copy.deepcopy(m).requires_grad_(False), ddpm()

    def loss(m):
        x, e, t = noised(s, N(24, 4, 32, 32))
        return F.mse_loss(m(x, t, class_labels=T(24, v=1000)).sample[:, :4], e)

    for _ in range(3):
        fit(m, loss, 1, adamw(1e-4, weight_decay=0), amp=BF, clip=False)
        with torch.no_grad():
            for a, b in zip(ema.parameters(), m.parameters()):
                a.lerp_(b, 1e-4)


@job
def pixart_sigma_trains():
    """Eight blocks, masks of captions, two resolutions in turns."""
    m = df("PixArtTransformer2DModel", num_layers=8, sample_size=128, caption_channels=4096, interpolation_scale=2, use_additional_conditions=False)
    s = ddpm()

    def loss(m):
        h, w = rng.choice([(128, 128), (96, 160)])
        x, e, t = noised(s, N(4, 4, h, w))
        a = torch.ones(4, 300, device=dev)
        a[:, 120:] = 0
        return F.mse_loss(m(x, encoder_hidden_states=N(4, 300, 4096), encoder_attention_mask=a, timestep=t, added_cond_kwargs=dict(resolution=None, aspect_ratio=None)).sample[:, :4], e)

    fit(m, loss, 3, adamw(2e-5), amp=BF)


@job
def autoencoder_kl_trains():
    """A VAE against a patch discriminator, two optimizers, half precision."""
    v = df("AutoencoderKL", **{**VAE, "block_out_channels": (64, 128, 256, 256)})
    c = [3, 64, 128, 256]
    d = on(lambda: nn.Sequential(*[x for i in range(3) for x in (nn.Conv2d(c[i], c[i + 1], 4, 2, 1), nn.BatchNorm2d(c[i + 1]), nn.LeakyReLU(0.2))], nn.Conv2d(256, 1, 4, 1, 1)))
    a, b = torch.optim.Adam(v.parameters(), 4.5e-6, (0.5, 0.9)), torch.optim.Adam(d.parameters(), 4.5e-6, (0.5, 0.9))
    for _ in range(3):
        x = N(6, 3, 256, 256)
        with torch.autocast("cuda", BF):
            q = v.encode(x).latent_dist
            y = v.decode(q.sample()).sample
            l = (x - y).abs().mean() + 1e-6 * q.kl().sum() - 0.1 * d(y).mean()
        l.backward()
        a.step()
        a.zero_grad()
        with torch.autocast("cuda", BF):
            l = F.relu(1 - d(x)).mean() + F.relu(1 + d(y.detach())).mean()
        b.zero_grad()
        l.backward()
        b.step()


@job
def unconditional_with_accelerate():
    """train_unconditional: Accelerator in half precision, EMA, cosine schedule, pictures drawn between by the pipeline."""
    import diffusers
    from accelerate import Accelerator
    from diffusers.optimization import get_cosine_schedule_with_warmup

    a = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
    m = df("UNet2DModel", sample_size=64, block_out_channels=(128, 128, 256, 256, 512, 512), down_block_types=("DownBlock2D",) * 4 + ("AttnDownBlock2D", "DownBlock2D"),
           up_block_types=("UpBlock2D", "AttnUpBlock2D") + ("UpBlock2D",) * 4)
    e, s = diffusers.EMAModel(m.parameters(), decay=0.9999, use_ema_warmup=True), diffusers.DDPMScheduler(beta_schedule="squaredcos_cap_v2")
    o = torch.optim.AdamW(m.parameters(), 1e-4, (0.95, 0.999), weight_decay=1e-6)
    data = torch.utils.data.DataLoader(torch.randn(128, 3, 64, 64), 16, shuffle=True)
    m, o, data, r = a.prepare(m, o, data, get_cosine_schedule_with_warmup(o, 2, 100))
    for i, x in enumerate(data):
        y, n, t = noised(s, x)
        with a.accumulate(m):
            a.backward(F.mse_loss(m(y, t).sample.float(), n))
            if a.sync_gradients:
                a.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
            r.step()
            o.zero_grad()
        if a.sync_gradients:
            e.step(m.parameters())
        if i == 3:
            p = diffusers.DDPMPipeline(unet=a.unwrap_model(m), scheduler=s)
            p.set_progress_bar_config(disable=True)
            p(batch_size=8, num_inference_steps=5, output_type="np")


@job
def latent_consistency_distils():
    """Teacher, student and its average; the teacher is asked twice for guidance."""
    t = df("UNet2DConditionModel", HF16, **SD15).requires_grad_(False)
    m = df("UNet2DConditionModel", **SD15, time_cond_proj_dim=256)
    m.enable_gradient_checkpointing()
    g, s = copy.deepcopy(m).requires_grad_(False), ddpm()
    o = torch.optim.AdamW(m.parameters(), 1e-6)
    for _ in range(2):
        x, e, k = noised(s, N(4, 4, 64, 64))
        h, w = N(4, 77, 768), N(4, 256)
        with torch.autocast("cuda", HF16):
            p = m(x, k, timestep_cond=w, encoder_hidden_states=h).sample
            with torch.no_grad():
                y = t(x.half(), k, encoder_hidden_states=h.half()).sample
                z = t(x.half(), k, encoder_hidden_states=torch.zeros_like(h).half()).sample
                q = g((x - 0.1 * (y + 7 * (y - z))).float(), k, timestep_cond=w, encoder_hidden_states=h).sample
            l = ((p.float() - q.float()).square() + 0.001**2).sqrt().mean() - 0.001
        l.backward()
        o.step()
        o.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(list(g.parameters()), list(m.parameters()), 0.05)


@job
def cogvideox_trains():
    """Films of 13 latents, three blocks of the width of 2B, checkpoints."""
    m = df("CogVideoXTransformer3DModel", BF, num_layers=3, sample_width=90, sample_height=60, sample_frames=49)
    m.enable_gradient_checkpointing()

    def loss(m):
        x, y, t = sigma_noised(N(1, 13, 16, 60, 90, dt=BF))
        return F.mse_loss(m(x, N(1, 226, 4096, dt=BF), (t * 1000).long()).sample.float(), y.float())

    fit(m, loss, 3, adamw(), accum=2)


@job
def wan_pipeline():
    """Wan 1.3B of six blocks: a film of 33 pictures, guided, decoded part by part."""
    import diffusers

    p = diffusers.WanPipeline(tokenizer=None, text_encoder=None, vae=df("AutoencoderKLWan"), scheduler=diffusers.UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True,
                              flow_shift=3.0), transformer=df("WanTransformer3DModel", BF, num_attention_heads=12, num_layers=6, ffn_dim=8960))
    p(**words(1, BF, 4096, 226), height=480, width=832, num_frames=33, num_inference_steps=3, output_type="pt")


@job
def ltx_video_trains():
    """LTX with its dense latents, six blocks; the codec decodes a film in between."""
    m, v = df("LTXVideoTransformer3DModel", BF, num_layers=6), df("AutoencoderKLLTXVideo", BF).eval()

    def loss(m):
        x, y, t = sigma_noised(N(2, 7 * 16 * 24, 128, dt=BF))
        return F.mse_loss(m(hidden_states=x, encoder_hidden_states=N(2, 128, 4096, dt=BF), timestep=t * 1000, encoder_attention_mask=torch.ones(2, 128, device=dev), num_frames=7, height=16,
                            width=24).sample.float(), y.float())

    fit(m, loss, 2, adamw(fused=True))
    with torch.no_grad():
        v.decode(N(1, 128, 3, 16, 24, dt=BF))
    fit(m, loss, 2, adamw(fused=True))


@job
def stable_video_unet():
    """Spatio-temporal net of published width learns for films of 8 pictures in half precision."""
    m = df("UNetSpatioTemporalConditionModel", num_frames=8)
    m.enable_gradient_checkpointing()
    fit(m, lambda m: F.mse_loss(m(N(1, 8, 8, 40, 64), N(1), N(1, 1, 1024), added_time_ids=N(1, 3)).sample, N(1, 8, 4, 40, 64)), 2, lambda p: torch.optim.SGD(p, 1e-4), amp=HF16, scaler=True)


@job
def sana_and_deep_autoencoder():
    """Linear attention over latents of a codec that shrinks 32 times."""
    v = df("AutoencoderDC", BF, encoder_block_out_channels=(128, 256, 512, 512, 1024, 1024), decoder_block_out_channels=(128, 256, 512, 512, 1024, 1024),
           encoder_layers_per_block=(2, 2, 2, 3, 3, 3), decoder_layers_per_block=(3, 3, 3, 3, 3, 3), attention_head_dim=32,
           encoder_block_types=("ResBlock",) * 3 + ("EfficientViTBlock",) * 3, decoder_block_types=("ResBlock",) * 3 + ("EfficientViTBlock",) * 3,
           encoder_qkv_multiscales=((), (), (), (5,), (5,), (5,)), decoder_qkv_multiscales=((), (), (), (5,), (5,), (5,))).requires_grad_(False).eval()
    m = df("SanaTransformer2DModel", num_layers=6)

    def loss(m):
        with torch.no_grad():
            z = v.encode(N(4, 3, 512, 512, dt=BF)).latent.float()
        x, y, t = sigma_noised(z)
        return F.mse_loss(m(x, N(4, 300, 2304), t * 1000).sample, y)

    fit(m, loss, 3, adamw(), amp=BF)
    with torch.no_grad():
        v.decode(N(2, 32, 32, 32, dt=BF))


@job
def stable_audio_of_two_parts():
    """A DiT of sounds learns; Oobleck encodes and decodes 20 seconds."""
    m, v = df("StableAudioDiTModel", BF, num_layers=6), df("AutoencoderOobleck", HF16).eval()

    def loss(m):
        x, y, t = sigma_noised(N(4, 64, 1024, dt=BF))
        return F.mse_loss(m(x, timestep=t, encoder_hidden_states=N(4, 130, 768, dt=BF), global_hidden_states=N(4, 1, 1536, dt=BF)).sample.float(), y.float())

    fit(m, loss, 3, adamw())
    with torch.inference_mode():
        v.decode(v.encode(N(1, 2, 2048 * 420, dt=HF16)).latent_dist.mode())


@job
def animatediff_motion_learns():
    """Layers of motion between a frozen net of pictures, 16 pictures a film."""
    import diffusers

    u, a = df("UNet2DConditionModel", **SD15), on(diffusers.MotionAdapter)
    m = diffusers.UNetMotionModel.from_unet2d(u, a).to(dev)
    del u, a
    m.freeze_unet2d_params()
    m.enable_gradient_checkpointing()
    s = ddpm()

    def loss(m):
        x, e, t = noised(s, N(1, 4, 16, 32, 32))
        return F.mse_loss(m(x, t, N(1, 77, 768).expand(16, -1, -1)).sample, e)

    fit(m, loss, 2, adamw(), amp=BF)


@job
def c_flux_compiled():
    """Flux's blocks compiled one region for all, forward only, in two resolutions."""
    m = df("FluxTransformer2DModel", BF, **FLUX).eval()
    m.compile_repeated_blocks(fullgraph=True)
    with torch.no_grad():
        for h in (4096, 4096):
            m(hidden_states=N(1, h, 64, dt=BF), timestep=N(1, dt=BF), guidance=torch.full((1,), 1.0, device=dev), pooled_projections=N(1, 768, dt=BF), encoder_hidden_states=N(1, 512, 4096, dt=BF),
              txt_ids=torch.zeros(512, 3, device=dev), img_ids=torch.zeros(h, 3, device=dev))


# ---- PEFT's other methods
def gpt2(layers=12, dt=FP, **k):
    return hf("GPT2", dt, "GPT2LMHeadModel", n_layer=layers, use_cache=False, **k)


def small_llama(layers=4, dt=BF, **k):
    return hf("Llama", dt, **{**dict(hidden_size=2048, num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=8, intermediate_size=8192, vocab_size=128256), **k})


def tuned(m, cls, **k):
    import peft

    return peft.get_peft_model(m, getattr(peft, cls)(**k))


def ragged(vocab, n, lengths=(384, 512, 700)):
    def loss(m):
        x = T(n, rng.choice(lengths), v=vocab)
        return m(input_ids=x, labels=x).loss

    return loss


@job
def peft_weights_decomposed():
    """DoRA with rank-stabilized scales on all linear layers, merged and unmerged between."""
    m = tuned(small_llama(), "LoraConfig", r=32, use_dora=True, use_rslora=True, target_modules="all-linear", lora_dropout=0.05)
    fit(m, ragged(128000, 2), 3, adamw(1e-4))
    m.merge_adapter()
    with torch.no_grad():
        ragged(128000, 2)(m)
    m.unmerge_adapter()
    fit(m, ragged(128000, 2), 1, adamw(1e-4))


@job
def peft_ia3_of_t5():
    """Three vectors a layer for an encoder with decoder; saved, loaded, generated with."""
    import peft, transformers as t

    m = on(t.T5ForConditionalGeneration, t.T5Config(d_model=1024, d_ff=2816, d_kv=64, num_layers=8, num_heads=16, feed_forward_proj="gated-gelu", decoder_start_token_id=0))
    m = tuned(m, "IA3Config", task_type="SEQ_2_SEQ_LM", target_modules=["k", "v", "wo"], feedforward_modules=["wo"])
    fit(m, lambda m: m(input_ids=T(8, 256), labels=T(8, 64)).loss, 4, adamw(3e-3), amp=BF)
    m.save_pretrained("ia3")
    n = peft.PeftModel.from_pretrained(m.unload(), "ia3").eval()
    n.generate(input_ids=T(4, 256), max_new_tokens=16, min_new_tokens=16, do_sample=False)


@job
def peft_prefixes_and_prompts():
    """Prefix, prompt and P-tuning of one frozen GPT-2, in turns."""
    f = gpt2(dt=BF)
    for c, k in (("PrefixTuningConfig", dict(num_virtual_tokens=30, prefix_projection=True, encoder_hidden_size=768)), ("PromptTuningConfig", dict(num_virtual_tokens=20)),
                 ("PromptEncoderConfig", dict(num_virtual_tokens=20, encoder_hidden_size=128))):
        m = tuned(f, c, task_type="CAUSAL_LM", **k)
        fit(m, lambda m: (lambda x: m(input_ids=x, attention_mask=torch.ones_like(x), labels=x).loss)(T(8, 400, v=50257)), 3, adamw(3e-2))


@job
def peft_vera_and_fourier():
    """Shared random projections; then sparse spectra."""
    fit(tuned(small_llama(3), "VeraConfig", r=256, target_modules=["q_proj", "v_proj", "o_proj"]), ragged(128000, 3), 3, adamw(1e-3))
    fit(tuned(small_llama(3), "FourierFTConfig", n_frequency=1000, target_modules=["q_proj", "v_proj"], scaling=150.0), ragged(128000, 3), 3, adamw(1e-3))


@job
def peft_rotations():
    """OFT and HRA: orthogonal matrices before frozen layers."""
    fit(tuned(small_llama(3), "OFTConfig", r=0, oft_block_size=32, target_modules=["q_proj", "v_proj", "o_proj", "up_proj"], use_cayley_neumann=True), ragged(128000, 3), 3, adamw(1e-4), amp=BF)
    fit(tuned(small_llama(3), "HRAConfig", r=8, target_modules=["q_proj", "v_proj"]), ragged(128000, 3), 2, adamw(1e-4), amp=BF)


@job
def peft_products_of_pictures():
    """LoHa and LoKr on a vision transformer with a head of its own."""
    import transformers as t

    for c in ("LoHaConfig", "LoKrConfig"):
        m = tuned(on(t.ViTForImageClassification, t.ViTConfig(num_labels=101)), c, r=16, alpha=16, target_modules=["q_proj", "v_proj", "query", "value"], module_dropout=0.1, modules_to_save=["classifier"])
        fit(m, lambda m: m(pixel_values=N(48, 3, 224, 224), labels=T(48, v=101)).loss, 3, adamw(5e-3), amp=HF16, scaler=True)


@job
def peft_adalora_reallocates():
    """Ranks are taken from and given to layers between steps."""
    m = tuned(small_llama(3), "AdaLoraConfig", init_r=12, target_r=4, tinit=1, tfinal=2, deltaT=1, total_step=8, target_modules=["q_proj", "v_proj", "down_proj"], task_type="CAUSAL_LM")
    o = torch.optim.AdamW(learnt(m), 1e-3)
    for i in range(5):
        ragged(128000, 2)(m).backward()
        o.step()
        m.base_model.update_and_allocate(i)
        o.zero_grad()


@job
def peft_many_adapters():
    """Two LoRAs learn in turns, are added with weights, mixed in one batch, deleted."""
    m = tuned(small_llama(), "LoraConfig", r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"], task_type="CAUSAL_LM")
    m.add_adapter("b", m.peft_config["default"])
    for a in ("default", "b"):
        m.set_adapter(a)
        fit(m, ragged(128000, 2), 2, adamw(1e-4))
    m.eval()
    with torch.no_grad():
        m(input_ids=T(4, 300, v=128000), adapter_names=["default", "b", "__base__", "b"])
        m.add_weighted_adapter(["default", "b"], [0.7, 0.3], "c", combination_type="svd", svd_rank=16)
        m.set_adapter("c")
        m(input_ids=T(4, 300, v=128000))
    m.delete_adapter("b")
    m.merge_and_unload()(input_ids=T(2, 128, v=128000))


@job
def peft_new_words_and_norms():
    """Some rows of the table learn besides LoRA; then norms alone; then BOFT's kin MiSS."""
    fit(tuned(small_llama(3), "LoraConfig", r=8, target_modules="all-linear", trainable_token_indices=list(range(128000, 128040))), ragged(128200, 2), 3, adamw(1e-4))
    fit(tuned(small_llama(3), "LNTuningConfig", target_modules=["input_layernorm", "post_attention_layernorm", "norm"], task_type="CAUSAL_LM"), ragged(128200, 2), 2, adamw(1e-4))
    fit(tuned(small_llama(3), "MissConfig", r=64, target_modules=["q_proj", "v_proj"]), ragged(128200, 2), 2, adamw(1e-4))


# ---- TRL
def speech(n, lo, hi, seed=1, v=30000):
    r = random.Random(seed)
    return [" ".join("w%d" % r.randrange(v) for _ in range(r.randrange(lo, hi))) for _ in range(n)]


def reader(v=32000):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    t = Tokenizer(models.WordLevel({**{"w%d" % i: i for i in range(v - 3)}, "<s>": v - 3, "</s>": v - 2, "<pad>": v - 1}, unk_token="<pad>"))
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    t = PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    t.chat_template = "{% for m in messages %}{{ m['content'] + ' </s> ' }}{% endfor %}"
    return t


def qwen(layers=6, dt=BF, cls=None, **k):
    m = hf("Qwen2", dt, cls, hidden_size=896, num_hidden_layers=layers, num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864, vocab_size=32000, pad_token_id=31999,
           bos_token_id=31997, eos_token_id=31998, **k)
    return m


def trl(kind, m, rows, extra={}, **k):
    import trl as lib
    from datasets import Dataset

    with tempfile.TemporaryDirectory() as d:
        c = getattr(lib, kind + "Config")(**{**dict(output_dir=d, report_to=[], logging_steps=1, save_strategy="no", max_steps=3, per_device_train_batch_size=4, learning_rate=1e-5, disable_tqdm=True,
                                                    bf16=True, seed=3), **k})
        t = getattr(lib, kind + "Trainer")(model=m, args=c, train_dataset=Dataset.from_list(rows), processing_class=reader(), **extra)
        t.train()
        return t


def peft_config(**k):
    from peft import LoraConfig

    return LoraConfig(**{**dict(r=16, target_modules="all-linear", task_type="CAUSAL_LM"), **k})


@job
def trl_sft_packs():
    """Texts of 20 to 900 words packed to rows of 1,024; checkpoints."""
    trl("SFT", qwen(8), [dict(text=x) for x in speech(120, 20, 900)], packing=True, max_length=1024, gradient_checkpointing=True, packing_strategy="wrapped")


@job
def trl_sft_completions_lora():
    """Loss of the answers alone, LoRA, accumulation, evaluation between."""
    from datasets import Dataset

    rows = [dict(prompt=a, completion=" " + b) for a, b in zip(speech(80, 20, 300), speech(80, 20, 400, 2))]
    trl("SFT", qwen(8), rows[:64], dict(peft_config=peft_config(), eval_dataset=Dataset.from_list(rows[64:])), gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=2, max_length=512,
        per_device_eval_batch_size=4)


@job
def trl_sft_single_precision_offloads():
    """Weights in single precision; activations go to the host and back."""
    trl("SFT", qwen(6, FP), [dict(text=x) for x in speech(32, 400, 900)], activation_offloading=True, gradient_checkpointing=False, max_length=768)


def pairs(n, lo=20, hi=200):
    return [dict(prompt=a, chosen=" " + b, rejected=" " + c) for a, b, c in zip(speech(n, lo, hi), speech(n, lo, hi, 2), speech(n, lo, hi, 3))]


@job
def trl_dpo_with_adapter():
    """The reference is the model without its adapter."""
    trl("DPO", qwen(8), pairs(48), dict(peft_config=peft_config()), max_length=384, gradient_accumulation_steps=2)


@job
def trl_dpo_reference_precomputed():
    """Full training; what the reference says is computed before."""
    trl("DPO", qwen(6), pairs(32), precompute_ref_log_probs=True, loss_type=["ipo"], max_length=256)


@job
def trl_dpo_synchronized():
    """The reference follows the model; losses of two kinds are mixed."""
    trl("DPO", qwen(6), pairs(32), dict(ref_model=qwen(6)), sync_ref_model=True, ref_model_sync_steps=2, loss_type=["sigmoid", "sft"], loss_weights=[1.0, 0.5], max_length=256)


@job
def trl_rewards():
    """Scores of two answers by a head of one number, half precision with a scaler."""
    trl("Reward", qwen(8, FP, "Qwen2ForSequenceClassification", num_labels=1), [dict(chosen=a + " " + b, rejected=a + " " + c) for a, b, c in zip(*[speech(40, 20, 300, s) for s in (1, 2, 3)])],
        bf16=False, fp16=True, center_rewards_coefficient=0.01, gradient_checkpointing=False)


def lengths(completions, **k):
    return [float(len(c)) for c in completions]


@job
def trl_grpo_generates():
    """Groups of four answers of 48 words, sampled, compared, learnt from twice."""
    trl("GRPO", qwen(6), [dict(prompt=x) for x in speech(32, 30, 60)], dict(reward_funcs=lengths), per_device_train_batch_size=8, num_generations=4, max_completion_length=48, beta=0.0,
        generation_kwargs=dict(min_new_tokens=48), num_iterations=2, max_steps=4)


@job
def trl_rloo_lora():
    """Leave one out, LoRA, accumulation."""
    trl("RLOO", qwen(6), [dict(prompt=x) for x in speech(32, 30, 60)], dict(reward_funcs=lengths, peft_config=peft_config()), per_device_train_batch_size=4, gradient_accumulation_steps=2,
        num_generations=4, max_completion_length=32, generation_kwargs=dict(min_new_tokens=32), max_steps=2)


@job
def trl_kto():
    """Answers that are liked or not, one at a time."""
    rows = [dict(prompt=a, completion=" " + b, label=i % 2 == 0) for i, (a, b) in enumerate(zip(speech(32, 20, 150), speech(32, 20, 200, 2)))]
    trl("KTO", qwen(6), rows, dict(ref_model=qwen(6)), max_length=320)


# ---- Liger
def liger(name, **k):
    import liger_kernel.transformers as l

    getattr(l, "apply_liger_kernel_to_" + name)(**k)


@job
def liger_llama_trains():
    """Norms, rotations, SwiGLU and the loss of the head by Triton, lengths that vary, accumulation."""
    liger("llama")
    m = checkpointed(small_llama(4, hidden_size=4096, intermediate_size=14336))
    fit(m, ragged(128000, 2, (1024, 1500, 2048)), 3, adamw(fused=True), accum=2)


@job
def liger_qwen2_plain_loss():
    """Cross entropy without the fused head; autocast over single precision; evaluation between."""
    liger("qwen2", fused_linear_cross_entropy=False, cross_entropy=True)
    m = hf("Qwen2", FP, hidden_size=896, num_hidden_layers=8, num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864, vocab_size=151936, tie_word_embeddings=True)
    fit(m, ragged(151000, 4), 2, adamw(), amp=BF)
    m.eval()
    with torch.no_grad(), torch.autocast("cuda", BF):
        ragged(151000, 8)(m)
    fit(m, ragged(151000, 4), 2, adamw(), amp=BF)


@job
def liger_gemma2_and_mixtral():
    """Soft caps and GeGLU; then experts."""
    liger("gemma2")
    m = hf("Gemma2", hidden_size=1152, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, head_dim=128, intermediate_size=6912, vocab_size=256000, attn_implementation="eager")
    fit(m, ragged(255000, 2), 3, adamw())
    liger("mixtral")
    m = hf("Mixtral", hidden_size=1024, num_hidden_layers=3, num_attention_heads=16, num_key_value_heads=4, intermediate_size=3584, num_local_experts=8)
    fit(m, ragged(32000, 4), 2, adamw())


@job
def liger_losses_of_alignment():
    """Fused DPO and ORPO of chunks, Jensen-Shannon against a teacher."""
    from liger_kernel.chunked_loss import LigerFusedLinearDPOLoss, LigerFusedLinearORPOLoss
    from liger_kernel.transformers import LigerFusedLinearJSD

    w, r = N(128256, 2048, dt=BF).requires_grad_(), N(128256, 2048, dt=BF)
    for _ in range(3):
        x = N(8, 512, 2048, dt=BF).requires_grad_()
        LigerFusedLinearDPOLoss()(w, x, T(8, 512, v=128256), ref_input=x.detach(), ref_weight=r)[0].backward()
        LigerFusedLinearORPOLoss()(w, x, T(8, 512, v=128256))[0].backward()
        h = x.detach().view(-1, 2048).requires_grad_()
        LigerFusedLinearJSD(jsd_beta=0.5, temperature=2.0)(h[:1024], w, x.detach().view(-1, 2048)[:1024], r, None).backward()
        w.grad = None


@job
def liger_trl_sft():
    """TRL's trainer asks Liger for the whole."""
    trl("SFT", qwen(8), [dict(text=x) for x in speech(48, 300, 900)], use_liger_kernel=True, max_length=1024, per_device_train_batch_size=4)


# ---- flash-linear-attention
def fla(name, dt=BF, **k):
    import fla.models as f

    m = on(getattr(f, name + "ForCausalLM"), getattr(f, name + "Config")(**{**dict(hidden_size=1024, num_hidden_layers=6, vocab_size=32000, num_heads=8), **k}), dt=dt)
    return m


@job
def fla_gla_trains_and_writes():
    m = fla("GLA", num_heads=4)
    fit(m, ragged(32000, 4, (512, 1024, 1500)), 3, adamw(fused=True))
    m.eval().generate(input_ids=T(4, 200), max_new_tokens=16, min_new_tokens=16, do_sample=False)


@job
def fla_gated_deltas():
    """Gated DeltaNet with short convolutions, autocast over single precision."""
    fit(fla("GatedDeltaNet", FP, num_heads=4, head_dim=256), ragged(32000, 4, (512, 1024)), 3, adamw(), amp=BF)


@job
def fla_rwkv7_checkpointed():
    m = fla("RWKV7", head_dim=64)
    m.gradient_checkpointing_enable()
    fit(m, ragged(32000, 4, (1024, 2048)), 3, adamw())


# ---- timm's recipe
@job
def timm_recipe_of_vit():
    """train.py: mixup and cutmix, EMA of timm, layer-wise rates, drop path, a scaler of timm, evaluation by the average."""
    import timm
    from timm.data import Mixup
    from timm.loss import SoftTargetCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.scheduler import CosineLRScheduler
    from timm.utils import ModelEmaV3, NativeScaler

    m = net("vit_base_patch16_224", drop_path_rate=0.1, num_classes=1000)
    o = create_optimizer_v2(m, "adamw", 1e-3, weight_decay=0.05, layer_decay=0.75)
    e, s, mix, loss, plan = ModelEmaV3(m, decay=0.999), NativeScaler(), Mixup(0.8, 1.0, num_classes=1000), SoftTargetCrossEntropy(), CosineLRScheduler(o, 10)
    for i in range(3):
        x, y = mix(images(48, 224), T(48, v=1000))
        with torch.autocast("cuda", HF16):
            l = loss(m(x), y)
        s(l, o, 1.0, "agc", [p for p in m.parameters()], need_update=True)
        o.zero_grad()
        e.update(m, step=i)
        plan.step(i)
    with torch.no_grad(), torch.autocast("cuda", BF):
        e.module.eval()(images(96, 224)).topk(5)


@job
def timm_optimizers_of_all_kinds():
    """A ConvNeXt with one optimizer of timm after the other."""
    from timm.optim import create_optimizer_v2

    m = net("convnext_tiny", True)
    for n in ("lamb", "lars", "adabelief", "nadamw", "adafactorbv", "adopt", "laprop", "lion", "muon"):
        o = create_optimizer_v2(m, n, 1e-4, weight_decay=0.05)
        steps(learnt(m), o, lambda: F.cross_entropy(m(images(24, 224, True)), T(24, v=1000)), 2, BF)
        del o
        torch.cuda.empty_cache()


@job
def timm_distils_hybrid():
    """A small net of two heads learns from a large one, checkpointed, and gives features after."""
    a, b = net("regnety_080", True).eval().requires_grad_(False), net("deit_small_distilled_patch16_224")
    b.set_distilled_training(True)
    b.set_grad_checkpointing()

    def loss(m):
        x = images(64, 224)
        with torch.no_grad():
            t = a(x.to(memory_format=torch.channels_last))
        y, z = m(x)
        return 0.5 * F.cross_entropy(y, T(64, v=1000)) + 0.5 * F.kl_div((z / 3).log_softmax(1), (t / 3).log_softmax(1), reduction="batchmean", log_target=True)

    fit(b, loss, 3, adamw(5e-4), amp=BF)
    with torch.no_grad():
        b.eval().forward_intermediates(images(32, 224), indices=3)


@job
def timm_naflex_of_sizes():
    """Patches of pictures of unlike sizes with masks."""
    m = net("naflexvit_base_patch16_gap", num_classes=1000)

    def loss(m):
        n, l = rng.choice([(64, 128), (32, 256), (16, 576)])
        side = int(l**0.5)
        c = torch.stack(torch.meshgrid(torch.arange(l // side + 1), torch.arange(side), indexing="ij"), -1).view(-1, 2)[:l].expand(n, l, 2).to(dev)
        v = torch.ones(n, l, dtype=torch.bool, device=dev)
        v[::2, l * 3 // 4 :] = False
        return F.cross_entropy(m(N(n, l, 768), patch_coord=c, patch_valid=v), T(n, v=1000))

    fit(m, loss, 4, adamw(), amp=BF)


# ---- segmentation-models-pytorch
def smp(kind, encoder, nhwc=False, **k):
    import segmentation_models_pytorch as lib

    m = on(getattr(lib, kind), encoder, encoder_weights=None, **k)
    return m.to(memory_format=torch.channels_last) if nhwc else m


@job
def smp_unet_of_dice():
    """U-Net on ResNet-34 with attention gates, Dice and focal losses, half precision, metrics between."""
    import segmentation_models_pytorch as lib

    m, d, f = smp("Unet", "resnet34", classes=21, decoder_attention_type="scse"), lib.losses.DiceLoss("multiclass"), lib.losses.FocalLoss("multiclass")

    def loss(m):
        y, t = m(N(12, 3, 384, 384)), T(12, 384, 384, v=21)
        return d(y, t) + f(y, t)

    fit(m, loss, 3, adamw(), amp=HF16, scaler=True)
    with torch.no_grad():
        s = lib.metrics.get_stats(m.eval()(N(8, 3, 512, 512)).argmax(1), T(8, 512, 512, v=21), mode="multiclass", num_classes=21)
        lib.metrics.iou_score(*s, reduction="micro")


@job
def smp_deeplab_and_fpn():
    """DeepLabV3+ on EfficientNet with channels last; FPN on a net of timm; binary losses."""
    import segmentation_models_pytorch as lib

    j, b = lib.losses.JaccardLoss("binary"), lib.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1)
    for m, n, s in ((smp("DeepLabV3Plus", "efficientnet-b3", True, classes=1), 8, 512), (smp("FPN", "tu-resnest50d", True, classes=1), 12, 320)):
        fit(m, lambda m: (lambda y, t: j(y, t) + b(y, t))(m(images(n, s, True)), T(n, 1, s, s, v=2).float()), 3, adamw(), amp=BF)


@job
def smp_transformers_of_segments():
    """SegFormer on MiT-B2, DPT on a ViT, UPerNet on Swin."""
    for m, n, s in ((smp("Segformer", "mit_b2", classes=150), 8, 512), (smp("DPT", "tu-vit_base_patch16_224.augreg_in21k", classes=150, dynamic_img_size=True), 8, 384), (smp("UPerNet", "tu-convnext_tiny", classes=150), 6, 512)):
        fit(m, lambda m: F.cross_entropy(m(N(n, 3, s, s)), T(n, s, s, v=150)), 2, adamw(), amp=BF)


@job
def smp_nested_unet_single_precision():
    """U-Net++, Linknet and MAnet without autocast, Lovasz and Tversky."""
    import segmentation_models_pytorch as lib

    for m, l in ((smp("UnetPlusPlus", "resnet50", classes=5), lib.losses.TverskyLoss("multiclass")), (smp("Linknet", "mobilenet_v2", classes=5), lib.losses.LovaszLoss("multiclass")),
                 (smp("MAnet", "densenet121", classes=5), lib.losses.DiceLoss("multiclass"))):
        fit(m, lambda m: l(m(N(4, 3, 256, 256)), T(4, 256, 256, v=5)), 2, adamw())


# ---- Kornia
@job
def kornia_augments_on_the_card():
    """Augmentations drawn anew for each picture before a net of timm."""
    import kornia.augmentation as K

    a = K.AugmentationSequential(K.RandomResizedCrop((224, 224), (0.3, 1.0)), K.RandomHorizontalFlip(), K.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8), K.RandomGrayscale(p=0.2),
                                 K.RandomGaussianBlur((23, 23), (0.1, 2.0), p=0.5), K.RandomAffine(15.0, (0.1, 0.1), p=0.5), K.RandomErasing(p=0.2), K.Normalize(0.45, 0.22), data_keys=["input"]).to(dev)
    m = net("resnet50", True)
    fit(m, lambda m: F.cross_entropy(m(a(torch.rand(64, 3, 256, 256, device=dev)).to(memory_format=torch.channels_last)), T(64, v=1000)), 3, SGD, amp=BF)


@job
def kornia_loftr_matches():
    """LoFTR coarse and fine; the places that match hang on values."""
    import kornia.feature as KF

    m = on(KF.LoFTR, pretrained=None).eval()
    with torch.inference_mode():
        for h, w in ((480, 640), (384, 512)):
            m(dict(image0=torch.rand(2, 1, h, w, device=dev), image1=torch.rand(2, 1, h, w, device=dev)))


@job
def kornia_losses_of_restoration():
    """SSIM at many scales, total variation, Sobel, Laplacian pyramids: a restoring net."""
    import kornia as k

    m = on(lambda: nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *[x for _ in range(6) for x in (nn.Conv2d(64, 64, 3, padding=1), nn.PReLU())], nn.Conv2d(64, 3, 3, padding=1)))
    ssim = k.losses.SSIMLoss(11).to(dev)

    def loss(m):
        x = torch.rand(8, 3, 256, 256, device=dev)
        y = m(k.filters.gaussian_blur2d(x, (9, 9), (2.0, 2.0)))
        p = sum(F.l1_loss(a, b) for a, b in zip(k.geometry.build_laplacian_pyramid(y, 3), k.geometry.build_laplacian_pyramid(x, 3)))
        return ssim(y, x) + p + F.l1_loss(k.filters.sobel(y), k.filters.sobel(x)) + 1e-4 * k.losses.total_variation(y).mean()

    fit(m, loss, 3, adamw(1e-4))


@job
def kornia_registers_and_warps():
    """A homography is found by gradients through a pyramid; then thin plates and undistorted depth."""
    import kornia.geometry as G

    r = G.ImageRegistrator("similarity", num_iterations=15, pyramid_levels=3, tolerance=0.0).to(dev)
    r.register(torch.rand(1, 3, 512, 512, device=dev), torch.rand(1, 3, 512, 512, device=dev))
    h = torch.eye(3, device=dev).repeat(16, 1, 1).requires_grad_()
    for _ in range(3):
        x = torch.rand(16, 3, 384, 384, device=dev)
        (G.warp_perspective(x, h, (384, 384)) - x).square().mean().backward()
        d = torch.rand(16, 1, 384, 384, device=dev, requires_grad=True)
        G.depth_to_normals(d, torch.eye(3, device=dev).repeat(16, 1, 1)).abs().mean().backward()


# ---- MONAI
@job
def monai_unet_of_volumes():
    """Residual U-Net, Dice and cross entropy, half precision with a scaler, then windows that slide over a whole scan."""
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss
    from monai.metrics import DiceMetric
    from monai.networks.nets import UNet

    m, l, d = on(UNet, 3, 1, 3, (16, 32, 64, 128, 256), (2, 2, 2, 2), num_res_units=2), DiceCELoss(to_onehot_y=True, softmax=True), DiceMetric()
    fit(m, lambda m: l(m(N(4, 1, 96, 96, 96)), T(4, 1, 96, 96, 96, v=3).float()), 3, adamw(1e-4), amp=HF16, scaler=True)
    with torch.no_grad(), torch.autocast("cuda", HF16):
        y = sliding_window_inference(N(1, 1, 200, 180, 140), (96, 96, 96), 4, m.eval(), overlap=0.5, mode="gaussian")
    d(F.one_hot(y.argmax(1), 3).movedim(-1, 1), F.one_hot(T(1, 200, 180, 140, v=3), 3).movedim(-1, 1))


@job
def monai_swin_unetr_checkpointed():
    from monai.losses import DiceLoss
    from monai.networks.nets import SwinUNETR

    m, l = on(SwinUNETR, 1, 14, feature_size=48, use_checkpoint=True), DiceLoss(to_onehot_y=True, softmax=True)
    fit(m, lambda m: l(m(N(1, 1, 96, 96, 96)), T(1, 1, 96, 96, 96, v=14)), 3, adamw(1e-4), amp=BF, accum=2)


@job
def monai_dynunet_and_segresnet():
    """nnU-Net's shape with losses at three depths; SegResNet with a variational branch."""
    from monai.losses import DeepSupervisionLoss, DiceFocalLoss
    from monai.networks.nets import DynUNet, SegResNetVAE

    m = on(DynUNet, 3, 4, 3, [3] * 5, [1, 2, 2, 2, 2], [2] * 4, deep_supervision=True, deep_supr_num=2, res_block=True)
    l = DeepSupervisionLoss(DiceFocalLoss(sigmoid=True))
    fit(m, lambda m: l(list(m(N(2, 4, 96, 96, 96)).unbind(1)), T(2, 3, 96, 96, 96, v=2).float()), 3, lambda p: torch.optim.SGD(p, 0.01, 0.99, nesterov=True), amp=HF16, scaler=True)
    m = on(SegResNetVAE, (96, 96, 64), in_channels=4, out_channels=3, init_filters=16)
    fit(m, lambda m: (lambda y, v: y.sigmoid().mean() + 0.1 * v)(*m(N(1, 4, 96, 96, 64))), 2, adamw(1e-4), amp=BF)


@job
def monai_unetr_and_diffusion():
    """UNETR; then a latent diffusion of volumes: codec and net of noise."""
    from monai.networks.nets import UNETR, AutoencoderKL, DiffusionModelUNet

    m = on(UNETR, 1, 14, (96, 96, 96), feature_size=16)
    fit(m, lambda m: F.cross_entropy(m(N(2, 1, 96, 96, 96)), T(2, 96, 96, 96, v=14)), 2, adamw(1e-4), amp=BF)
    v = on(AutoencoderKL, 3, 1, 1, num_res_blocks=(1, 1, 1), channels=(32, 64, 64), attention_levels=(False, False, False), latent_channels=3, norm_num_groups=32,
           with_encoder_nonlocal_attn=False, with_decoder_nonlocal_attn=False)
    u = on(DiffusionModelUNet, 3, 3, 3, num_res_blocks=1, channels=(32, 64, 64), attention_levels=(False, True, True), num_head_channels=(0, 64, 64))
    fit(v, lambda m: (lambda x: (lambda y, a, b: (y - x).abs().mean() + 1e-6 * (a.square() + b.square()).sum())(*m(x)))(N(2, 1, 64, 64, 64)), 2, adamw(1e-4), amp=BF)

    def loss(u):
        with torch.no_grad():
            z = v.encode_stage_2_inputs(N(2, 1, 64, 64, 64))
        return F.mse_loss(u(z, T(2, v=1000)), torch.randn_like(z))

    fit(u, loss, 2, adamw(1e-4), amp=BF)


@job
def monai_transforms_on_the_card():
    """Elastic, affine, noise, blur, zoom of batches before a classifier of volumes."""
    from monai.networks.nets import DenseNet121
    from monai.transforms import Compose, RandAffine, RandFlip, RandGaussianNoise, RandGaussianSmooth, RandZoom

    f = Compose([RandAffine(1.0, (0.3,) * 3, scale_range=(0.1,) * 3, mode="bilinear", padding_mode="border", device=torch.device(dev)), RandFlip(0.5, 0), RandGaussianNoise(1.0), RandGaussianSmooth(prob=1.0), RandZoom(1.0, 0.9, 1.1)])
    f.set_random_state(0)
    m = on(DenseNet121, 3, 1, 2)
    for _ in range(3):
        x = torch.stack([f(N(1, 80, 80, 80)).as_tensor() for _ in range(4)])
        fit(m, lambda m: F.cross_entropy(m(x), T(4, v=2)), 1, adamw(1e-4), amp=BF)


# ---- x-transformers, quantizers, diffusion of lucidrains
@job
def x_transformers_writes():
    """Rotary, GLU, RMS norms, one key head; trained, then text with a cache."""
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    m = on(AutoregressiveWrapper, TransformerWrapper(num_tokens=20000, max_seq_len=1024, attn_layers=Decoder(dim=768, depth=8, heads=12, attn_flash=True, rotary_pos_emb=True, ff_glu=True, ff_swish=True,
           use_rmsnorm=True, attn_kv_heads=4)))
    fit(m, lambda m: m(T(8, rng.choice([513, 1025]), v=20000)), 3, adamw(1e-4), amp=BF, accum=2)
    m.eval().generate(T(2, 64, v=20000), 32, cache_kv=True)


@job
def x_transformers_of_other_attention():
    """Talking heads, sparse top-k, ALiBi, memories of XL, without flash; then encoder and decoder."""
    from x_transformers import Decoder, TransformerWrapper, XTransformer

    m = on(TransformerWrapper, num_tokens=20000, max_seq_len=512, max_mem_len=512, attn_layers=Decoder(dim=512, depth=6, heads=8, alibi_pos_bias=True, attn_pre_talking_heads=True, attn_post_talking_heads=True, attn_sparse_topk=8, macaron=True, sandwich_norm=False))
    mems = None
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = T(4, 513, v=20000)
        y, mems = m(x[:, :-1], mems=mems, return_mems=True)
        F.cross_entropy(y.transpose(1, 2), x[:, 1:]).backward()
        o.step()
        o.zero_grad()
    m = on(XTransformer, dim=512, enc_num_tokens=8000, enc_depth=6, enc_heads=8, enc_max_seq_len=512, dec_num_tokens=8000, dec_depth=6, dec_heads=8, dec_max_seq_len=512, tie_token_emb=True)
    fit(m, lambda m: m(T(16, 256, v=8000), T(16, 256, v=8000), mask=torch.ones(16, 256, device=dev).bool()), 3, adamw(1e-4), amp=HF16, scaler=True)


@job
def quantizers_of_codes():
    """Books by averages with dead codes replaced, residual books, finite scalars, look-up free: one encoder of pictures."""
    from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

    enc, dec = (on(lambda a: nn.Sequential(*a), a) for a in ([nn.Conv2d(3, 128, 4, 2, 1), nn.SiLU(), nn.Conv2d(128, 256, 4, 2, 1), nn.SiLU(), nn.Conv2d(256, 256, 3, 1, 1)],
                [nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(128, 3, 4, 2, 1)]))
    for q, d in ((VectorQuantize(256, 1024, decay=0.9, kmeans_init=True, threshold_ema_dead_code=2, use_cosine_sim=True), 256),
                 (ResidualVQ(dim=256, num_quantizers=4, codebook_size=512, shared_codebook=True, quantize_dropout=True), 256), (FSQ([8, 5, 5, 5], dim=256), 0),
                 (LFQ(codebook_size=2**12, dim=256, entropy_loss_weight=0.1), 0)):
        m = nn.ModuleList([enc, q.to(dev), dec])

        def loss(m):
            x = N(8, 3, 128, 128)
            z, *r = m[1](m[0](x).flatten(2).mT)
            return F.mse_loss(m[2](z.mT.unflatten(2, (32, 32))), x) + (sum(a.sum() for a in r if a.is_floating_point()) if r else 0)

        fit(m, loss, 3, adamw(1e-4))


@job
def ddpm_of_lucidrains():
    """The trainer's loop of the package: half precision, accumulation, EMA of its own, pictures drawn in between."""
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet
    from ema_pytorch import EMA

    d = on(lambda: GaussianDiffusion(Unet(dim=64, dim_mults=(1, 2, 4, 8), flash_attn=True), image_size=128, timesteps=1000, sampling_timesteps=8))
    e = EMA(d, beta=0.995, update_every=1, update_after_step=0).to(dev)
    for _ in range(2):
        fit(d, lambda d: d(torch.rand(12, 3, 128, 128, device=dev)), 1, lambda p: torch.optim.Adam(p, 8e-5, (0.9, 0.99)), amp=HF16, scaler=True, accum=2)
        e.update()
    with torch.autocast("cuda", HF16):
        e.ema_model.eval().sample(batch_size=8)


@job
def karras_unet_of_magnitudes():
    """A net that keeps magnitudes, single precision, its weights normalized by each step; then lines of one dimension."""
    from denoising_diffusion_pytorch import GaussianDiffusion1D, KarrasUnet, Unet1D

    m = on(KarrasUnet, image_size=64, channels=3, dim=128, dim_max=512, num_downsamples=3, num_blocks_per_stage=2, attn_res=(16, 8), fourier_dim=16)

    def loss(m):
        x, s = torch.rand(8, 3, 64, 64, device=dev), N(8).exp()
        return (m(x + s.view(-1, 1, 1, 1) * torch.randn_like(x), s.log() / 4) - x).square().mean()

    fit(m, loss, 3, adamw(1e-4))
    with torch.no_grad():
        m.eval()(N(16, 3, 64, 64), N(16))
    m = on(lambda: GaussianDiffusion1D(Unet1D(dim=64, dim_mults=(1, 2, 4, 8), channels=32), seq_length=1024, timesteps=1000))
    fit(m, lambda m: m(torch.rand(16, 32, 1024, device=dev)), 3, adamw(1e-4), amp=BF)


@job
def vit_pytorch_teachers():
    """A ViT learns from a ResNet by a token of its own; another from its own average (DINO), in half precision."""
    import torchvision
    from vit_pytorch import Dino, ViT
    from vit_pytorch.distill import DistillableViT, DistillWrapper

    k = dict(image_size=224, patch_size=16, num_classes=1000, dim=768, depth=8, heads=12, mlp_dim=3072)
    d = on(lambda: DistillWrapper(student=DistillableViT(**k), teacher=torchvision.models.resnet50(), temperature=3.0, alpha=0.5, hard=False))
    fit(d, lambda d: d(N(48, 3, 224, 224), T(48, v=1000)), 3, adamw(), amp=BF)
    d = Dino(ViT(**k).to(dev), image_size=224, hidden_layer="to_latent", projection_hidden_size=256, projection_layers=4, num_classes_K=65336, student_temp=0.9, teacher_temp=0.04).to(dev)
    for _ in range(2):
        fit(d, lambda d: d(torch.rand(12, 3, 224, 224, device=dev)), 1, adamw(), amp=BF)
        d.update_moving_average()


@job
def vit_pytorch_of_unlike_sizes():
    """NaViT packs pictures; MaxViT, CrossViT and CvT in half precision."""
    from vit_pytorch.cross_vit import CrossViT
    from vit_pytorch.cvt import CvT
    from vit_pytorch.max_vit import MaxViT
    from vit_pytorch.na_vit import NaViT

    m = on(NaViT, image_size=256, patch_size=32, num_classes=1000, dim=1024, depth=6, heads=16, mlp_dim=2048, token_dropout_prob=0.1)
    fit(m, lambda m: F.cross_entropy(m([N(3, 32 * rng.randrange(3, 9), 32 * rng.randrange(3, 9)) for _ in range(40)], group_images=True, group_max_seq_len=256), T(40, v=1000)), 3, adamw(), amp=BF)
    for m, n, s in ((on(MaxViT, num_classes=1000, dim_conv_stem=64, dim=96, dim_head=32, depth=(2, 2, 5, 2), window_size=7, mbconv_expansion_rate=4, mbconv_shrinkage_rate=0.25), 16, 224),
                    (on(CrossViT, image_size=240, num_classes=1000, depth=4, sm_dim=192, lg_dim=384), 32, 240), (on(CvT, num_classes=1000), 16, 224)):
        fit(m, lambda m: F.cross_entropy(m(N(n, 3, s, s)), T(n, v=1000)), 2, adamw(), amp=HF16, scaler=True)


# ---- torchao
@job
def torchao_float8_trains():
    """Linear layers whose products are made of FP8, scaled by the tensor, then by the row; not compiled."""
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training

    for r in ("tensorwise", "rowwise"):
        m = checkpointed(small_llama(3, hidden_size=2048))
        convert_to_float8_training(m, config=Float8LinearConfig.from_recipe_name(r), module_filter_fn=lambda f, n: "lm_head" not in n)
        fit(m, lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(2, 1024, v=128000)), 3, adamw(fused=True))


@job
def c_torchao_adam_of_few_bits():
    """States of 8 bits and of 4 bits; each optimizer compiles its step."""
    from torchao.optim import AdamW4bit, AdamW8bit

    m = hf("Qwen2", hidden_size=512, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=8, intermediate_size=512, vocab_size=32000, tie_word_embeddings=True)
    for o in (AdamW8bit, AdamW4bit):
        fit(m, ragged(32000, 4, (512,)), 2, lambda p: o(p, 1e-4), clip=False)


@job
def torchao_quantized_inference():
    """A net of bf16 becomes one of int8, of int4 and of FP8 weights; prefill and a few tokens."""
    from torchao.quantization import Float8WeightOnlyConfig, Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

    for c in (Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig(), Float8WeightOnlyConfig()):
        m = small_llama(4, vocab_size=32000).eval()
        quantize_(m, c)
        with torch.inference_mode():
            m.generate(input_ids=T(2, 300), max_new_tokens=8, min_new_tokens=8, do_sample=False)


@job
def torchao_quantization_aware():
    """Fake quantization of activations and weights while training, then the real one."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, PerGroup, quantize_
    from torchao.quantization.qat import QATConfig

    c = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32))
    m = small_llama(2, FP, vocab_size=32000, hidden_size=1024)
    quantize_(m, QATConfig(c, step="prepare"))
    fit(m, ragged(32000, 4), 3, adamw())
    quantize_(m, QATConfig(c, step="convert"))
    with torch.no_grad():
        m.eval()(input_ids=T(2, 128))


# ---- OpenCLIP, LitGPT
@job
def open_clip_contrasts():
    """ViT-B/16 with the loss of its trainer, features of accumulated batches kept, gradients checkpointed."""
    import open_clip

    m = on(open_clip.create_model, "ViT-B-16", device=dev)
    m.set_grad_checkpointing()
    loss, o = open_clip.loss.ClipLoss(), torch.optim.AdamW(m.parameters(), 5e-4, (0.9, 0.98), 1e-6, 0.2)
    for _ in range(2):
        b = [(N(96, 3, 224, 224), T(96, 77, v=49407)) for _ in range(3)]
        with torch.no_grad(), torch.autocast("cuda", BF):
            old = [m(x, t)[:2] for x, t in b]
        for j, (x, t) in enumerate(b):
            with torch.autocast("cuda", BF):
                a, c, s = m(x, t)
                l = loss(*(torch.cat([*(k[i] for k in old[:j]), y, *(k[i] for k in old[j + 1 :])]) for i, y in ((0, a), (1, c))), s)
            l.backward()
        o.step()
        o.zero_grad()


@job
def open_clip_captions_and_sigmoids():
    """CoCa learns to describe; then a sigmoid loss over a ConvNeXt; pure bf16."""
    import open_clip

    m = on(open_clip.create_model, "coca_ViT-B-32", device=dev)
    c = open_clip.loss.CoCaLoss(2.0, 1.0)

    def loss(m):
        o = m(N(48, 3, 224, 224), T(48, 76, v=49407))
        return sum(c(o["image_features"], o["text_features"], o["logits"], o["labels"], o["logit_scale"]))

    fit(m, loss, 3, adamw(), amp=BF)
    m = on(open_clip.create_model, "convnext_base", device=dev, precision="pure_bf16")
    s = open_clip.loss.SigLipLoss()
    fit(m, lambda m: s(*m(N(48, 3, 224, 224, dt=BF), T(48, 77, v=49407))[:2], torch.tensor(10.0, device=dev), torch.tensor(-10.0, device=dev)), 3, adamw())


@job
def litgpt_pretrains_and_adapts():
    """Its GPT with the loss in chunks, then LoRA, then text with its cache."""
    import litgpt, litgpt.lora
    from litgpt.utils import chunked_cross_entropy

    k = dict(n_layer=6, padded_vocab_size=32000)
    m = on(litgpt.GPT, litgpt.Config.from_name("tiny-llama-1.1b", **k), dt=BF)
    loss = lambda m: (lambda x: chunked_cross_entropy(m(x[:, :-1]), x[:, 1:], chunk_size=128))(T(4, rng.choice([513, 1025, 2049])))
    fit(m, loss, 3, adamw(fused=True))
    n = on(litgpt.lora.GPT, litgpt.lora.Config.from_name("tiny-llama-1.1b", **k, lora_r=8, lora_alpha=16, lora_query=True, lora_value=True, lora_projection=True), dt=BF)
    n.load_state_dict(m.state_dict(), strict=False)
    litgpt.lora.mark_only_lora_as_trainable(n)
    fit(n, loss, 3, adamw(1e-4))
    m.eval()
    with torch.device(dev), torch.no_grad():
        m.set_kv_cache(batch_size=1, dtype=BF)
        m(T(1, 200), torch.arange(200))
        for i in range(200, 220):
            m(T(1, 1), torch.tensor([i])).argmax(-1)


# ---- optimizers of other makers
def one_of_each(m, loss, made, n=2, **k):
    for o in made:
        fit(m, loss, n, o, **k)
        torch.cuda.empty_cache()


@job
def optimizers_without_schedule():
    """Schedule-free AdamW and SGD, train and eval modes in turns; Prodigy, Lion, Adan."""
    from adan_pytorch import Adan
    from lion_pytorch import Lion
    from prodigyopt import Prodigy
    from schedulefree import AdamWScheduleFree, RAdamScheduleFree, SGDScheduleFree

    m = gpt2(6)
    for c, k in ((AdamWScheduleFree, dict(lr=1e-3, warmup_steps=2)), (SGDScheduleFree, dict(lr=0.1)), (RAdamScheduleFree, dict(lr=1e-3))):
        o = c(m.parameters(), **k)
        o.train()
        steps(learnt(m), o, lambda: ragged(50257, 4)(m), 2, BF)
        o.eval()
        with torch.no_grad():
            ragged(50257, 4)(m)
        del o
    one_of_each(m, ragged(50257, 4), [lambda p: Lion(p, 1e-4), lambda p: Adan(p, 1e-3, betas=(0.02, 0.08, 0.01)), lambda p: Prodigy(p, 1.0)], amp=BF)


@job
def optimizers_of_preconditioners():
    """SOAP, Shampoo, Muon of pytorch-optimizer on a net of matrices."""
    import pytorch_optimizer as q

    m = gpt2(2, n_embd=512, n_head=8, vocab_size=8000)
    one_of_each(m, ragged(8000, 8), [lambda p: q.SOAP(p, 1e-3, precondition_frequency=2, max_precondition_dim=2048), lambda p: q.ScalableShampoo(p, 1e-3, start_preconditioning_step=1, preconditioning_compute_steps=2, block_size=1024),
                lambda p: q.Muon([dict(params=[x for x in p if x.ndim == 2 and len(x) < 5000], use_muon=True), dict(params=[x for x in p if x.ndim != 2 or len(x) >= 5000], use_muon=False)], lr=1e-3)], 2, amp=BF)


@job
def optimizers_of_little_memory():
    """AdEMAMix, CAME, Adam-mini's kin, GaLore, APOLLO, LAMB, Ranger21, SAM around SGD."""
    import pytorch_optimizer as q

    m = gpt2(6)
    one_of_each(m, ragged(50257, 4), [lambda p: q.AdEMAMix(p), lambda p: q.CAME(p, 1e-4), lambda p: q.GaLore([dict(params=[x for x in p if x.ndim == 2], rank=64, update_proj_gap=2, scale=0.25, projection_type="std"),
                dict(params=[x for x in p if x.ndim != 2])], lr=1e-3), lambda p: q.Lamb(p, 1e-3), lambda p: q.Ranger21(p, 20, lr=1e-3), lambda p: q.StableAdamW(p), lambda p: q.MARS(p), lambda p: q.GrokFastAdamW(p)], amp=BF)
    o = q.SAM(m.parameters(), torch.optim.SGD, rho=0.05, lr=0.1)
    for _ in range(2):
        x = T(4, 300, v=50257)
        m(input_ids=x, labels=x).loss.backward()
        o.first_step(zero_grad=True)
        m(input_ids=x, labels=x).loss.backward()
        o.second_step(zero_grad=True)


# ---- metric learning, forecasts, reinforcement, averages
@job
def metrics_with_miners():
    """Triplets that a miner chooses, ArcFace, NT-Xent with a queue, proxies: embeddings of a ResNet."""
    from pytorch_metric_learning import losses, miners

    m = net("resnet50", num_classes=512)
    hard, trip = miners.BatchHardMiner(), losses.TripletMarginLoss(0.2)
    arc, proxy = losses.ArcFaceLoss(10000, 512).to(dev), losses.ProxyAnchorLoss(2000, 512).to(dev)
    queue = losses.CrossBatchMemory(losses.NTXentLoss(0.07), 512, memory_size=1024)

    def loss(m):
        y, t = m(N(64, 3, 224, 224)).float(), torch.arange(16, device=dev).repeat_interleave(4)
        return trip(y, t, hard(y, t)) + arc(y, T(64, v=10000)) + proxy(y, T(64, v=2000)) + queue(y, t)

    fit(m, loss, 3, SGD, amp=BF)


@job
def forecasts_with_lightning():
    """A fusion transformer of time series, quantiles, trained by Lightning with accumulation and clipping."""
    import lightning.pytorch as pl, pandas as pd
    from pytorch_forecasting import QuantileLoss, TemporalFusionTransformer, TimeSeriesDataSet

    r = np.random.default_rng(0)
    d = pd.DataFrame(dict(i=np.tile(np.arange(200), 60), g=np.repeat(np.arange(60), 200).astype(str), y=r.normal(size=12000), a=r.normal(size=12000), b=r.normal(size=12000)))
    s = TimeSeriesDataSet(d, time_idx="i", target="y", group_ids=["g"], max_encoder_length=96, max_prediction_length=24, static_categoricals=["g"], time_varying_known_reals=["i", "a"],
                          time_varying_unknown_reals=["y", "b"], add_relative_time_idx=True)
    m = TemporalFusionTransformer.from_dataset(s, hidden_size=160, attention_head_size=4, dropout=0.1, hidden_continuous_size=64, loss=QuantileLoss(), learning_rate=1e-3, log_interval=-1)
    t = pl.Trainer(max_steps=4, accelerator="gpu", devices=1, gradient_clip_val=0.1, accumulate_grad_batches=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    t.fit(m, s.to_dataloader(train=True, batch_size=256, num_workers=0))


@job
def torchrl_ppo_of_many_worlds():
    """Worlds of tensors on the card, collected, advantages, clipped losses, batches from a buffer there."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.data import LazyTensorStorage, ReplayBuffer
    from torchrl.data.replay_buffers import SamplerWithoutReplacement
    from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

    k = dict(num_cells=[512, 512, 512], device=dev, activation_class=nn.Tanh)
    a = ProbabilisticActor(TensorDictModule(nn.Sequential(MLP(in_features=64, out_features=16, **k), NormalParamExtractor()), ["observation"], ["loc", "scale"]), in_keys=["loc", "scale"],
                           distribution_class=TanhNormal, return_log_prob=True)
    v = ValueOperator(MLP(in_features=64, out_features=1, **k), ["observation"])
    g, l = GAE(gamma=0.99, lmbda=0.95, value_network=v), ClipPPOLoss(a, v)
    o, b = torch.optim.Adam(l.parameters(), 3e-4), ReplayBuffer(storage=LazyTensorStorage(4096 * 32, device=dev), sampler=SamplerWithoutReplacement(), batch_size=16384)
    w = N(64, 64) * 0.1
    for _ in range(2):
        x, film = N(4096, 64), []
        with torch.no_grad():
            for _ in range(32):
                d = a(TensorDict(dict(observation=x), [4096]))
                x = torch.tanh(x @ w + F.pad(d["action"], (0, 56)))
                z = torch.zeros(4096, 1, dtype=torch.bool, device=dev)
                d["next"] = TensorDict(dict(observation=x, reward=-x.square().mean(1, keepdim=True), done=z, terminated=z), [4096])
                film.append(d)
            d = torch.stack(film, 1)
            g(d)
        b.extend(d.reshape(-1))
        for _ in range(6):
            r = l(b.sample())
            sum(r[k] for k in ("loss_objective", "loss_critic", "loss_entropy")).backward()
            nn.utils.clip_grad_norm_(l.parameters(), 1.0)
            o.step()
            o.zero_grad()


@job
def torchrl_sac_with_priorities():
    """Off policy: two critics by vmap, targets that follow, a buffer in the memory of the card."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.data import Bounded, LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
    from torchrl.objectives import SACLoss, SoftUpdate

    k = dict(num_cells=[1024, 1024], device=dev)
    a = ProbabilisticActor(TensorDictModule(nn.Sequential(MLP(in_features=376, out_features=34, **k), NormalParamExtractor()), ["observation"], ["loc", "scale"]), in_keys=["loc", "scale"],
                           distribution_class=TanhNormal, spec=Bounded(-1, 1, (17,), device=dev))
    l = SACLoss(a, ValueOperator(MLP(in_features=376 + 17, out_features=1, **k), ["observation", "action"]), num_qvalue_nets=2)
    l.make_value_estimator(gamma=0.99)
    u, o, b = SoftUpdate(l, eps=0.995), torch.optim.Adam(l.parameters(), 3e-4), TensorDictReplayBuffer(storage=LazyTensorStorage(100000, device=dev), batch_size=4096)
    for _ in range(4):
        z = torch.zeros(5000, 1, dtype=torch.bool, device=dev)
        b.extend(TensorDict(dict(observation=N(5000, 376), action=torch.rand(5000, 17, device=dev), next=TensorDict(dict(observation=N(5000, 376), reward=N(5000, 1), done=z, terminated=z), [5000])), [5000]))
        for _ in range(4):
            r = l(b.sample())
            (r["loss_actor"] + r["loss_qvalue"] + r["loss_alpha"]).backward()
            o.step()
            o.zero_grad()
            u.step()


@job
def lightning_fabric_by_hand():
    """Fabric in bf16: accumulation without synchronization, averages of weights, clipping, states saved and loaded."""
    import lightning as L
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    f = L.Fabric(accelerator="cuda", devices=1, precision="bf16-mixed")
    with f.init_module():
        m = gpt2(8)
    m.train()
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    m, o = f.setup(m, o)
    e = AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    for i in range(6):
        with f.no_backward_sync(m, enabled=i % 2 == 0):
            f.backward(ragged(50257, 4)(m))
        if i % 2:
            f.clip_gradients(m, o, max_norm=1.0)
            o.step()
            o.zero_grad()
            e.update_parameters(m)
        if i == 3:
            f.save("a.ckpt", dict(model=m, optimizer=o))
            f.load("a.ckpt", dict(model=m, optimizer=o))

if __name__ == "__main__":
    main()
