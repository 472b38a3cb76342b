/* SPDX-License-Identifier: Apache-2.0 */
/* Live bytes by whole stack: folded for flamegraph.pl, JSON for speedscope.app; see stacks.h. */
#include "live_stacks.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "answer/textbuf.h"
#include "base/outfile.h"

uint64_t *frag_live_stacks_bytes(const struct frag_live_stacks *s)
{
	size_t n = s->sites->stacks_count;
	uint64_t *bytes = frag_host_calloc(n, sizeof(*bytes));

	for (size_t i = 0; bytes && i < s->view->count; i++) {
		const struct frag_heap_block *b = &s->view->list[i];

		if (!b->waiting)
			bytes[b->stack < n ? b->stack : 0] += b->granted;
	}
	return bytes;
}

/* ---- folded ----------------------------------------------------------------------------- */

/* A frame as flamegraph.pl wants it: ';' parts frames, the last blank the number. */
static void add_frame(const struct frag_trace *t, uint32_t frame, struct frag_text *out)
{
	char *name = frag_frame_name(t, frame);

	for (char *p = name; p && *p; p++)
		*p = *p == ';' ? ':' : *p;
	frag_text_add(out, name ? name : "?");
	frag_host_free(name);
}

int frag_live_stacks_put_folded(const struct frag_live_stacks *s, const char *path,
				struct frag_err *err)
{
	const struct frag_trace *t = s->sites->trace;
	FRAG_AUTO_FREE uint64_t *bytes = frag_live_stacks_bytes(s);
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	FRAG_CHECK_ALLOC(bytes, "stacks", err);
	for (uint32_t stack = 0; stack < s->sites->stacks_count; stack++) {
		size_t n;
		const uint32_t *frames = frag_stack_frames(t, stack, &n);

		if (!bytes[stack])
			continue;
		if (!n)
			frag_text_add(&out, "(no stack)");
		for (size_t i = n; i-- > 0;) {
			add_frame(t, frames[i], &out);
			frag_text_add(&out, i ? ";" : "");
		}
		frag_text_addf(&out, " %" PRIu64 "\n", bytes[stack]);
	}
	return frag_text_put(&out, path, err);
}

/* ---- speedscope ------------------------------------------------------------------------- */

static json_t *frames_of(const struct frag_trace *t)
{
	json_t *frames = json_array();

	for (uint32_t i = 0; i < t->stacks.frames_count; i++) {
		char *name = frag_frame_name(t, i);

		json_array_append_new(frames, json_pack("{ss}", "name", name ? name : "?"));
		frag_host_free(name);
	}
	json_array_append_new(frames, json_pack("{ss}", "name", "(no stack)"));
	return frames;
}

/* The numbers of a stack's frames, outermost first. */
static json_t *sample_of(const struct frag_trace *t, uint32_t stack)
{
	size_t n;
	const uint32_t *frames = frag_stack_frames(t, stack, &n);
	json_t *sample = json_array();

	for (size_t i = n; i-- > 0;)
		json_array_append_new(sample, json_integer(frames[i]));
	if (!n)
		json_array_append_new(sample, json_integer((json_int_t)t->stacks.frames_count));
	return sample;
}

static json_t *document_of(const struct frag_live_stacks *s, const uint64_t *bytes)
{
	const struct frag_trace *t = s->sites->trace;
	json_t *samples = json_array(), *weights = json_array(), *profile;
	uint64_t total = 0;

	for (uint32_t stack = 0; stack < s->sites->stacks_count; stack++) {
		if (!bytes[stack])
			continue;
		json_array_append_new(samples, sample_of(t, stack));
		json_array_append_new(weights, json_integer((json_int_t)bytes[stack]));
		total += bytes[stack];
	}
	profile = json_pack("{ss ss ss si sI so so}", "type", "sampled", "name", s->name, "unit",
			    "bytes", "startValue", 0, "endValue", (json_int_t)total, "samples",
			    samples, "weights", weights);
	return json_pack("{ss ss ss s{so} s[o]}", "$schema",
			 "https://www.speedscope.app/file-format-schema.json", "exporter", "cufrag",
			 "name", s->name, "shared", "frames", frames_of(t), "profiles", profile);
}

int frag_live_stacks_put_speedscope(const struct frag_live_stacks *s, const char *path,
				    struct frag_err *err)
{
	FRAG_AUTO_FREE uint64_t *bytes = frag_live_stacks_bytes(s);
	json_t *root = bytes ? document_of(s, bytes) : NULL;
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	int rc = text ? frag_outfile_put(path, text, strlen(text), err)
		      : frag_fail_nomem(err, "JSON document");

	json_decref(root);
	free(text);
	return rc;
}
