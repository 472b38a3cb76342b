/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and targets; see target.h. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

int frag_limit_parse(const char *text, struct frag_limit *out, struct frag_err *err)
{
	char *end;
	double fraction = strtod(text, &end);

	*out = (struct frag_limit){ .text = text };
	out->is_fraction =
		strchr(text, '.') && !text[strspn(text, "0123456789.")] && end != text && !*end;
	if (!out->is_fraction)
		return frag_parse_bytes(text, &out->bytes, err);
	if (fraction > 1.0)
		return frag_fail(err, FRAG_EUSAGE,
				 "limit '%.40s' is more than the whole card; give a fraction up to "
				 "1.0, or a size with its unit",
				 text);
	out->fraction = fraction;
	return 0;
}

uint64_t frag_limit_bytes(const struct frag_limit *limit, uint64_t total_bytes)
{
	if (!limit->text)
		return UINT64_MAX;
	if (!limit->is_fraction)
		return limit->bytes;
	return limit->fraction < 1.0 ? (uint64_t)(limit->fraction * (double)total_bytes)
				     : UINT64_MAX;
}

uint64_t frag_target_limit(const struct frag_target *t)
{
	return frag_limit_bytes(&t->limit, t->card.total_bytes);
}

void frag_target_run_options(const struct frag_target *t, struct frag_run_options *out)
{
	frag_run_options_defaults(out);
	out->source_release = t->torch;
	out->seed = t->seed;
	out->limit_bytes = frag_target_limit(t);
}

void frag_headroom_text(const struct frag_headroom *h, struct frag_text *out)
{
	size_t start = out->len;

	if (h->outside_bytes) {
		frag_text_addf(out, "%s for what was held outside of the allocator",
			       FRAG_BYTES(h->outside_bytes));
	}
	if (h->ratio > 0 || h->bytes) {
		frag_text_add(out, out->len > start ? " and " : "");
		if (h->ratio > 0)
			frag_text_addf(out, "%g %% of the card", 100 * h->ratio);
		else
			frag_text_add(out, FRAG_BYTES(h->bytes));
		frag_text_add(out, " for libraries and for inputs longer than those recorded");
	}
}
