# SPDX-License-Identifier: Apache-2.0
"""Programs that use the models, caches, generation and trainers of Hugging Face transformers, in ways that no other collection does: same frame, same rows.

    library.py OUT WORKERS SECONDS [NAME...]        rows to OUT/rows.csv, all requests and segments to OUT/NAME.npz

Widths, heads, vocabularies and inputs are the published ones; the largest models have fewer layers. Weights are random, nothing is downloaded.
Written for transformers 5.17; detection needs scipy.
"""

import copy, tempfile

import numpy as np

import everyday
from atscale import *
from everyday import J

J.clear()


def seeded(name, out, one=everyday.one):
    """transformers draws masks of time from numpy."""
    np.random.seed(0)
    random.seed(0)
    one(name, out)


everyday.one = seeded
BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
LARGE = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
FP = torch.float32
GIVEN = dict(do_sample=False, use_cache=True)


def adamw(lr=1e-5, **k):
    return lambda p: torch.optim.AdamW(p, lr, **k)


def hf2(name, cls, dt=FP, **k):
    return hf(name, dt, cls, **k)


def of(m, loss, *a, **k):
    """Trains with the loss that the model gives for a batch."""
    fit(m, lambda m: m(**loss()).loss, *a, **k)


def say(m, n=32, **k):
    """Generates exactly n tokens."""
    m.eval()
    return m.generate(max_new_tokens=n, min_new_tokens=n, **{**GIVEN, **k})


class Low(nn.Module):
    """A frozen linear layer with a trained product of low rank beside it."""

    def __init__(s, f, r=16):
        super().__init__()
        s.f, s.a, s.b = f.requires_grad_(False), nn.Linear(f.in_features, r, bias=False), nn.Linear(r, f.out_features, bias=False)
        nn.init.zeros_(s.b.weight)
        s.to(f.weight)
        s.drop = nn.Dropout(0.05)

    def forward(s, x):
        return s.f(x) + 2.0 * s.b(s.a(s.drop(x)))


def low_rank(m, names):
    m.requires_grad_(False)
    for n, f in list(m.named_modules()):
        if isinstance(f, nn.Linear) and n.split(".")[-1] in names:
            setattr(m.get_submodule(n.rpartition(".")[0]), n.split(".")[-1], Low(f))
    return m


def boxes(n, classes=80):
    return [dict(class_labels=T(k, v=classes), boxes=0.2 + 0.2 * torch.rand(k, 4, device=dev)) for k in [3 + 5 * i % 11 for i in range(n)]]


# ---- sound
@job
def whisper_small_fp16():
    """Whisper small in half precision with a scaler, SpecAugment, and labels of uneven lengths."""
    m = hf2("Whisper", "WhisperForConditionalGeneration", d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
            encoder_ffn_dim=3072, decoder_ffn_dim=3072, apply_spec_augment=True)
    of(m, lambda: dict(input_features=N(8, 80, 3000), labels=T(8, rng.choice([60, 120, 180]), v=50000)), 4, adamw(), amp=HF16, scaler=True)


@job
def whisper_long_form():
    """Whisper medium, eight layers each, transcribes 90 seconds in windows, with a static cache that nobody compiles, then with beams."""
    m = hf2("Whisper", "WhisperForConditionalGeneration", HF16, d_model=1024, encoder_layers=8, decoder_layers=8, encoder_attention_heads=16, decoder_attention_heads=16,
            encoder_ffn_dim=4096, decoder_ffn_dim=4096).eval()
    for _ in range(3):
        say(m, 24, input_features=N(4, 80, 3000, dt=HF16), cache_implementation="static", disable_compile=True)
    say(m, 24, input_features=N(2, 80, 3000, dt=HF16), num_beams=5)


@job
def wav2vec2_pretraining():
    """Contrastive pretraining: masks, distractors, a quantizer by Gumbel's softmax."""
    from transformers.models.wav2vec2.modeling_wav2vec2 import _compute_mask_indices, _sample_negative_indices

    m = hf2("Wav2Vec2", "Wav2Vec2ForPreTraining", **BASE)

    def batch():
        n = 4
        length = rng.choice([120000, 160000, 200000])
        frames = int(m._get_feat_extract_output_lengths(length))
        mask = _compute_mask_indices((n, frames), 0.65, 10)
        other = _sample_negative_indices((n, frames), 100, mask)
        return dict(input_values=N(n, length), mask_time_indices=torch.tensor(mask, device=dev), sampled_negative_indices=torch.tensor(other, device=dev))

    of(m, batch, 4, amp=HF16, scaler=True)


