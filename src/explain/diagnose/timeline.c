/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's export_memory_timeline: [[time, …], [[0, size of each category, …], …]] in us, or, raw,
 * [[time, action, change, category], …] in ns. It is live memory; what was reserved it does not say.
 */
#include "diagnose.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "trace/input/input.h"

#define FILE_MOST (64u << 20) /* bytes, which jansson keeps in up to sixteen times as many */
#define NUMBER_MOST 0x1p62

static const char *const categories[] = { "parameters",	 "optimizer states", "inputs",
					  "temporaries", "activations",	     "gradients",
					  "autograd's",	 "unknown" };
enum { CATEGORIES = FRAG_ARRAY_LEN(categories) };

/* For json_load_callback. */
static size_t read_some(void *to, size_t most, void *from)
{
	struct frag_input *in = from;
	size_t n = 0;
	int c = 0;

	for (; n < most && (c = frag_input_get(in, NULL)) >= 0; n++)
		((unsigned char *)to)[n] = (unsigned char)c;
	return (c < 0 && c != FRAG_INPUT_EOF) || frag_input_offset(in) > FILE_MOST ? SIZE_MAX : n;
}

static double number(const json_t *list, size_t i)
{
	const double v = json_number_value(json_array_get(list, i));

	return FRAG_MAX(FRAG_MIN(v, NUMBER_MOST), -NUMBER_MOST);
}

/* How many moments; 0: it is no timeline. raw: a row has one change, else all sizes. */
static size_t moments(const json_t *root, bool *raw)
{
	const json_t *sizes = json_array_get(root, 1), *row;
	const size_t times = json_array_size(json_array_get(root, 0));
	size_t i;

	*raw = !json_is_array(json_array_get(sizes, 0));
	if (!*raw)
		return json_array_size(sizes) == times ? times : 0;
	json_array_foreach(root, i, row) if (json_array_size(row) != 4) return 0;
	return json_array_size(root);
}

/* The sizes at moment i from those before it; the time, in seconds. */
static double sizes_at(const json_t *root, bool raw, size_t i, double sizes[CATEGORIES])
{
	const json_t *row = json_array_get(raw ? root : json_array_get(root, 1), i);
	const double kind = number(row, 3);

	if (raw) {
		sizes[kind >= 0 && kind < CATEGORIES ? (size_t)kind : CATEGORIES - 1] +=
			number(row, 2);
		return number(row, 0) / 1e9;
	}
	for (size_t k = 0; k < CATEGORIES; k++)
		sizes[k] = number(row, k + 1);
	return number(json_array_get(root, 0), i) / 1e6;
}

/* A profile covers a few steps at most: it tells a peak, but no leak. */
static void tell(const json_t *root, bool raw, size_t n, const char *path,
		 struct frag_findings *out)
{
	double sizes[CATEGORIES] = { 0 }, peak[CATEGORIES] = { 0 };
	double begin = -1, most = 0, when = 0, total = 0;
	const char *slash = strrchr(path, '/'), *between = ":";
	struct frag_finding *f =
		frag_findings_add(out, FRAG_FOUND_UNDECIDED, slash ? slash + 1 : path);

	for (size_t i = 0; i < n; i++) {
		double time = sizes_at(root, raw, i, sizes);

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
	SAY("at most %s is live, %.3f s after the beginning", FRAG_BYTES((uint64_t)most), when);
	for (size_t k = 0; k < CATEGORIES; k++)
		if (peak[k] >= 1) {
			SAY("%s %s %s", between, categories[k],
			    FRAG_BYTES((uint64_t)FRAG_MIN(peak[k], NUMBER_MOST)));
			between = ",";
		}
	SAY("; at the end %s. What is reserved for it, and at which lines it was requested, a "
	    "recording tells",
	    FRAG_BYTES((uint64_t)FRAG_MIN(FRAG_MAX(total, 0), NUMBER_MOST)));
	frag_finding_number(f, "most_bytes", most);
	NOTE("PyTorch's memory timeline, of a profile");
}

int frag_diagnose_timeline(const char *path, struct frag_findings *out, struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	const unsigned char *bytes;
	json_auto_t *root = NULL;
	json_error_t wrong = { 0 };
	size_t n;
	bool raw;

	FRAG_TRY(frag_input_open(path, &in, err));
	FRAG_TRY(frag_input_peek(in, 2, &bytes, &n, err));
	if (n < 2 || memcmp(bytes, "[[", 2) != 0)
		return 0;
	root = json_load_callback(read_some, in, JSON_DECODE_INT_AS_REAL, &wrong);
	n = moments(root, &raw);
	if (!n)
		return FRAG_INPUT(err, "'%.200s': offset %d: not a memory timeline", path,
				  wrong.position);
	tell(root, raw, n, path, out);
	return 1;
}
