/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before everything else: names are hidden (-fvisibility=hidden) but those of the public
 * headers, which a policy or a device from a shared object of its own (docs/external-policy) finds
 * in the program, and in libcufrag_torch.so where that has them.
 */
#pragma GCC visibility push(default)
#include <frag/base.h>
#include <frag/clock.h>
#include <frag/device.h>
#include <frag/error.h>
#include <frag/metrics.h>
#include <frag/opt.h>
#include <frag/plan.h>
#include <frag/policy.h>
#include <frag/replay.h>
#include <frag/torch.h>
#include <frag/trace.h>
#include <frag/watch.h>
#pragma GCC visibility pop