@job
def hubert_large_fp16():
    """CTC with a frozen front end, layers that drop, masks, lengths padded."""
    m = hf2("Hubert", "HubertForCTC", **{**LARGE, "num_hidden_layers": 12}, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True, layerdrop=0.1)
    m.freeze_feature_encoder()

    def batch():
        x = N(6, rng.choice([130000, 190000, 240000]))
        a = torch.ones_like(x, dtype=torch.long)
        a[::2, x.shape[1] * 3 // 4 :] = 0
        return dict(input_values=x, attention_mask=a, labels=T(6, 70, v=31) + 1)

    of(checkpointed(m), batch, 4, amp=HF16, scaler=True)


@job
def wavlm_speakers_bf16():
    """WavLM base with X-vectors of dilated layers, an angular loss."""
    m = hf2("WavLM", "WavLMForXVector", **BASE, num_labels=1251, apply_spec_augment=False)
    of(m, lambda: dict(input_values=N(12, 64000), labels=T(12, v=1251)), 3, amp=BF)


@job
def data2vec_audio_frames():
    """Every frame of a sound is classified; the front end learns as well."""
    m = hf2("Data2VecAudio", "Data2VecAudioForAudioFrameClassification", BF, **BASE, num_labels=4, mask_time_prob=0.0)
    of(m, lambda: dict(input_values=N(6, 96000, dt=BF), labels=F.one_hot(T(6, 299, v=4), 4)), 3, adamw(fused=True))


@job
def w2v_bert_ctc():
    m = hf2("Wav2Vec2Bert", "Wav2Vec2BertForCTC", **{**LARGE, "num_hidden_layers": 12}, vocab_size=60, mask_time_prob=0.05, add_adapter=True)
    of(m, lambda: dict(input_features=N(4, rng.choice([400, 600]), 160), labels=T(4, 30, v=59) + 1), 3, amp=BF)


@job
def sew_d_and_unispeech():
    """Two encoders with other front ends; one squeezes time and has disentangled attention."""
    m = hf2("SEWD", "SEWDForCTC", hidden_size=512, num_hidden_layers=12, num_attention_heads=8, intermediate_size=2048, mask_time_prob=0.0)
    of(m, lambda: dict(input_values=N(4, 160000), labels=T(4, 40, v=31) + 1), 2, amp=HF16, scaler=True)
    m = hf2("UniSpeechSat", "UniSpeechSatForSequenceClassification", **BASE, num_labels=12, mask_time_prob=0.0)
    of(m, lambda: dict(input_values=N(8, 80000), labels=T(8, v=12)), 2, amp=HF16, scaler=True)


@job
def speecht5_speaks():
    """Text to spectrograms, trained; then spoken and turned into sound by HiFi-GAN."""
    import transformers as t

    m = hf2("SpeechT5", "SpeechT5ForTextToSpeech")

    def batch():
        return dict(input_ids=T(8, 120, v=80), attention_mask=torch.ones(8, 120, device=dev, dtype=torch.long), labels=N(8, 400, 80), speaker_embeddings=N(8, 512))

    of(m, batch, 3, amp=BF)
    v = on(t.SpeechT5HifiGan, t.SpeechT5HifiGanConfig()).eval()
    with torch.no_grad():
        for n in (100, 260, 400):
            v(N(4, n, 80))


@job
def hifigan_fp16_backward():
    """The vocoder alone: transposed and dilated layers of one dimension in half precision."""
    import transformers as t

    m = on(t.SpeechT5HifiGan, t.SpeechT5HifiGanConfig())
    fit(m, lambda m: (m(N(8, 64, 80)) - 0.1 * N(8, 64 * 256)).abs().mean(), 3, amp=HF16, scaler=True)


@job
def bark_fine_and_codec():
    """Bark's fine model predicts books one by one; a codec makes sound of them."""
    import transformers as t

    m = on(t.BarkFineModel, t.BarkFineConfig(hidden_size=1024, num_layers=12, num_heads=16, input_vocab_size=1056, output_vocab_size=1056), dt=HF16).eval()
    c = on(t.EncodecModel, t.EncodecConfig()).eval()
    with torch.inference_mode():
        x = T(2, 1024, 8, v=1024)
        for k in range(2, 8):
            logits = m(k, input_ids=x).logits[..., :1024]
            x[..., k] = (logits[:, :1024] / 0.5).softmax(-1).argmax(-1)
        c.decode(x.transpose(1, 2)[None], [None])


@job
def musicgen_small():
    """Text to music with guidance, sampled, decoded to sound."""
    import transformers as t

    m = on(t.MusicgenForConditionalGeneration, t.MusicgenConfig(text_encoder=t.T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12),
           audio_encoder=t.EncodecConfig(sampling_rate=32000, num_filters=64, upsampling_ratios=[8, 5, 4, 4], target_bandwidths=[2.2], codebook_size=2048, normalize=False),
           decoder=t.MusicgenDecoderConfig(num_hidden_layers=12, num_attention_heads=16, hidden_size=1024, ffn_dim=4096)))
    m.to(HF16)
    say(m, 60, input_ids=T(2, 16), attention_mask=torch.ones(2, 16, device=dev, dtype=torch.long), do_sample=True, guidance_scale=3.0)


@job
def dac_44khz_trains():
    """Descript's codec: snakes, weight norms, residual books, in single precision and bf16."""
    m = hf2("Dac", "DacModel")
    fit(m, lambda m: m(N(4, 1, 44032)).loss.mean(), 3)
    fit(m, lambda m: m(N(4, 1, 44032)).loss.mean(), 2, amp=BF)


@job
def mimi_streams():
    """Kyutai's codec: causal layers, a transformer of windows, books; encoded and decoded, then trained."""
    m = hf2("Mimi", "MimiModel").eval()
    with torch.no_grad():
        for n in (24000, 96000, 240000):
            m.decode(m.encode(N(2, 1, n)).audio_codes)
    fit(m, lambda m: (lambda x: (m(x).audio_values - x).square().mean())(N(2, 1, 48000)), 2)


@job
def clap_of_sounds():
    """Sound and text contrasted: Swin over spectrograms, RoBERTa."""
    m = hf2("Clap", "ClapModel")
    of(m, lambda: dict(input_ids=T(16, 40, v=50000), attention_mask=torch.ones(16, 40, device=dev, dtype=torch.long), input_features=N(16, 1, 1001, 64), return_loss=True,
                       is_longer=torch.zeros(16, 1, device=dev, dtype=torch.bool)), 2, amp=BF)


@job
def qwen2_audio_answers():
    """A voice encoder before a language model of four layers, trained with low rank."""
    import transformers as t

    c = t.Qwen2AudioConfig(audio_config=dict(num_mel_bins=128, encoder_layers=8), text_config=dict(model_type="qwen2", hidden_size=4096, num_hidden_layers=4, num_attention_heads=32,
                           num_key_value_heads=32, intermediate_size=11008, vocab_size=156032), audio_token_index=151646)
    m = low_rank(on(t.Qwen2AudioForConditionalGeneration, c, dt=BF), ("q_proj", "v_proj"))

    def batch():
        x = torch.cat([torch.full((2, 750), 151646, device=dev), T(2, 200, v=151000)], 1)
        return dict(input_ids=x, attention_mask=torch.ones_like(x), input_features=N(2, 128, 3000, dt=BF), labels=x,
                    feature_attention_mask=torch.ones(2, 3000, device=dev, dtype=torch.long))

    of(m, batch, 2, adamw(1e-4))


# ---- text to text
@job
def longt5_reads():
    """LongT5 with transient global attention, half-precision weights of bf16, Adafactor."""
    from transformers import Adafactor

    m = hf2("LongT5", "LongT5ForConditionalGeneration", BF, d_model=768, d_ff=2048, num_layers=12, num_heads=12, feed_forward_proj="gated-gelu", encoder_attention_type="transient-global",
            decoder_start_token_id=0)
    of(m, lambda: dict(input_ids=T(2, 4096), labels=T(2, 256)), 3, lambda p: Adafactor(p, lr=1e-3, scale_parameter=False, relative_step=False))


@job
def pegasus_x_and_beams():
    """PEGASUS-X: blocks that stagger, global tokens; then eight beams with a penalty for length."""
    m = hf2("PegasusX", "PegasusXForConditionalGeneration", d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12, decoder_attention_heads=12,
            encoder_ffn_dim=3072, decoder_ffn_dim=3072)
    of(m, lambda: dict(input_ids=T(2, 4096), labels=T(2, 200)), 2, amp=BF)
    say(m, 40, input_ids=T(2, 2048), num_beams=8, length_penalty=0.8, no_repeat_ngram_size=3)


