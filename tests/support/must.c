/* SPDX-License-Identifier: Apache-2.0 */
#include "must.h"

#include "test.h"

#include <unistd.h>

static const struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };

void recorded_or_skip(const char *path)
{
	if (access(path, R_OK) != 0 || test_is_quick())
		skip();
}

struct frag_trace *must_read(const char *path)
{
	struct frag_trace *t = NULL;

	if (frag_trace_read(path, NULL, &t, &test_err))
		fail_msg("%s: %s", path, test_err.msg);
	return t;
}

struct frag_trace *must_read_bundled(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "traces/%s.cft", name);
	return must_read(path);
}

struct frag_device *must_open_sim(const struct frag_sim_config *cfg)
{
	struct frag_device *dev = NULL;

	SUCCEEDS(frag_sim_open(cfg ? cfg : &h200, &dev, &test_err));
	return dev;
}

struct frag_policy_spec *must_parse_policy(const char *text)
{
	struct frag_policy_spec *spec = NULL;

	if (frag_policy_spec_parse(text, &spec, &test_err))
		fail_msg("%s: %s", text, test_err.msg);
	return spec;
}

struct frag_run_options default_run(void)
{
	struct frag_run_options opt;

	frag_run_options_defaults(&opt);
	return opt;
}

struct frag_result must_replay(const char *policy, const struct frag_trace_dev *td,
			       const struct frag_sim_config *card,
			       const struct frag_run_options *opt)
{
	struct frag_policy_spec *spec = must_parse_policy(policy);
	struct frag_run_options defaults = default_run();
	struct frag_result r = { 0 };

	if (frag_replay_sim(spec, card ? card : &h200, td, opt ? opt : &defaults, &r, &test_err))
		fail_msg("%s: %s", policy, test_err.msg);
	frag_policy_spec_destroy(spec);
	return r;
}
