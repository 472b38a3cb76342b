# SPDX-License-Identifier: Apache-2.0
"""Architectures of transformers, timm and torchvision: three training steps of a small version of each, and what PyTorch's allocator says.

    architectures.py OUT.csv WORKERS SECONDS NAME...    hf:TYPE, timm:MODEL, tv:[KIND.]MODEL, c:NAME compiled; or a file of names

A row is one name: type and layout (or class), then requests, bytes requested, and the peaks requested, allocated and reserved, after the training
and at the end (text models generate twelve tokens, nets of images run once more without gradients), and seconds. Type, layout, batch, optimizer
follow from the name's checksum. Each runs in a process of its own; models have two layers and at most eight experts, where their configuration allows it.
"""

import os

LIMIT = float(os.environ.get("LIMIT", 150))  # seconds for one
import csv, json, os, sys, time, zlib, warnings, traceback

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch, torch.nn.functional as F
import inspect

TASKS = [
    "CAUSAL_LM",
    "SEQ_TO_SEQ_CAUSAL_LM",
    "SPEECH_SEQ_2_SEQ",
    "MASKED_LM",
    "IMAGE_TEXT_TO_TEXT",
    "MULTIMODAL_LM",
    "OBJECT_DETECTION",
    "UNIVERSAL_SEGMENTATION",
    "INSTANCE_SEGMENTATION",
    "SEMANTIC_SEGMENTATION",
    "DEPTH_ESTIMATION",
    "VIDEO_CLASSIFICATION",
    "IMAGE_CLASSIFICATION",
    "CTC",
    "AUDIO_CLASSIFICATION",
    "ZERO_SHOT_IMAGE_CLASSIFICATION",
    "ZERO_SHOT_OBJECT_DETECTION",
    "MASK_GENERATION",
    "IMAGE_TO_IMAGE",
    "KEYPOINT_DETECTION",
    "POSE_ESTIMATION",
    "TIME_SERIES_PREDICTION",
    "TEXT_TO_WAVEFORM",
    "TEXT_TO_SPECTROGRAM",
    "TABLE_QUESTION_ANSWERING",
    "QUESTION_ANSWERING",
    "VISUAL_QUESTION_ANSWERING",
    "PRETRAINING",
    "RETRIEVAL",
    "",
]


def tables():
    from transformers.models.auto import modeling_auto as m

    out = {}
    for t in TASKS:
        d = getattr(m, "MODEL_FOR_%s_MAPPING_NAMES" % t if t else "MODEL_MAPPING_NAMES", {})
        for k, v in d.items():
            out.setdefault(k, (t, v if isinstance(v, str) else v[0]))
    return out


SMALL = dict(
    num_hidden_layers=2,
    n_layer=2,
    n_layers=2,
    num_layers=2,
    encoder_layers=2,
    decoder_layers=2,
    num_encoder_layers=2,
    num_decoder_layers=2,
    depth=2,
    num_experts=8,
    num_local_experts=8,
    n_routed_experts=8,
    moe_num_experts=8,
    num_mem_blocks=1,
    vision_layers=2,
)


def shrink(cls, depth=0, layers=2):
    base = cls()
    kw = {}
    for k, v in SMALL.items():
        if v == 2:
            v = layers
        if (
            isinstance(getattr(base, k, None), int)
            and k in inspect.signature(cls.__init__).parameters
            or (k in base.to_dict() and isinstance(base.to_dict()[k], int))
        ):
            if base.to_dict().get(k, getattr(base, k, 0)) > v:
                kw[k] = v
    for sub, scls in (getattr(cls, "sub_configs", None) or {}).items():
        cur = getattr(base, sub, None)
        if cur is None or depth > 2:
            continue
        try:
            kw[sub] = shrink(type(cur), depth + 1, layers).to_dict()
        except Exception:
            pass
    for attempt in (kw, {k: v for k, v in kw.items() if not k.startswith("num_e") and not k.startswith("n_r") and not k.startswith("num_local")}, {}):
        try:
            return cls(**attempt)
        except Exception:
            pass
    return base


def find(c, *names, default=None, seen=0):
    for n in names:
        v = getattr(c, n, None)
        if v is not None:
            return v
    if seen < 2:
        for s in getattr(type(c), "sub_configs", None) or {}:
            sub = getattr(c, s, None)
            if sub is not None and hasattr(sub, "to_dict"):
                v = find(sub, *names, seen=seen + 1)
                if v is not None:
                    return v
    return default


