/* SPDX-License-Identifier: Apache-2.0 */
/* Options of readers; see trace_options.h. */
#include "trace_options.h"

#include <stdlib.h>
#include <string.h>

#include <frag/torch.h>

int frag_trace_options_parse(const char *text, struct frag_trace_options *out, struct frag_err *err)
{
	const char *at = text ? text : "";
	char *end;

	*out = (struct frag_trace_options){ .device = -1 };
	if (!strncmp(at, "device=", 7) && at[7] >= '0' && at[7] <= '9') {
		out->device = strtoll(at + 7, &end, 10);
		if (out->device <= UINT32_MAX && (!*end || *end == ';'))
			at = end + (*end == ';');
	}
	if (!strncmp(at, "conf=", 5))
		out->conf = at + 5;
	else if (*at)
		return frag_fail(err, FRAG_EUSAGE,
				 "unknown trace option '%s'; use device=N or "
				 "conf=SETTINGS",
				 at);
	return 0;
}

int frag_trace_take_conf(struct frag_trace *trace, const char *conf, struct frag_err *err)
{
	struct frag_trace_settings *set = &trace->settings;
	char *copy;

	if (!conf)
		return 0;
	if (frag_torch_settings(conf, set->torch_last, set, err))
		return frag_err_prefix(err, "given settings");
	copy = frag_host_strdup(conf);
	FRAG_CHECK_ALLOC(copy, "settings", err);
	frag_host_free(set->conf);
	set->conf = copy;
	return 0;
}

void frag_trace_set_torch(struct frag_trace *trace, unsigned first, unsigned last)
{
	trace->settings.torch_first = first;
	trace->settings.torch_last = last;
	for (uint32_t d = 0; d < trace->devs_count; d++)
		trace->devs[d].source_release = last;
}

void frag_trace_take_release(struct frag_trace *trace, const char *text)
{
	const struct frag_trace_settings *set = &trace->settings;
	unsigned release;

	if (text && set->torch_last && !frag_torch_parse(text, &release, NULL) &&
	    release >= set->torch_first && release <= set->torch_last)
		frag_trace_set_torch(trace, release, release);
}
