# SPDX-License-Identifier: Apache-2.0
"""Tensors that the backward pass needs wait on the host."""
from .help import each_under, partial, save_on_host

GROUP = "blocks"
applies = partial(each_under, sentence="call %s under torch.autograd.graph.save_on_cpu(pin_memory=True)")
install = partial(save_on_host, take=lambda size: True)