def hf_inputs(model, c, task, B, S, kind=""):
    sig = inspect.signature(model.forward).parameters
    d = {}
    rnd = lambda hi, *s: torch.randint(3, max(5, min(hi, 1000)), s, device="cuda")
    vocab = find(c, "vocab_size", default=1000)
    img = find(c, "image_size", default=224)
    if isinstance(img, (list, tuple)):
        h, w = (img[0], img[-1])
    elif isinstance(img, dict):
        h, w = img.get("height", 224), img.get("width", 224)
    else:
        h = w = img
    if task in ("OBJECT_DETECTION", "UNIVERSAL_SEGMENTATION", "INSTANCE_SEGMENTATION"):
        h = w = 384 if not isinstance(find(c, "image_size"), int) else h
    ch = find(c, "num_channels", "in_channels", "in_chans", default=3)
    text = "input_ids" in sig
    if task in ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM"):
        d["input_ids"] = rnd(vocab, B, S)
    else:
        main = getattr(model, "main_input_name", "input_ids")
        if text and (main == "input_ids" or task in ("ZERO_SHOT_IMAGE_CLASSIFICATION", "ZERO_SHOT_OBJECT_DETECTION")):
            n = min(
                S,
                128 if kind in ("blenderbot", "blenderbot-small") else 500 if find(c, "max_position_embeddings") == 514 else S,
                find(c, "max_position_embeddings", "n_positions", default=S) or S,
            )
            d["input_ids"] = rnd(vocab, B, n - 2 if n < S else n)
        if "pixel_values" in sig and (main == "pixel_values" or task.startswith("ZERO_SHOT")):
            d["pixel_values"] = torch.randn(B, ch, h, w, device="cuda")
            if task == "VIDEO_CLASSIFICATION":
                d["pixel_values"] = torch.randn(B, find(c, "num_frames", default=8), ch, h, w, device="cuda")
        if main == "pixel_values_videos" and main in sig:
            d[main] = torch.randn(
                B,
                find(c, "frames_per_clip", "num_frames", default=8),
                3,
                find(c, "crop_size", default=h),
                find(c, "crop_size", default=w),
                device="cuda",
            )
        if main == "input_features" and main in sig:
            mel = find(c, "num_mel_bins", "feature_size", "input_feat_per_channel", default=80)
            fr = 2 * find(c, "max_source_positions", default=250) if "whisper" in c.model_type else 400
            d[main] = torch.randn(B, mel, fr, device="cuda") if "whisper" in c.model_type else torch.randn(B, fr, mel, device="cuda")
        if main == "input_values" and main in sig:
            if find(c, "num_mel_bins") and not find(c, "conv_dim"):
                d[main] = torch.randn(B, find(c, "max_length", default=1024), find(c, "num_mel_bins"), device="cuda")
            else:
                d[main] = torch.randn(B, 16000, device="cuda")
    if "past_values" in sig:
        d = dict(past_values=torch.randn(B, find(c, "context_length", default=512), find(c, "num_input_channels", default=1), device="cuda"))
    for need in ("pixel_values",):
        p = sig.get(need)
        if p is not None and p.default is inspect.Parameter.empty and need not in d:
            d[need] = torch.randn(B, ch, h, w, device="cuda")
    if (
        kind in ("blip", "blip-2", "git", "kosmos-2", "groupvit", "vilt", "bridgetower", "aimv2")
        and "pixel_values" in sig
        and "pixel_values" not in d
    ):
        d["pixel_values"] = torch.randn(B, ch, h, w, device="cuda")
    if "bbox" in sig and "input_ids" in d:
        d["bbox"] = torch.zeros(
            *d["input_ids"].shape, 8 if kind == "bros" else 4, device="cuda", dtype=torch.float32 if kind == "bros" else torch.long
        )
    if kind in ("encodec", "dac", "mimi", "vibevoice_acoustic_tokenizer", "pe_audio_encoder", "xcodec", "higgs_audio_v2_tokenizer"):
        d = dict(input_values=torch.randn(B, 1, 16000, device="cuda"))
    if kind == "perceiver":
        d = dict(inputs=rnd(vocab, B, 2048), attention_mask=torch.ones(B, 2048, device="cuda"))
    if kind in ("xlnet", "dia", "git"):
        d.pop("labels", 0)
        d["input_ids"] = rnd(vocab, B, 96)
    if "labels" in sig and kind not in ("xlnet", "dia", "git", "perceiver"):
        if "LM" in task or task in ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "SEQ_TO_SEQ_CAUSAL_LM") and "input_ids" in d:
            d["labels"] = d.get("input_ids")
        elif task == "SPEECH_SEQ_2_SEQ":
            d["labels"] = rnd(vocab, B, 40)
        elif task == "CTC":
            d["labels"] = rnd(min(vocab, 30), B, 12)
        elif task in ("IMAGE_CLASSIFICATION", "VIDEO_CLASSIFICATION", "AUDIO_CLASSIFICATION"):
            d["labels"] = torch.randint(0, 2, (B,), device="cuda")
        elif task == "SEMANTIC_SEGMENTATION":
            d["labels"] = torch.randint(0, 2, (B, h, w), device="cuda")
        elif task == "OBJECT_DETECTION":
            d["labels"] = [
                dict(
                    class_labels=torch.randint(0, 2, (3,), device="cuda"),
                    boxes=torch.tensor([[0.5, 0.5, 0.2, 0.2], [0.3, 0.4, 0.2, 0.3], [0.6, 0.6, 0.3, 0.3]], device="cuda"),
                )
                for _ in range(B)
            ]
    if d.get("labels", 1) is None:
        d.pop("labels")
    if task == "SEQ_TO_SEQ_CAUSAL_LM" or (
        getattr(c, "is_encoder_decoder", False) and "decoder_input_ids" in sig and "labels" not in d and task != "SPEECH_SEQ_2_SEQ"
    ):
        if "labels" not in d and "decoder_input_ids" in sig:
            d["decoder_input_ids"] = rnd(vocab, B, 64)
    return d


