# SPDX-License-Identifier: Apache-2.0
"""Sound: recurrent layers, transforms, convolutions of one dimension."""
from common import *


@program("packed sequences through recurrent layers")
def lstm_packed():
    from torch.nn.utils.rnn import pack_padded_sequence as P, pad_packed_sequence as U

    class M(Parts):
        def forward(s, x, n):
            y, _ = U(s.l(P(s.e(x), n, batch_first=True, enforce_sorted=False))[0], batch_first=True)
            return s.o(y)

    m = on(lambda: M(e=nn.Embedding(20000, 512),
                     l=nn.LSTM(512, 768, 3, bidirectional=True, batch_first=True, dropout=0.2),
                     o=nn.Linear(1536, 50)))

    def loss(m):
        n = torch.tensor([rng.randint(20, 200) for _ in range(32)])
        x = T(32, int(n.max()), v=20000)
        y = m(x, n).log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(y.float(), T(32, 10, v=49) + 1, n, torch.full((32,), 10))

    fit(m, loss, 4)
    fit(m, loss, 2, amp=HF16, scaler=True)


@program("short-time Fourier transforms")
def stft_enh():
    class M(Parts):
        def forward(s, x):
            z = torch.stft(x, 512, 128, window=s.w, return_complex=True)
            m = torch.sigmoid(s.o(s.l(z.abs().transpose(1, 2))[0])).transpose(1, 2)
            return torch.istft(z * m, 512, 128, window=s.w, length=x.size(1))

    m = on(lambda: M(l=nn.GRU(257, 256, 2, batch_first=True, bidirectional=True),
                     o=nn.Linear(512, 257), w=nn.Buffer(torch.hann_window(512))))
    fit(m, lambda m: (lambda x: F.l1_loss(m(x), x))(N(16, 32000)), 3)


@program("speech to text, trained and generating", "transformers")
def whisper_ft():
    m = hf2("Whisper", "WhisperForConditionalGeneration", d_model=768, encoder_layers=6,
            decoder_layers=6, encoder_attention_heads=12, decoder_attention_heads=12,
            encoder_ffn_dim=3072, decoder_ffn_dim=3072, vocab_size=51865)
    fit(m, lambda m: m(input_features=N(8, 80, 3000), labels=T(8, rng.choice([40, 80]))).loss, 3,
        amp=HF16, scaler=True)
    m.eval()
    with torch.no_grad():
        m.generate(input_features=N(4, 80, 3000), max_new_tokens=20, min_new_tokens=20, num_beams=2)


@program("dilated convolutions of one dimension", "transformers")
def wavlm_speakers_bf16():
    m = hf2("WavLM", "WavLMForXVector", hidden_size=768, num_hidden_layers=12,
            num_attention_heads=12, intermediate_size=3072, num_labels=1251,
            apply_spec_augment=False)
    fit(m, lambda m: m(input_values=N(12, 64000), labels=T(12, v=1251)).loss, 3, amp=BF)
