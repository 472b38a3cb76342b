/* SPDX-License-Identifier: Apache-2.0 */
#include "must.h"

#include "test.h"

struct frag_trace *must_read(const char *path)
{
	struct frag_trace *t = NULL;
	struct frag_err err = { 0 };

	if (frag_trace_read(path, NULL, &t, &err))
		fail_msg("%s", err.msg);
	return t;
}

struct frag_device *must_open_sim(const struct frag_sim_config *cfg)
{
	static const struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };
	struct frag_device *dev = NULL;
	struct frag_err err = { 0 };

	if (frag_sim_open(cfg ? cfg : &h200, &dev, &err))
		fail_msg("%s", err.msg);
	return dev;
}

struct frag_policy_spec *must_parse_policy(const char *text)
{
	struct frag_policy_spec *spec = NULL;
	struct frag_err err = { 0 };

	if (frag_policy_spec_parse(text, &spec, &err))
		fail_msg("%s", err.msg);
	return spec;
}
