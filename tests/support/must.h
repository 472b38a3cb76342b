/* SPDX-License-Identifier: Apache-2.0 */
/* What a test needs and fails without; the caller closes or destroys it. */
#ifndef TESTS_SUPPORT_MUST_H
#define TESTS_SUPPORT_MUST_H

#include <frag/replay.h>
#include <frag/trace.h>

struct frag_trace *must_read(const char *path);
/* A simulated card; NULL: that of the recordings. */
struct frag_device *must_open_sim(const struct frag_sim_config *cfg);
struct frag_policy_spec *must_parse_policy(const char *text);

#endif
