/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's export_memory_timeline: [[time, …], [[0, size of each category, …], …]] in us, or, raw,
 * [[time, action, change, category], …] in ns. It is live memory; what was reserved it does not say.
 */
#include "diagnose.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/grow.h"
#include "trace/log/log.h"

#define NUMBERS_MOST (1u << 25)
#define NUMBER_MOST 0x1p62

static const char *const categories[] = { "parameters",	 "optimizer states", "inputs",
					  "temporaries", "activations",	     "gradients",
					  "autograd's",	 "unknown" };
enum { CATEGORIES = FRAG_ARRAY_LEN(categories) };

struct numbers {
	double *list;
	size_t count, cap;
};

/* Of a word in so many brackets; false: no number, or not there. */
static bool take_number(const char *word, int depth, struct numbers level[2], struct frag_err *err)
{
	struct numbers *to = &level[depth == 3];
	char *end;
	double v = strtod(word, &end);

	if (*end || depth < 2 || !(fabs(v) < NUMBER_MOST) || to->count == NUMBERS_MOST ||
	    FRAG_GROW(to->list, to->count, to->cap, "timeline", err))
		return false;
	to->list[to->count++] = v;
	return true;
}

/* level: numbers in two brackets, in three. */
static int read_numbers(struct frag_input *in, struct numbers level[2], struct frag_err *err)
{
	char word[32];
	int c, depth = 0;
	size_t n = 0;

	while ((c = frag_input_get(in, err)) >= 0) {
		if (n + 1 < sizeof(word) && (isalnum(c) || strchr("+-.", c))) {
			word[n++] = (char)c;
			continue;
		}
		word[n] = '\0';
		if (n && !take_number(word, depth, level, err))
			break;
		n = 0;
		depth += (c == '[') - (c == ']');
		if (!strchr("[], \t\r\n", c) || depth < 0 || depth > 3)
			break;
	}
	if (c < 0 && (c != FRAG_INPUT_EOF || !depth))
		return c == FRAG_INPUT_EOF ? 0 : c;
	return frag_log_fail(err, "offset", frag_input_offset(in), "not a memory timeline");
}

/* The sizes at moment i from those before it; the time, in seconds. */
static double sizes_at(const struct numbers level[2], size_t width, size_t i,
		       double sizes[CATEGORIES])
{
	const double *row = level[0].list + 4 * i;
	size_t k;

	if (width) {
		for (k = 0; k < CATEGORIES && k + 1 < width; k++)
			sizes[k] = level[1].list[i * width + k + 1];
		return level[0].list[i] / 1e6;
	}
	k = row[3] >= 0 && row[3] < CATEGORIES ? (size_t)row[3] : (size_t)CATEGORIES - 1;
	sizes[k] += row[2];
	return row[0] / 1e9;
}

/* A profile covers a few steps at most: it tells a peak, but no leak. */
static void tell(const struct numbers level[2], const char *path, struct frag_findings *out)
{
	size_t n = level[0].count, width = level[1].count / n;
	double sizes[CATEGORIES] = { 0 }, peak[CATEGORIES] = { 0 };
	double begin = -1, most = 0, when = 0, total = 0;
	const char *slash = strrchr(path, '/'), *between = ":";
	struct frag_finding *f =
		frag_findings_add(out, FRAG_FOUND_UNDECIDED, slash ? slash + 1 : path);

	for (size_t i = 0; i < (width ? n : n / 4); i++) {
		double time = sizes_at(level, width, i, sizes);

		begin = begin < 0 ? time : begin; /* -1: allocated before the profile */
		total = 0;
		for (size_t k = 0; k < CATEGORIES; k++)
			total += sizes[k];
		if (total <= most)
			continue;
		most = FRAG_MIN(total, NUMBER_MOST);
		when = FRAG_MAX(time - begin, 0);
		memcpy(peak, sizes, sizeof(peak));
	}
	frag_finding_say(f, "at most %s is live, %.3f s after the beginning",
			 FRAG_BYTES((uint64_t)most), when);
	for (size_t k = 0; k < CATEGORIES; k++)
		if (peak[k] >= 1) {
			frag_finding_say(f, "%s %s %s", between, categories[k],
					 FRAG_BYTES((uint64_t)FRAG_MIN(peak[k], NUMBER_MOST)));
			between = ",";
		}
	frag_finding_say(f,
			 "; at the end %s. What is reserved for it, and at which lines it was "
			 "requested, a recording tells",
			 FRAG_BYTES((uint64_t)FRAG_MIN(FRAG_MAX(total, 0), NUMBER_MOST)));
	frag_finding_number(f, "most_bytes", most);
	frag_findings_note(out, "PyTorch's memory timeline, of a profile");
}

int frag_diagnose_timeline(const char *path, struct frag_findings *out, struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	struct numbers level[2] = { 0 };
	const unsigned char *bytes;
	size_t got;
	int rc;

	FRAG_TRY(frag_input_open(path, &in, err));
	FRAG_TRY(frag_input_peek(in, 2, &bytes, &got, err));
	if (got < 2 || memcmp(bytes, "[[", 2) != 0)
		return 0;
	rc = read_numbers(in, level, err);
	if (!rc && (!level[0].count || level[1].count % level[0].count ||
		    (!level[1].count && level[0].count % 4)))
		rc = frag_fail(err, FRAG_EINPUT, "no memory timeline: %zu times, %zu sizes",
			       level[0].count, level[1].count);
	if (rc)
		frag_err_prefix(err, "'%.200s'", path);
	else
		tell(level, path, out);
	FRAG_FREE(level[0].list, level[1].list);
	return rc ? rc : 1;
}
