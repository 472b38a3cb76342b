/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one command writes and another reads, changed between: a plan of steps, the results that
 * `diff` compares, the note of a recording made without a GPU. Refused with a message, or usable.
 */
#include <jansson.h>

#include "explain/diff/diff.h"
#include "planned/plan_text.h"
#include "recording/estimate.h"
#include "fuzz.h"

static void plan(const uint8_t *data, size_t size)
{
	struct frag_err err = { 0 };
	struct plan p = { 0 };
	char path[32];
	int fd = file_of(data, size, path);

	if (plan_read(path, &p, &err)) {
		must(err.code == FRAG_EINPUT && err.msg[0]);
	} else {
		for (uint32_t i = 0; i < p.entries_count; i++)
			must(p.entries[i].bytes <= p.reserve_bytes &&
			     p.entries[i].offset <= p.reserve_bytes - p.entries[i].bytes);
		for (uint32_t i = 0; i < p.phases_count; i++)
			must(p.phases[i].first + (uint64_t)p.phases[i].count <= p.entries_count);
		plan_release(&p);
	}
	close(fd);
}

static void results(const char *text)
{
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct frag_side a = { 0 }, b = { 0 };
	const struct frag_comparison *c;
	struct frag_answer answer = { 0 };
	struct frag_err err = { 0 };

	if (!root)
		return;
	if (frag_side_of_json(root, "fuzz", &answer, &a, &err) ||
	    frag_side_of_json(root, "fuzz", &answer, &b, &err))
		must(err.msg[0] != '\0');
	else
		must(!frag_diff(&a, &b, 10, &answer, &c, &err));
	frag_answer_release(&answer);
	json_decref(root);
}

static void note(char *text)
{
	struct frag_trace t = { .estimate = text, .name = text };
	FRAG_AUTO(frag_answer_release) struct frag_answer answer = { 0 };
	const struct frag_estimate *e = frag_estimate_read(&answer, &t);

	if (e) {
		frag_estimate_text(&answer, e);
		must(frag_estimate_again(&answer, e) && !answer.failed);
		must(frag_estimate_places(e, "computed") <= e->places.count);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FRAG_AUTO_FREE char *text = NULL;

	if (size > LENGTH_MAX)
		return 0;
	text = text_of(data, size);
	plan(data, size);
	results(text);
	note(text);
	return 0;
}