@job
def mbart_translates_fp16():
    """MBart of twelve layers, half precision with a scaler, labels smoothed; then translation with a forced first token."""
    m = hf2("MBart", "MBartForConditionalGeneration", d_model=1024, vocab_size=250054, encoder_layers=6, decoder_layers=6)
    fit(m, lambda m: F.cross_entropy(m(input_ids=(x := T(8, rng.choice([48, 96, 80]), v=250000)), labels=x).logits.flatten(0, 1), x.flatten(), label_smoothing=0.1), 3,
        adamw(), amp=HF16, scaler=True)
    say(m, 30, input_ids=T(8, 60, v=250000), forced_bos_token_id=250004, num_beams=4)


@job
def prophetnet_and_fsmt():
    """N-grams that are predicted ahead; a translator with vocabularies of two languages."""
    m = hf2("ProphetNet", "ProphetNetForConditionalGeneration", num_encoder_layers=6, num_decoder_layers=6)
    of(m, lambda: dict(input_ids=T(4, 200, v=30000), labels=T(4, 100, v=30000)), 2, amp=BF)
    m = hf2("FSMT", "FSMTForConditionalGeneration", langs=["en", "de"], src_vocab_size=42024, tgt_vocab_size=42024, encoder_layers=4, decoder_layers=4)
    of(m, lambda: dict(input_ids=T(8, 60, v=42000), labels=T(8, 60, v=42000)), 2, amp=BF)


@job
def nllb_moe_switches():
    """Experts of two choices in a translator, with capacity and losses of routers."""
    m = hf2("NllbMoe", "NllbMoeForConditionalGeneration", BF, d_model=1024, vocab_size=128112, encoder_layers=4, decoder_layers=4, encoder_ffn_dim=4096, decoder_ffn_dim=4096,
            num_experts=8, encoder_sparse_step=2, decoder_sparse_step=2, expert_capacity=64)
    of(m, lambda: dict(input_ids=T(4, 128), labels=T(4, 100), output_router_logits=False), 2)


# ---- encoders
@job
def reading_comprehension():
    """XLNet with a memory, DistilBERT, ELECTRA: spans of answers, three optimizers."""
    for m, o in ((hf2("XLNet", "XLNetForQuestionAnsweringSimple", d_model=768, n_layer=6, n_head=12, d_inner=3072), adamw()),
                 (hf2("DistilBert", "DistilBertForQuestionAnswering"), lambda p: torch.optim.Adamax(p, 1e-4)), (hf2("Electra", "ElectraForQuestionAnswering", **BASE), SGD)):
        of(m, lambda: dict(input_ids=T(12, 384, v=30000), start_positions=T(12, v=384), end_positions=T(12, v=384)), 2, o, amp=HF16, scaler=True)


@job
def sparse_and_linear_attention():
    """Nyströmformer, YOSO's relative, FNet by transforms, Perceiver over bytes, Funnel that pools."""
    text = lambda n, l, v: (lambda: dict(input_ids=T(n, l, v=v), labels=T(n, l, v=v)))
    of(hf2("Nystromformer", "NystromformerForMaskedLM", **{**BASE, "num_hidden_layers": 6}, segment_means_seq_len=64, num_landmarks=64, max_position_embeddings=2048), text(8, 2048, 30000), 2, amp=BF)
    of(hf2("FNet", "FNetForMaskedLM", **{k: v for k, v in BASE.items() if "heads" not in k}, use_tpu_fourier_optimizations=False), text(16, 512, 32000), 2)
    of(hf2("Perceiver", "PerceiverForMaskedLM", num_self_attends_per_block=8), text(4, 2048, 262), 2, amp=BF)
    of(hf2("Funnel", "FunnelForMaskedLM"), text(8, 256, 30000), 2, amp=BF)


@job
def mobilebert_squeezebert_canine():
    """Bottlenecks, grouped layers of one point, hashed characters with strided layers."""
    of(hf2("MobileBert", "MobileBertForMaskedLM", num_hidden_layers=12), lambda: dict(input_ids=(x := T(16, 128, v=30000)), labels=x), 2)
    of(hf2("SqueezeBert", "SqueezeBertForMaskedLM"), lambda: dict(input_ids=(x := T(16, 256, v=30000)), labels=x), 2, amp=HF16, scaler=True)
    of(hf2("Canine", "CanineForSequenceClassification", num_labels=3), lambda: dict(input_ids=T(4, 1024, v=100000), labels=T(4, v=3)), 2, amp=BF)


@job
def deberta_v3_and_convbert():
    """DeBERTa with a layer of convolution, in half precision; ConvBERT's dynamic filters."""
    m = hf2("DebertaV2", "DebertaV2ForTokenClassification", vocab_size=128100, **BASE, relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True,
            pos_att_type=["p2c", "c2p"], position_biased_input=False, conv_kernel_size=3, conv_act="gelu", max_position_embeddings=512, num_labels=9)
    of(m, lambda: dict(input_ids=(x := T(8, rng.choice([200, 333, 512]), v=128000)), attention_mask=torch.ones_like(x), labels=T(*x.shape, v=9)), 3, amp=HF16, scaler=True)
    of(hf2("ConvBert", "ConvBertForMaskedLM", **BASE), lambda: dict(input_ids=(x := T(8, 256, v=30000)), labels=x), 2, amp=HF16, scaler=True)


@job
def layoutlm_lilt_forms():
    """Forms: words with boxes, two streams; only the last layers learn at first."""
    m = hf2("LayoutLM", "LayoutLMForTokenClassification", **BASE, num_labels=7)
    m.layoutlm.encoder.layer[:6].requires_grad_(False)
    box = lambda n: torch.cat([T(n, 512, 2, v=500), 500 + T(n, 512, 2, v=500)], 2)
    of(m, lambda: dict(input_ids=T(8, 512, v=30000), bbox=box(8), labels=T(8, 512, v=7)), 2)
    m.requires_grad_(True)
    of(m, lambda: dict(input_ids=T(8, 512, v=30000), bbox=box(8), labels=T(8, 512, v=7)), 2, amp=BF)
    of(hf2("Lilt", "LiltForTokenClassification", **BASE, max_position_embeddings=514, num_labels=7), lambda: dict(input_ids=T(8, 512, v=30000), bbox=box(8), labels=T(8, 512, v=7)), 2, amp=BF)


# ---- language models
@job
def qwen3_06b_accumulates():
    """All weights in bf16, a batch of 16 in four parts, checkpoints, 8 of 28 layers."""
    m = hf("Qwen3", hidden_size=1024, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=8, head_dim=128, intermediate_size=3072, vocab_size=151936, tie_word_embeddings=True)
    of(checkpointed(m), lambda: dict(input_ids=(x := T(4, rng.choice([512, 1024, 1536]), v=151000)), labels=x), 3, adamw(fused=True), accum=4)


