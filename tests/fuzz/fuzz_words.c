/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one command writes and another reads, and somebody may have changed between: a plan of steps, the
 * results that `diff` compares, the note of a recording made without a GPU. Each is refused with a message,
 * or what it gives can be used.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "explain/diff/diff.h"
#include "planned/plan_text.h"
#include "recording/estimate.h"
#include "fuzz.h"

#define LENGTH_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plan(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", 0);
	struct frag_err err = { 0 };
	struct plan p = { 0 };
	char path[32];

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
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
	FRAG_AUTO_FREE char *text = size <= LENGTH_MAX ? malloc(size + 1) : NULL;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	plan(data, size);
	results(text);
	note(text);
	return 0;
}
