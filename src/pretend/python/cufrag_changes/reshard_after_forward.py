# SPDX-License-Identifier: Apache-2.0
"""fully_shard keeps whole weights after the forward pass, or does not: the other of both."""
GROUP = "ranks"


def sharded(module):
    """Modules of fully_shard below it, but for the outermost, which keeps its weights anyway."""
    return [m for m in module.modules() if hasattr(m, "set_reshard_after_forward") and m is not module]


def reshards(module):
    group = getattr(module._get_fsdp_state(), "_fsdp_param_group", None)
    return getattr(group, "post_forward_mesh_info", None) is not None


def applies(seen):
    for call in seen.calls:
        found = sharded(call.module()) if call.module() and call.training else []
        if found:
            now = any(map(reshards, found))
            return ("reshard_after_forward=%s in fully_shard: weights are gathered %s" % (not now, "once a step" if now else "twice a step"),
                    call.place)
    return None


def install(torch, seen):
    def root(module):
        found = sharded(module)
        now = any(map(reshards, found))
        for m in found:
            m.set_reshard_after_forward(not now, recurse=False)
    seen.when_root(root)
