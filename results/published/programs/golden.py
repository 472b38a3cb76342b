# SPDX-License-Identifier: Apache-2.0
"""golden.py TEST|- STEPS [OPTION...]: a functional test of NVIDIA/Megatron-LM ($CODE), with its settings file (-: with the options alone), on
made-up tokens; the figures are those that its golden values name, of the first and of the last step.

Apex is not on PyPI: its three fused softmax kernels, and the product that adds to a gradient, are stood in for by functions that allocate what
they do.
"""
import fcntl
import importlib
import os
import re
import sys
import types

import torch
import yaml


class Writer:
    """In place of TensorBoard's, which only the last rank has, the one whose figures are published. Here each rank has one, so that the first of its
    tensor-parallel group, which needs no other, can run alone."""

    def add_scalar(self, name, value, step, *_, **__):
        named = {"mem-allocated-bytes": "allocated", "mem-max-allocated-bytes": "peak"}.get(name)
        if named and step in (1, STEPS):
            print("figure", named + (" step 1" if step == 1 else ""), int(value), flush=True)

    def __getattr__(self, _):
        return lambda *_, **__: None


def set_writer(_):
    sys.modules["megatron.training.global_vars"]._GLOBAL_TENSORBOARD_WRITER = Writer()


def softmax(name, in_place):
    """A kernel of apex: the result is new, the gradient takes the place of the incoming one where the kernel does so (csrc/megatron)."""
    kernel = types.ModuleType(name)
    kernel.forward = lambda scores, *_: torch.empty_like(scores)
    kernel.backward = lambda grads, *_: grads.contiguous() if in_place else torch.empty_like(grads)
    kernel.get_batch_per_block = lambda sq, sk, b, np: 128 // min(32, sk) * (2 if sk <= 128 else 1)
    sys.modules[name] = kernel


def arguments(test):
    """As tests/functional_tests/shell_test_utils passes them: true is an option alone; without data, places and tokenizer of their machines."""
    with open(os.path.join(CODE, "tests/functional_tests/test_cases", test, "model_config.yaml")) as f:
        settings = yaml.safe_load(f)
    os.environ.update({name: str(value) for name, value in (settings.get("ENV_VARS") or {}).items() if value is not None})
    for name, value in settings["MODEL_ARGS"].items():
        if re.search(r"\$\{|^--(train-iters|save|load|async-save|use-persistent-ckpt-worker|split|exit-interval)", "%s %s" % (name, value)):
            continue
        if value is not False and name not in ("--tokenizer-type", "--data-path"):
            yield name
            if isinstance(value, list) and isinstance(value[0], str):  # YAML reads [attn moe] as a list of one text
                value = " ".join(value)
            if value is not True:
                yield from str(value).split() if name != "--moe-layer-freq" else [str(value)]


CODE, STEPS = os.environ["CODE"], int(sys.argv[2])
os.environ["PATH"] = os.pathsep.join((sys.prefix + "/bin", sys.base_prefix + "/bin", os.environ["PATH"]))
softmax("scaled_upper_triang_masked_softmax_cuda", True)
softmax("scaled_masked_softmax_cuda", False)
softmax("scaled_softmax_cuda", False)
sys.modules["fused_weight_gradient_mlp_cuda"] = wgrad = types.ModuleType("fused_weight_gradient_mlp_cuda")
wgrad.wgrad_gemm_accum_fp32 = wgrad.wgrad_gemm_accum_fp16 = lambda *_: None  # adds to the gradient where it is
script = os.path.join(CODE, "pretrain_gpt.py")
settings = [] if sys.argv[1] == "-" else list(arguments(sys.argv[1]))
words = [] if "--vocab-size" in settings else ["--vocab-size", "50256"]
sys.argv = [script, *settings, *sys.argv[3:], "--tensorboard-dir", "board", "--train-iters", str(STEPS), "--eval-iters", "0", "--mock-data",
            "--tokenizer-type", "NullTokenizer", *words, "--no-persist-layer-norm"]
sys.path.insert(0, CODE)
with open(os.path.join(CODE, "made"), "w") as lock:  # only rank 0 makes Megatron's index of the data, and it may not run
    fcntl.flock(lock, fcntl.LOCK_EX)
    importlib.import_module("megatron.core.datasets.utils").compile_helpers()
importlib.import_module("megatron.training.global_vars")._set_tensorboard_writer = set_writer
with open(script) as f:
    exec(compile(f.read(), script, "exec"), {"__name__": "__main__", "__file__": script})