def loss_of(out):
    if getattr(out, "loss", None) is not None:
        return out.loss
    total = 0
    seen = [out]
    while seen:
        o = seen.pop()
        if isinstance(o, torch.Tensor):
            if o.is_floating_point() and o.requires_grad:
                total = total + o.float().mean()
        elif isinstance(o, dict):
            seen += list(o.values())
        elif isinstance(o, (list, tuple)):
            seen += list(o)
    return total


COMPILE = False


def train(model, step, lr_opt, mode, steps=3):
    auto = {"bf16": None, "fp32": None, "ab": torch.bfloat16, "ah": torch.float16}[mode]
    if COMPILE:
        model.compile()
    scaler = torch.amp.GradScaler("cuda", init_scale=16.0, enabled=mode == "ah")
    for i in range(steps):
        with torch.autocast("cuda", auto, enabled=auto is not None):
            loss = step()
        if not isinstance(loss, torch.Tensor):
            break
        scaler.scale(loss.mean() if loss.dim() else loss).backward()
        scaler.unscale_(lr_opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(lr_opt)
        scaler.update()
        lr_opt.zero_grad(set_to_none=True)


def hf(kind):
    for n, layers in enumerate((2, 5, 1000)):
        try:
            return hf_(kind, layers)
        except Exception as e:
            if n == 2 or str(e).startswith("large") or "CUDA" in str(e):
                raise


def hf_(kind, layers):
    import transformers
    from transformers import CONFIG_MAPPING

    task, cname = tables()[kind]
    z = zlib.crc32(kind.encode())
    mode = ["bf16", "ab", "ah", "fp32"][z % 4]
    cls = getattr(transformers, cname)
    c = shrink(CONFIG_MAPPING[kind], 0, layers)
    B, S = 2 + (z >> 3) % 3, [128, 256, 512, 200][(z >> 5) % 4]
    torch.manual_seed(0)
    for part in [c] + [getattr(c, s) for s in (getattr(type(c), "sub_configs", None) or {}) if getattr(c, s, None) is not None]:
        for k, v in (("decoder_start_token_id", 0), ("pad_token_id", 0), ("bos_token_id", 1), ("eos_token_id", 2)):
            if getattr(part, k, None) is None:
                try:
                    setattr(part, k, v)
                except Exception:
                    pass
        if hasattr(part, "backbone_config") and part.backbone_config is None and hasattr(part, "use_timm_backbone"):
            from transformers import ResNetConfig

            part.use_timm_backbone = False
            part.use_pretrained_backbone = False
            part.backbone = None
            part.backbone_config = ResNetConfig(
                out_features=["stage2", "stage3", "stage4"] if kind not in ("detr", "conditional_detr", "table-transformer") else ["stage4"]
            )
    with torch.device("meta"):
        try:
            big = sum(p.numel() for p in cls(c).parameters())
        except Exception:
            big = 0
    if big > 4e9:
        raise ValueError("large: %d" % big)
    if big > 1e9 and mode != "bf16":
        mode = "bf16"
    with torch.device("cuda"):
        model = cls._from_config(c, dtype=torch.bfloat16 if mode == "bf16" else torch.float32) if hasattr(cls, "_from_config") else cls(c)
    model = model.cuda().train()
    if (z >> 8) % 3 == 0 and getattr(model, "supports_gradient_checkpointing", False):
        try:
            model.gradient_checkpointing_enable()
        except Exception:
            pass
    d = hf_inputs(model, c, task, B, S, kind)
    if mode == "bf16":
        d = {k: v.bfloat16() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in d.items()}
    opt = (
        [torch.optim.AdamW, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adafactor][(z >> 11) % 4](model.parameters(), lr=1e-4)
        if big < 1e9
        else torch.optim.SGD(model.parameters(), lr=1e-4)
    )
    train(model, lambda: loss_of(model(**d)), opt, mode)
    first = stats()
    note = ""
    if task in ("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "SPEECH_SEQ_2_SEQ", "MULTIMODAL_LM"):
        try:
            del opt
            model.eval()
            model.gradient_checkpointing_disable() if getattr(model, "supports_gradient_checkpointing", False) else None
            x = {k: v for k, v in d.items() if k not in ("labels", "decoder_input_ids")}
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=mode in ("ab", "ah")):
                model.generate(**x, max_new_tokens=12, min_new_tokens=12, do_sample=False)
        except Exception as e:
            note = "generate: " + repr(e)[:80]
    return [mode, cname] + first + stats(), note


def tv(name):
    import torchvision

    kind, name = name.split(".") if "." in name else ("", name)
    mod = getattr(torchvision.models, kind) if kind else torchvision.models
    z = zlib.crc32((os.environ.get("SALT", "") + name).encode())
    mode = ["bf16", "ab", "ah", "fp32", "ab", "fp32"][z % 6]
    if mode == "bf16" and kind:
        mode = "ab"
    torch.manual_seed(0)
    kw = dict(weights=None)
    if kind in ("detection", "segmentation"):
        kw.update(weights_backbone=None)
    if name in ("googlenet", "inception_v3"):
        kw.update(init_weights=False)
    with torch.device("cuda"):
        m = getattr(mod, name)(**kw)
    m = m.cuda().train()
    if mode == "bf16":
        m = m.bfloat16()
    lay = torch.channels_last if (z >> 4) & 1 and not kind else torch.contiguous_format
    m = m.to(memory_format=lay)
    dt = torch.bfloat16 if mode == "bf16" else torch.float32
    B = 8 + 8 * ((z >> 6) % 3)
    opt = torch.optim.AdamW(m.parameters(), lr=1e-4) if (z >> 9) & 1 else torch.optim.SGD(m.parameters(), 0.01, momentum=0.9)
    size = 299 if name == "inception_v3" else 224

    def step():
        if kind == "detection":
            xs = [torch.rand(3, 400, 300 + 50 * i, device="cuda") for i in range(2)]
            t = [
                dict(
                    boxes=torch.tensor([[10.0, 10, 100, 100], [50, 60, 200, 220]], device="cuda"),
                    labels=torch.tensor([1, 2], device="cuda"),
                    masks=torch.zeros(2, 400, 300 + 50 * i, device="cuda", dtype=torch.uint8),
                    keypoints=torch.ones(2, 17, 3, device="cuda"),
                )
                for i in range(2)
            ]
            return sum(m(xs, t).values())
        if kind == "segmentation":
            return loss_of(m(torch.randn(4, 3, 320, 320, device="cuda")))
        if kind == "video":
            return loss_of(
                m(
                    torch.randn(
                        2, 3, 16, 224 if "mvit" in name or "swin" in name else 112, 224 if "mvit" in name or "swin" in name else 112, device="cuda"
                    )
                )
            )
        if kind == "optical_flow":
            return loss_of(m(torch.randn(2, 3, 128, 256, device="cuda"), torch.randn(2, 3, 128, 256, device="cuda")))
        out = m(torch.randn(B, 3, size, size, device="cuda", dtype=dt).to(memory_format=lay))
        out = getattr(out, "logits", out)
        return F.cross_entropy(out.float(), torch.randint(0, 100, (B,), device="cuda"))

    train(m, step, opt, mode)
    a = stats()
    m.eval()
    if not kind:
        with torch.no_grad():
            m(torch.randn(B, 3, size, size, device="cuda", dtype=dt))
    return [mode, "nhwc" if lay == torch.channels_last else "nchw"] + a + stats(), ""


def timm_(name):
    import timm

    z = zlib.crc32((os.environ.get("SALT", "") + name).encode())
    mode = ["bf16", "ab", "ah", "fp32", "ab", "ah"][z % 6]
    lay = torch.channels_last if (z >> 4) & 1 else torch.contiguous_format
    torch.manual_seed(0)
    with torch.device("cuda"):
        m = timm.create_model(name, num_classes=100)
    m = m.to("cuda", memory_format=lay).train()
    if mode == "bf16":
        m = m.bfloat16()
    size = m.default_cfg["input_size"]
    B = 8 + 8 * ((z >> 6) % 3)
    opt = torch.optim.AdamW(m.parameters(), lr=1e-4) if (z >> 9) & 1 else torch.optim.SGD(m.parameters(), 0.01, momentum=0.9)

    def step():
        x = torch.randn(B, *size, device="cuda", dtype=torch.bfloat16 if mode == "bf16" else torch.float32).to(memory_format=lay)
        out = m(x)
        if isinstance(out, (tuple, list)):
            out = out[0]
        return F.cross_entropy(out.float(), torch.randint(0, 100, (B,), device="cuda"))

    train(m, step, opt, mode)
    a = stats()
    m.eval()
    with torch.no_grad():
        m(torch.randn(B, *size, device="cuda", dtype=torch.bfloat16 if mode == "bf16" else torch.float32))
    return [mode, "nhwc" if (z >> 4) & 1 else "nchw"] + a + stats(), ""


def stats():
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    return [
        s["allocation.all.allocated"],
        s["requested_bytes.all.allocated"],
        s["requested_bytes.all.peak"],
        s["allocated_bytes.all.peak"],
        s["reserved_bytes.all.peak"],
    ]


def one(name, path):
    t = time.time()
    try:
        global COMPILE
        COMPILE = name.startswith("c:")
        base = name[2:] if COMPILE else name
        row, note = hf(base[3:]) if base.startswith("hf:") else tv(base[3:]) if base.startswith("tv:") else timm_(base[5:])
        res = [name, note] + row
    except BaseException as e:
        tb = traceback.extract_tb(e.__traceback__)
        res = [
            name,
            "FAILED %s %s @%s" % (type(e).__name__, str(e).replace("\n", " ")[:150], "%s:%d" % (os.path.basename(tb[-1].filename), tb[-1].lineno)),
        ]
    with open(path, "w") as f:
        json.dump(res + [round(time.time() - t, 1)], f)


def main():
    out, workers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    names = sys.argv[4:]
    if len(names) == 1 and os.path.exists(names[0]):
        names = open(names[0]).read().split()
    torch.set_num_threads(1)
    import transformers, timm, transformers.modeling_utils, transformers.generation.utils

    end = time.time() + seconds
    parts = out + ".d"
    os.makedirs(parts, exist_ok=True)
    running = {}
    todo = list(names)

    def part(n):
        return os.path.join(parts, n.replace(":", "_").replace("/", "_"))

    while todo or running:
        while todo and len(running) < workers and time.time() < end - 20:
            n = todo.pop(0)
            p = os.fork()
            if p == 0:
                fd = os.open(part(n) + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(fd, 1)
                os.dup2(fd, 2)
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = part(n) + ".cache"
                one(n, part(n))
                sys.stdout.flush()
                os._exit(0)
            running[p] = (n, time.time())
        if time.time() > end - 20:
            todo = []
        p, st = os.waitpid(-1, os.WNOHANG)
        if p:
            n, t0 = running.pop(p)
            if st:
                json.dump([n, "DIED %d" % st], open(part(n), "w"))
        else:
            time.sleep(0.05)
            for q, (n, t0) in list(running.items()):
                if time.time() - t0 > LIMIT or time.time() > end:
                    os.kill(q, 9)
    with open(out, "w", newline="") as f:
        w = csv.writer(f)
        for n in names:
            try:
                w.writerow(json.load(open(part(n))))
            except Exception:
                w.writerow([n, "NOT RUN"])


if __name__ == "__main__":
    main()
