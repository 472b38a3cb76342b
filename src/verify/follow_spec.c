/* SPDX-License-Identifier: Apache-2.0 */
/* The policy to follow, and whether there is evidence to follow. */
#include "follow.h"

#include <inttypes.h>
#include <stdio.h>

/* Settings as text, built from the fields if the string is missing. */
static int settings_text(const struct frag_trace_settings *s, char *buf, size_t cap,
			 struct frag_err *err)
{
	int n = snprintf(buf, cap, "pytorch:%s", s->conf ? s->conf : "");

	if (n < 0 || (size_t)n + 128 >= cap)
		return frag_fail(err, FRAG_EINPUT, "the recorded settings are too long");
	if (!s->present || (s->conf && *s->conf))
		return 0;
	if (s->max_split_bytes != UINT64_MAX)
		n += snprintf(buf + n, cap - (size_t)n, "max_split_size_mb:%" PRIu64 ",",
			      (uint64_t)(s->max_split_bytes / FRAG_MIB));
	if (s->gc_threshold > 0)
		n += snprintf(buf + n, cap - (size_t)n, "garbage_collection_threshold:%.17g,",
			      s->gc_threshold);
	if (s->expandable)
		snprintf(buf + n, cap - (size_t)n, "expandable_segments:True,");
	return 0;
}

int follow_spec(const struct frag_trace *trace, const char *conf, struct frag_policy_spec **out,
		struct frag_err *err)
{
	char text[1024];
	int rc;

	if (conf)
		snprintf(text, sizeof(text), "pytorch:%s", conf);
	else
		FRAG_TRY(settings_text(&trace->settings, text, sizeof(text), err));
	rc = frag_policy_spec_parse(text, out, err);
	if (!rc || rc == FRAG_ENOMEM)
		return rc;
	if (conf)
		return rc;
	return frag_fail(err, FRAG_EINPUT, "recorded settings: %s", err ? err->msg : "");
}

int follow_check(const struct frag_trace *trace, uint32_t dev, struct frag_err *err)
{
	if (trace->devs[dev].has_evidence)
		return 0;
	return frag_fail(err, FRAG_EINPUT,
			 "trace '%s' has no evidence of its allocator: nothing to verify against",
			 trace->name);
}
