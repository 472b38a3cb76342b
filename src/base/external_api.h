/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before everything else in what goes into shared objects, where names are hidden otherwise: what a policy from a
 * shared object of its own may call (docs/external-policy) is visible in libcufrag_torch.so as it is in the program.
 */
#pragma GCC visibility push(default)
#include <frag/clock.h>
#include <frag/policy.h>
#pragma GCC visibility pop
