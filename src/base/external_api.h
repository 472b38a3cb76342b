/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included first in files that go into shared objects, where names are hidden by default. It makes
 * the functions that an external policy may call (docs/external-policy) visible in
 * libcufrag_torch.so, as they are in the program.
 */
#pragma GCC visibility push(default)
#include <frag/clock.h>
#include <frag/policy.h>
#pragma GCC visibility pop
