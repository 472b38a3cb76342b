/* SPDX-License-Identifier: Apache-2.0 */
/* What a test needs and fails without; the caller closes or destroys it. */
#ifndef TESTS_SUPPORT_MUST_H
#define TESTS_SUPPORT_MUST_H

#include <frag/replay.h>
#include <frag/trace.h>

#define AUTO_TRACE FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *
#define AUTO_SPEC FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *
#define AUTO_DEVICE FRAG_AUTO(frag_dev_close_at) struct frag_device *

/* Recordings that are too big for the repository. */
#define TORCH FRAG_SHARED_TRACES "/torch/"
/* Skips the test where the file is absent, and in the quick suite. */
void recorded_or_skip(const char *path);

struct frag_trace *must_read(const char *path);
/* traces/NAME.cft */
struct frag_trace *must_read_bundled(const char *name);
/* A simulated card; NULL: that of the recordings. */
struct frag_device *must_open_sim(const struct frag_sim_config *cfg);
struct frag_policy_spec *must_parse_policy(const char *text);
struct frag_run_options default_run(void);
/* card as above; opt NULL: the defaults. Release the result with frag_result_release. */
struct frag_result must_replay(const char *policy, const struct frag_trace_dev *td,
			       const struct frag_sim_config *card,
			       const struct frag_run_options *opt);

#endif
