# SPDX-License-Identifier: Apache-2.0
"""bert.py [OPTION=VALUE...]: Hugging Face's "Efficient Training on a Single GPU": bert-large-uncased, 512 sequences of 512 tokens, their
Trainer; the figure is what the card's memory holds beyond the context, in MiB."""
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

model = BertForSequenceClassification(BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)).to("cuda")
print("figure model %.0f" % (torch.cuda.memory_reserved() / 2**20))
data = [{"input_ids": torch.randint(100, 30000, (512,)), "labels": 0} for _ in range(16)]
options = dict(per_device_train_batch_size=4)
for word in sys.argv[1:]:
    name, value = word.split("=")
    options[name] = int(value) if value.isdigit() else {"True": True}.get(value, value)
arguments = TrainingArguments(output_dir="tmp", num_train_epochs=1, log_level="error", report_to="none", save_strategy="no", **options)
Trainer(model=model, args=arguments, train_dataset=data).train()
print("figure training %.0f" % (torch.cuda.memory_reserved() / 2**20))