@job
def mistral_7b_low_rank():
    """Mistral 7B, eight layers, low rank by hand in every projection; padding on the left; logits only where labels are."""
    m = low_rank(checkpointed(hf("Mistral", num_hidden_layers=8, sliding_window=1024)), ("q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "gate_proj", "down_proj"))
    m.enable_input_require_grads()

    def batch():
        x = T(2, rng.choice([900, 1500, 2000]))
        a = torch.ones_like(x)
        a[0, :333] = 0
        return dict(input_ids=x, attention_mask=a, labels=x.masked_fill(a == 0, -100))

    of(m, batch, 4, adamw(2e-4))


@job
def phi3_and_stablelm_serve():
    """Two models answer by turns: a batch padded to the left, samples with top-k, top-p, min-p, several answers each."""
    phi = hf("Phi3", num_hidden_layers=8, hidden_size=3072, pad_token_id=0)
    stable = hf("StableLm", HF16, num_hidden_layers=8)
    x = T(8, 400)
    a = torch.ones_like(x)
    a[:4, :150] = 0
    say(phi, 48, input_ids=x, attention_mask=a, do_sample=True, top_k=50, top_p=0.9, temperature=0.7)
    say(stable, 48, input_ids=T(2, 700), do_sample=True, min_p=0.05, num_return_sequences=4, repetition_penalty=1.1)
    say(phi, 24, input_ids=x[:2], output_scores=True, return_dict_in_generate=True, output_attentions=False, num_beams=3, num_return_sequences=3)


@job
def caches_of_all_kinds():
    """A Llama answers with dynamic, static, sliding and offloaded caches, a prompt in chunks, and a cache that is kept and cropped."""
    from transformers import DynamicCache, StaticCache

    m = hf("Llama", hidden_size=3072, num_hidden_layers=10, num_attention_heads=24, num_key_value_heads=8, intermediate_size=8192, vocab_size=128256, head_dim=128).eval()
    s = hf("Gemma2", hidden_size=2304, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, head_dim=256, intermediate_size=9216, sliding_window=256)
    x = T(2, 600, v=128000)
    say(m, 24, input_ids=x)
    say(m, 24, input_ids=x, cache_implementation="static", disable_compile=True)
    say(m, 12, input_ids=x, cache_implementation="offloaded")
    say(m, 24, input_ids=x, prefill_chunk_size=200)
    say(s, 40, input_ids=x)
    say(s, 24, input_ids=x, cache_implementation="hybrid", disable_compile=True)
    kept = DynamicCache()
    for n in (300, 40, 40):
        with torch.inference_mode():
            m(T(2, n, v=128000), past_key_values=kept, use_cache=True)
        kept.crop(280)


@job
def drafts_and_lookups():
    """Drafts of a small model, of the prompt itself, and of a model's own early layers."""
    big = hf("Llama", hidden_size=2048, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4, intermediate_size=5632)
    small = hf("Llama", hidden_size=768, num_hidden_layers=2, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048).eval()
    x = T(1, 500)
    say(big, 40, input_ids=x, assistant_model=small)
    say(big, 40, input_ids=torch.cat([x, x], 1), prompt_lookup_num_tokens=5)
    say(big, 30, input_ids=x, penalty_alpha=None, do_sample=True, num_beams=2)


@job
def mixtral_grouped():
    """Mixtral's width, two layers, eight experts by grouped products, losses that balance; then it answers."""
    m = hf("Mixtral", hidden_size=2048, intermediate_size=7168, num_hidden_layers=3, num_attention_heads=16, num_key_value_heads=8, output_router_logits=True, sliding_window=None)
    of(checkpointed(m), lambda: dict(input_ids=(x := T(2, 1024)), labels=x), 3, SGD)
    m.config.output_router_logits = False
    say(m, 16, input_ids=T(4, 200))


@job
def gpt_oss_sinks():
    """GPT-OSS: attention sinks, windows in turns, experts with biases."""
    m = hf("GptOss", hidden_size=2880, num_hidden_layers=2, num_attention_heads=64, num_key_value_heads=8, head_dim=64, intermediate_size=2880, num_local_experts=8, num_experts_per_tok=4,
           vocab_size=201088)
    of(m, lambda: dict(input_ids=(x := T(1, 1024, v=200000)), labels=x), 2, SGD)
    say(m, 16, input_ids=T(2, 300, v=200000))


@job
def deepseek_v2_lite():
    """Latent attention, shared experts, groups of experts; every layer but the first has experts."""
    m = hf("DeepseekV2", hidden_size=2048, num_hidden_layers=3, num_attention_heads=16, num_key_value_heads=16, intermediate_size=10944, moe_intermediate_size=1408, n_routed_experts=16,
           n_shared_experts=2, num_experts_per_tok=6, kv_lora_rank=512, q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, first_k_dense_replace=1, vocab_size=102400)
    of(m, lambda: dict(input_ids=(x := T(2, rng.choice([700, 1024]), v=100000)), labels=x), 3, adamw(fused=True))
    say(m, 12, input_ids=T(2, 300, v=100000))


@job
def olmo2_granite_cohere_glm():
    """Four families, one after the other: norms after layers, multipliers, parallel blocks, half rotary."""
    for name, k in (("Olmo2", dict(hidden_size=2048, num_hidden_layers=4, num_attention_heads=16, intermediate_size=8192, vocab_size=100352)),
                    ("Granite", dict(hidden_size=2048, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8, intermediate_size=8192, vocab_size=49152)),
                    ("Cohere2", dict(hidden_size=2048, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8, intermediate_size=8192, vocab_size=100000)),
                    ("Glm", dict(hidden_size=2048, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=2, head_dim=128, intermediate_size=6144, vocab_size=100000, pad_token_id=0))):
        m = hf(name, **k)
        of(m, lambda: dict(input_ids=(x := T(2, 1024, v=49000)), labels=x), 2, SGD)
        say(m, 8, input_ids=T(2, 128, v=49000))


@job
def gpt_neox_bloom_mpt_fp32():
    """Older families in single precision and half: ALiBi, rotary in parts, local attention."""
    for name, k in (("Bloom", dict(hidden_size=1024, n_layer=6, n_head=16, vocab_size=250880)), ("Mpt", dict(d_model=1024, n_layers=6, n_heads=16)),
                    ("GPTNeo", dict(hidden_size=1024, num_layers=6, num_heads=16, attention_types=[[["global", "local"], 3]])),
                    ("CodeGen", dict(n_embd=1024, n_layer=6, n_head=16)), ("XGLM", dict(d_model=1024, num_layers=6, attention_heads=16, ffn_dim=4096, vocab_size=100000))):
        m = hf(name, FP, **k)
        of(m, lambda: dict(input_ids=(x := T(2, 512)), labels=x), 2, adamw(foreach=False), amp=HF16 if name in ("Bloom", "GPTNeo") else None, scaler=name in ("Bloom", "GPTNeo"))
        say(m, 8, input_ids=T(2, 64))


@job
def mamba_slow_path():
    """Mamba 130M without its kernels: a scan token by token, four layers; then it writes."""
    m = hf("Mamba", FP, hidden_size=768, num_hidden_layers=4, vocab_size=50280)
    of(m, lambda: dict(input_ids=(x := T(4, 256)), labels=x), 2, amp=BF)
    say(m, 24, input_ids=T(4, 100))


@job
def jamba_and_zamba2():
    """Hybrids of state spaces and attention, one with experts, one with shared blocks of low rank."""
    m = hf("Jamba", hidden_size=1024, num_hidden_layers=4, intermediate_size=2816, num_attention_heads=16, num_key_value_heads=8, num_experts=4, attn_layer_period=4, attn_layer_offset=2,
           use_mamba_kernels=False, mamba_dt_rank=64, vocab_size=32000)
    of(m, lambda: dict(input_ids=(x := T(2, 200)), labels=x), 2)
    m = hf("Zamba2", hidden_size=1024, num_hidden_layers=6, layers_block_type=["mamba", "mamba", "hybrid", "mamba", "mamba", "hybrid"], num_attention_heads=16, mamba_headdim=64, n_mamba_heads=32,
           hybrid_layer_ids=[2, 5], num_mem_blocks=1, use_mem_rope=True, adapter_rank=64, use_mamba_kernels=False)
    of(m, lambda: dict(input_ids=(x := T(2, 512)), labels=x), 2)
    say(m, 12, input_ids=T(2, 100))


@job
def recurrent_families():
    """RWKV token by token, RecurrentGemma, Falcon-Mamba, Nemotron-H's relative: three steps of each."""
    of(hf("Rwkv", FP, hidden_size=768, num_hidden_layers=3, context_length=256, vocab_size=50277), lambda: dict(input_ids=(x := T(2, 128)), labels=x), 2)
    of(hf("RecurrentGemma", hidden_size=1024, num_hidden_layers=3, num_attention_heads=8, lru_width=1024, intermediate_size=6144, vocab_size=64000, attention_window_size=256),
       lambda: dict(input_ids=(x := T(2, 400)), labels=x), 2)
    of(hf("GraniteMoeHybrid", hidden_size=1024, num_hidden_layers=4, layer_types=["mamba", "mamba", "attention", "mamba"], num_attention_heads=16, num_key_value_heads=4, intermediate_size=1024,
          num_local_experts=8, num_experts_per_tok=2, shared_intermediate_size=1024, mamba_n_heads=32, mamba_d_head=64, vocab_size=49152), lambda: dict(input_ids=(x := T(2, 512)), labels=x), 2)


# ---- pictures and text
@job
def gemma3_sees():
    """Gemma 3 with a frozen eye of eight layers: windows and whole attention, pictures that see each other."""
    import transformers as t

    c = t.Gemma3Config(vision_config=dict(hidden_size=1152, num_hidden_layers=8, num_attention_heads=16, intermediate_size=4304, image_size=896, patch_size=14),
                       text_config=dict(hidden_size=2560, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, head_dim=256, intermediate_size=10240, sliding_window=1024,
                                        vocab_size=262208), image_token_index=262144, image_token_id=262144, mm_tokens_per_image=256)
    m = checkpointed(on(t.Gemma3ForConditionalGeneration, c, dt=BF))
    for n, p in m.named_parameters():
        p.requires_grad_("vision_tower" not in n)

    def batch():
        x = torch.cat([torch.full((1, 256), 262144, device=dev), T(1, 500, v=262000)], 1)
        return dict(input_ids=x, attention_mask=torch.ones_like(x), token_type_ids=(x == 262144).long(), pixel_values=images(1, 896, dt=BF), labels=x)

    of(m, batch, 2, lambda p: torch.optim.SGD(p, 1e-3))


@job
def qwen2_vl_reads_pages():
    """Qwen2-VL 2B, eight layers each: pictures of many sizes in one row of patches; trained, then asked."""
    import transformers as t

    c = t.Qwen2VLConfig(vision_config=dict(depth=8, embed_dim=1280, hidden_size=1536, num_heads=16), text_config=dict(hidden_size=1536, num_hidden_layers=8, num_attention_heads=12,
                        num_key_value_heads=2, intermediate_size=8960, vocab_size=151936, rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[16, 24, 24])),
                        image_token_id=151655, vision_start_token_id=151652, vision_end_token_id=151653)
    m = on(t.Qwen2VLForConditionalGeneration, c, dt=BF)
    m.config.use_cache = False

    def batch(labels=True):
        grid = [(1, rng.choice([24, 40]), rng.choice([24, 36])) for _ in range(2)]
        rows = [torch.cat([T(20, v=150000), torch.tensor([151652], device=dev), torch.full((h * w // 4,), 151655, device=dev), torch.tensor([151653], device=dev), T(60, v=150000)]) for _, h, w in grid]
        x = nn.utils.rnn.pad_sequence(rows, True, 0, padding_side="left")
        d = dict(input_ids=x, attention_mask=(x != 0).long(), pixel_values=N(sum(h * w for _, h, w in grid), 1176, dt=BF), image_grid_thw=torch.tensor(grid, device=dev),
                 mm_token_type_ids=(x == 151655).int())
        return dict(d, labels=x) if labels else d

    of(m, batch, 3, adamw(fused=True))
    say(m, 16, **batch(False))


@job
def florence2_and_pix2struct():
    """DaViT with a BART; patches of uneven pictures read by a T5's relative."""
    import transformers as t

    m = hf2("Pix2Struct", "Pix2StructForConditionalGeneration", vision_config=dict(num_hidden_layers=8), text_config=dict(num_layers=8, is_decoder=True))

    def batch():
        x = torch.cat([T(2, 1024, 2, v=32).float(), N(2, 1024, 768)], 2)
        return dict(flattened_patches=x, attention_mask=torch.ones(2, 1024, device=dev), labels=T(2, 64, v=50000))

    of(m, batch, 2, amp=BF)
    m = on(t.Blip2ForConditionalGeneration, t.Blip2Config(vision_config=dict(num_hidden_layers=4), text_config=dict(model_type="opt", hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
           ffn_dim=4096, word_embed_proj_dim=1024), image_token_index=50265), dt=HF16).eval()
    m.generate(images(4, 224, dt=HF16), input_ids=torch.cat([torch.full((4, 32), 50265, device=dev), T(4, 8)], 1), max_new_tokens=12, min_new_tokens=12, num_beams=3)


@job
def donut_and_trocr():
    """A Swin that reads pages for an MBart; a ViT that reads lines: both half precision with a scaler."""
    import transformers as t

    c = t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(t.DonutSwinConfig(image_size=[1280, 960], depths=[2, 2, 14, 2], num_heads=[4, 8, 16, 32], window_size=10, embed_dim=128),
        t.MBartConfig(is_decoder=True, add_cross_attention=True, d_model=1024, decoder_layers=4, vocab_size=57525, scale_embedding=True, add_final_layer_norm=True))
    c.decoder_start_token_id, c.pad_token_id = 2, 1
    m = on(t.VisionEncoderDecoderModel, c)
    of(m, lambda: dict(pixel_values=N(1, 3, 1280, 960), labels=T(1, 300, v=57000)), 3, adamw(), amp=HF16, scaler=True)
    say(m, 24, inputs=N(1, 3, 1280, 960))


@job
def blip_owl_siglip2():
    """Captions, detection by words, and a two-tower model with patches of many sizes."""
    import transformers as t

    m = hf2("Blip", "BlipForConditionalGeneration", vision_config=dict(image_size=384))
    of(m, lambda: dict(pixel_values=images(8, 384), input_ids=(x := T(8, 24, v=30000)), labels=x), 2, amp=BF)
    m = hf2("Owlv2", "Owlv2ForObjectDetection", HF16, vision_config=dict(image_size=960, patch_size=16, **{k: v for k, v in BASE.items()}), text_config=dict(hidden_size=512, num_attention_heads=8)).eval()
    with torch.no_grad():
        m(input_ids=T(10, 16, v=49000), attention_mask=torch.ones(10, 16, device=dev, dtype=torch.long), pixel_values=images(2, 960, dt=HF16))


@job
def altclip_x_clip_films():
    """Films with words: X-CLIP over eight frames with prompts."""
    m = hf2("XCLIP", "XCLIPModel", vision_config=dict(num_frames=8))
    of(m, lambda: dict(input_ids=T(4, 77, v=49000), attention_mask=torch.ones(4, 77, device=dev, dtype=torch.long), pixel_values=N(4, 8, 3, 224, 224), return_loss=True), 2, amp=HF16, scaler=True)


# ---- pictures
def resnet_of(**k):
    import transformers as t

    return dict(backbone_config=t.ResNetConfig(out_features=k.pop("out", ["stage2", "stage3", "stage4"])), use_timm_backbone=False, backbone=None, **k)


@job
def detr_r50_detects():
    """DETR with transformers' own ResNet 50, masks of padding, losses of all layers."""
    m = hf2("Detr", "DetrForObjectDetection", num_labels=91, **resnet_of(out=["stage4"]))

    def batch():
        h, w = rng.choice([(640, 800), (736, 960), (800, 1000)])
        mask = torch.ones(3, h, w, device=dev, dtype=torch.long)
        mask[1, :, w * 2 // 3 :] = 0
        return dict(pixel_values=N(3, 3, h, w), pixel_mask=mask, labels=boxes(3))

    of(m, batch, 3, adamw(1e-4))


@job
def rt_detr_and_d_fine():
    """RT-DETR of ResNet-D with denoising queries; its follower with HGNet, in bf16."""
    m = hf2("RTDetrV2", "RTDetrV2ForObjectDetection", num_labels=80)
    of(m, lambda: dict(pixel_values=images(8, 640), labels=boxes(8)), 2, adamw(1e-4))
    m = hf2("DFine", "DFineForObjectDetection", num_labels=80)
    of(m, lambda: dict(pixel_values=images(8, 640), labels=boxes(8)), 2, adamw(1e-4), amp=BF)


@job
def conditional_dab_table():
    """Two followers of DETR in half precision, one finds tables."""
    m = hf2("ConditionalDetr", "ConditionalDetrForObjectDetection", num_labels=91, **resnet_of(out=["stage4"]))
    of(m, lambda: dict(pixel_values=N(2, 3, 768, 768), pixel_mask=torch.ones(2, 768, 768, device=dev, dtype=torch.long), labels=boxes(2)), 2, adamw(1e-4), amp=HF16, scaler=True)
    m = hf2("TableTransformer", "TableTransformerForObjectDetection", num_labels=6, **resnet_of(out=["stage4"]))
    of(m, lambda: dict(pixel_values=N(2, 3, 800, 800), pixel_mask=torch.ones(2, 800, 800, device=dev, dtype=torch.long), labels=boxes(2, 6)), 2, adamw(1e-4), amp=HF16, scaler=True)


@job
def maskformer_swin():
    """MaskFormer with a Swin, panoptic masks."""
    m = hf2("MaskFormer", "MaskFormerForInstanceSegmentation", num_labels=133)

    def batch():
        return dict(pixel_values=images(2, 512), mask_labels=[(torch.rand(k, 512, 512, device=dev) > 0.7).float() for k in (5, 9)], class_labels=[T(k, v=133) for k in (5, 9)])

    of(m, batch, 2, adamw(1e-4), amp=HF16, scaler=True)


@job
def sam2_video_frames():
    """SAM 2's Hiera: features of a picture once, then many prompts; the decoder learns."""
    m = hf2("Sam2", "Sam2Model")
    for n, p in m.named_parameters():
        p.requires_grad_("mask_decoder" in n)
    with torch.no_grad():
        e = m.get_image_embeddings(images(2, 1024))

    def loss(m):
        o = m(image_embeddings=e, input_points=1024 * torch.rand(2, 4, 3, 2, device=dev), input_labels=T(2, 4, 3, v=2))
        return o.pred_masks.float().sigmoid().mean() + o.iou_scores.mean()

    fit(m, loss, 4, adamw(1e-4), amp=BF)


@job
def upernet_convnext_fp16():
    """UPerNet over a ConvNeXt, channels last, half precision."""
    import transformers as t

    m = hf2("UperNet", "UperNetForSemanticSegmentation", backbone_config=t.ConvNextConfig(hidden_sizes=[96, 192, 384, 768], out_features=["stage1", "stage2", "stage3", "stage4"]), num_labels=150, backbone=None)
    m.to(memory_format=torch.channels_last)
    of(m, lambda: dict(pixel_values=images(8, 512, True), labels=T(8, 512, 512, v=150)), 3, adamw(1e-4), amp=HF16, scaler=True)


@job
def beit_large_segments():
    """BEiT with relative positions and a decoder of transposed layers."""
    m = hf2("Beit", "BeitForSemanticSegmentation", **{**BASE}, image_size=512, num_labels=150, use_relative_position_bias=True, use_absolute_position_embeddings=False, out_indices=[3, 5, 7, 11],
            use_mask_token=False)
    of(m, lambda: dict(pixel_values=images(4, 512), labels=T(4, 512, 512, v=150)), 2, adamw(1e-4), amp=BF)


@job
def depth_of_three_kinds():
    """Depth Anything on DINOv2, GLPN, and ZoeDepth: convolutions that fuse, transposed ones of 2 and 4."""
    import transformers as t

    c = t.DepthAnythingConfig(backbone_config=t.Dinov2Config(**BASE, image_size=518, patch_size=14, out_indices=[3, 6, 9, 12], reshape_hidden_states=False, apply_layernorm=True), reassemble_hidden_size=768,
                              neck_hidden_sizes=[96, 192, 384, 768], fusion_hidden_size=128)
    fit(on(t.DepthAnythingForDepthEstimation, c), lambda m: m(images(6, 518)).predicted_depth.log1p().mean(), 2, adamw(), amp=BF)
    fit(hf2("GLPN", "GLPNForDepthEstimation"), lambda m: m(N(4, 3, 480, 640)).predicted_depth.log1p().mean(), 2, adamw(), amp=HF16, scaler=True)


@job
def nets_of_the_library():
    """EfficientNet B2, RegNet, MobileNet V2, BiT, ConvNeXt V2, LeViT in transformers' own code: half precision, two layouts."""
    for name, side, n, k in (("EfficientNet", 260, 24, dict(width_coefficient=1.1, depth_coefficient=1.2, image_size=260, hidden_dim=1408)), ("RegNet", 224, 32, {}), ("MobileNetV2", 224, 48, {}),
                             ("Bit", 224, 24, {}), ("ConvNextV2", 224, 24, {}), ("Levit", 224, 64, {})):
        last = name in ("RegNet", "ConvNextV2", "EfficientNet")
        m = hf2(name, name + "ForImageClassification", num_labels=1000, **k)
        m = m.to(memory_format=torch.channels_last) if last else m
        fit(m, lambda m: F.cross_entropy(m(images(n, side, last)).logits.float(), T(n, v=1000)), 2, SGD, amp=HF16, scaler=True)


@job
def pyramids_of_attention():
    """PVT v2, CvT, PoolFormer, FocalNet, SwiftFormer, Swin v2: depthwise layers, strides, bf16."""
    for name, side, n, k in (("PvtV2", 224, 24, {}), ("Cvt", 224, 16, {}), ("PoolFormer", 224, 24, {}), ("FocalNet", 224, 24, {}), ("SwiftFormer", 224, 32, {}),
                             ("Swinv2", 256, 16, dict(image_size=256, window_size=8))):
        m = hf2(name, name + "ForImageClassification", num_labels=1000, **k)
        fit(m, lambda m: F.cross_entropy(m(images(n, side)).logits.float(), T(n, v=1000)), 2, adamw(), amp=BF)


@job
def films_of_four_kinds():
    """TimeSformer, ViViT with tubes, V-JEPA 2, VideoMAE's pretraining with masks."""
    of(hf2("Timesformer", "TimesformerForVideoClassification", num_labels=400, num_frames=8), lambda: dict(pixel_values=N(3, 8, 3, 224, 224), labels=T(3, v=400)), 2, amp=BF)
    of(hf2("Vivit", "VivitForVideoClassification", num_labels=400, num_frames=32), lambda: dict(pixel_values=N(2, 32, 3, 224, 224), labels=T(2, v=400)), 2, amp=HF16, scaler=True)
    of(hf2("VJEPA2", "VJEPA2ForVideoClassification", crop_size=256, frames_per_clip=16, num_hidden_layers=8, num_pooler_layers=2, num_labels=174),
       lambda: dict(pixel_values_videos=N(2, 16, 3, 256, 256), labels=T(2, v=174)), 2, amp=BF)
    mask = torch.zeros(4, 1568, dtype=torch.bool, device=dev)
    mask[:, :1408] = True
    of(hf2("VideoMAE", "VideoMAEForPreTraining", num_frames=16), lambda: dict(pixel_values=N(4, 16, 3, 224, 224), bool_masked_pos=mask), 2, amp=BF)


@job
def matches_and_mattes():
    """LightGlue's relatives: ViTMatte cuts out, ViTPose finds joints."""
    import transformers as t

    m = hf2("VitMatte", "VitMatteForImageMatting", backbone_config=t.VitDetConfig(num_channels=4, image_size=512, pretrain_image_size=224, patch_size=16, hidden_size=384, num_attention_heads=6,
            window_size=14, use_relative_position_embeddings=True, window_block_indices=[0, 1, 3, 4, 6, 7, 9, 10], residual_block_indices=[2, 5, 8, 11], out_features=["stage12"]), backbone=None, convstream_hidden_sizes=[48, 96, 192],
            fusion_hidden_sizes=[256, 128, 64, 32])
    fit(m, lambda m: F.l1_loss(m(N(4, 4, 512, 512)).alphas, torch.rand(4, 1, 512, 512, device=dev)), 2, adamw(), amp=HF16, scaler=True)
    m = on(t.VitPoseForPoseEstimation, t.VitPoseConfig(backbone_config=t.VitPoseBackboneConfig(image_size=[256, 192], out_indices=[12]), use_simple_decoder=False, num_labels=17))
    fit(m, lambda m: m(N(32, 3, 256, 192)).heatmaps.square().mean(), 2, adamw(), amp=HF16, scaler=True)


# ---- time
@job
def forecasts():
    """PatchTST, PatchTSMixer, Autoformer, Informer, TimesFM: distributions, decompositions by correlation; the last predicts."""
    of(hf2("PatchTST", "PatchTSTForPrediction", num_input_channels=21, context_length=512, prediction_length=96, patch_length=16, patch_stride=8, d_model=256, num_hidden_layers=4, num_attention_heads=16,
           ffn_dim=512, channel_attention=False), lambda: dict(past_values=N(32, 512, 21), future_values=N(32, 96, 21)), 3)
    of(hf2("PatchTSMixer", "PatchTSMixerForPrediction", num_input_channels=21, context_length=512, prediction_length=96, d_model=64, num_layers=8, loss="nll"),
       lambda: dict(past_values=N(64, 512, 21), future_values=N(64, 96, 21)), 3)
    for name in ("Autoformer", "Informer", "TimeSeriesTransformer"):
        m = hf2(name, name + "ForPrediction", prediction_length=48, context_length=192, num_time_features=4, d_model=256, encoder_layers=3, decoder_layers=2, lags_sequence=[1, 2, 3, 24])
        past = 192 + 24

        def batch():
            return dict(past_values=N(64, past).abs() + 1, past_time_features=N(64, past, 4), past_observed_mask=torch.ones(64, past, device=dev), future_values=N(64, 48).abs() + 1,
                        future_time_features=N(64, 48, 4))

        of(m, batch, 3)
        m.eval()
        d = batch()
        d.pop("future_values")
        with torch.no_grad():
            m.generate(**d)


# ---- trainers
def rows_of(n, vocab, seed=1):
    g = torch.Generator().manual_seed(seed)
    return [dict(input_ids=(x := torch.randint(5, vocab, (int(torch.randint(100, 500, (1,), generator=g)),), generator=g)), labels=x) for _ in range(n)]


def padded(b):
    pad = lambda k, v: nn.utils.rnn.pad_sequence([r[k] for r in b], True, v)
    return dict(input_ids=pad("input_ids", 0), labels=pad("labels", -100), attention_mask=pad("input_ids", 0).ne(0).long())


def train(m, rows, cls="Trainer", args="TrainingArguments", **k):
    import transformers as t

    with tempfile.TemporaryDirectory() as d:
        more = {n: k.pop(n) for n in ("compute_metrics", "eval_dataset", "callbacks") if n in k}
        a = getattr(t, args)(d, report_to=[], save_strategy=k.pop("save_strategy", "no"), remove_unused_columns=False, logging_steps=2, disable_tqdm=True, **k)
        x = getattr(t, cls)(m, a, train_dataset=rows, data_collator=padded, **more)
        x.train()
        return x


@job
def trainer_fp16_checkpoints():
    """fp16 with the trainer's scaler, checkpoints of layers, accumulation, warmup, a maximum norm."""
    m = hf("OPT", FP, num_hidden_layers=8, hidden_size=1024, ffn_dim=4096, num_attention_heads=16, word_embed_proj_dim=1024)
    train(m, rows_of(96, 50000), per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=5, fp16=True, gradient_checkpointing=True, warmup_steps=2, lr_scheduler_type="cosine",
          optim="adamw_torch", max_grad_norm=0.5)


@job
def trainer_adafactor_bf16():
    """Weights of bf16, Adafactor, evaluation between, states saved to disk and the best loaded."""
    m = hf("Qwen2", hidden_size=896, num_hidden_layers=8, num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864, vocab_size=151936, tie_word_embeddings=True)
    train(m, rows_of(48, 150000), per_device_train_batch_size=6, per_device_eval_batch_size=2, max_steps=4, bf16=True, optim="adafactor", eval_strategy="steps", eval_steps=2, save_strategy="steps",
          save_steps=2, load_best_model_at_end=True, prediction_loss_only=True, eval_dataset=rows_of(10, 150000, 2))


@job
def seq2seq_trainer_generates():
    """T5; evaluation generates with beams."""
    m = hf2("T5", "T5ForConditionalGeneration", d_model=512, d_ff=1024, num_layers=6, num_heads=8, feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    train(m, rows_of(64, 32000), "Seq2SeqTrainer", "Seq2SeqTrainingArguments", per_device_train_batch_size=8, per_device_eval_batch_size=4, max_steps=4, bf16=True,
          predict_with_generate=True, generation_max_length=24, generation_num_beams=2, eval_strategy="steps", eval_steps=4, eval_dataset=rows_of(8, 32000, 2), optim="adamw_torch_fused",
          compute_metrics=lambda p: {"n": float(p.predictions.shape[1])})


@job
def trainer_sgd_optimizers():
    """Three trainers in turn: momentum, RMSprop, AdaGrad; a model for sequences; the last resumes."""
    for o in ("sgd", "rmsprop", "adagrad"):
        m = hf2("Roberta", "RobertaForCausalLM", **{**BASE, "num_hidden_layers": 6}, is_decoder=True)
        train(m, rows_of(40, 50000), per_device_train_batch_size=8, max_steps=3, optim=o, learning_rate=1e-4)


# ---- unusual convolutions
class Odd(nn.Module):
    """Layers of every odd kind between two products."""

    def __init__(s, d, c):
        super().__init__()
        kind, turned = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[d - 1], (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[d - 1]
        s.parts = nn.ModuleList([
            kind(3, c, 7 if d < 3 else 3, 2, 3 if d < 3 else 1), kind(c, c, 5, padding=2, groups=c), kind(c, 2 * c, 1), kind(2 * c, 2 * c, 3, padding=4, dilation=4, groups=8),
            kind(2 * c, 3 * c, 3, 2, 1, bias=False), kind(3 * c, 3 * c, (1,) * (d - 1) + (9,), padding=(0,) * (d - 1) + (4,), groups=3), turned(3 * c, 2 * c, 4, 2, 1, groups=2),
            turned(2 * c, c, 3, 1, 1), turned(c, c, 4, 2, 1, groups=c), kind(c, 3, 3, padding=1, padding_mode="reflect" if d < 3 else "circular")])

    def forward(s, x):
        for f in s.parts[:-1]:
            x = F.silu(f(x))
        return s.parts[-1](x)


def odd(d, c, shape, last=None, **k):
    m = on(Odd, d, c)
    m = m.to(memory_format=last) if last else m
    fit(m, lambda m: (lambda x: (m(x) - x).square().mean())(N(*shape).to(memory_format=last) if last else N(*shape)), 3, **k)


@job
def odd_lines():
    odd(1, 48, (16, 3, 16384), amp=HF16, scaler=True)
    odd(1, 96, (16, 3, 8192), amp=BF)
    odd(1, 48, (8, 3, 44100 // 4 * 4))


@job
def odd_planes():
    odd(2, 48, (8, 3, 192, 256), amp=HF16, scaler=True)
    odd(2, 64, (8, 3, 160, 160), torch.channels_last, amp=BF)
    odd(2, 48, (4, 3, 200, 136), torch.channels_last)


@job
def odd_volumes():
    odd(3, 24, (2, 3, 32, 64, 64), amp=HF16, scaler=True)
    odd(3, 24, (2, 3, 24, 48, 64), torch.channels_last_3d, amp=BF)
    odd(3, 24, (1, 3, 32, 48, 48))


# ---- compiled
@job
def c_static_decode():
    """generate with a static cache, which transformers compiles by itself."""
    m = hf("Llama", hidden_size=2048, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8, intermediate_size=5632)
    say(m, 24, input_ids=T(2, 100), cache_implementation="static")


@job
def c_trainer_qwen3():
    """A compiled model in the trainer, with accumulation."""
    m = hf("Qwen3", FP, hidden_size=768, num_hidden_layers=3, num_attention_heads=12, num_key_value_heads=4, head_dim=64, intermediate_size=2048)
    rows = [dict(input_ids=torch.arange(256) + i, labels=torch.arange(256) + i) for i in range(32)]
    m.forward = torch.compile(m.forward)
    train(m, rows, per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=2, bf16=True)


if __name__ == "__main__":
    main()
