/* SPDX-License-Identifier: Apache-2.0 */
/* Live bytes by whole stack; see live_stacks.h. */
#include "live_stacks.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "answer/textbuf.h"
#include "base/outfile.h"
#include "lib/grow.h"

/* Bytes live by stack: [sites->stacks_count], the caller's (frag_host_free); NULL: no memory. */
static uint64_t *live_bytes(const struct frag_live_stacks *s)
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
	FRAG_AUTO_FREE uint64_t *bytes = live_bytes(s);
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	FRAG_CHECK_ALLOC(bytes, "stacks", err);
	for (uint32_t stack = 0; stack < s->sites->stacks_count; stack++) {
		size_t n;
		const uint32_t *frames = frag_sites_frames(s->sites, stack, &n);

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
static json_t *sample_of(const struct frag_sites *s, uint32_t stack)
{
	size_t n;
	const uint32_t *frames = frag_sites_frames(s, stack, &n);
	json_t *sample = json_array();

	for (size_t i = n; i-- > 0;)
		json_array_append_new(sample, json_integer(frames[i]));
	if (!n)
		json_array_append_new(sample,
				      json_integer((json_int_t)s->trace->stacks.frames_count));
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
		json_array_append_new(samples, sample_of(s->sites, stack));
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
	FRAG_AUTO_FREE uint64_t *bytes = live_bytes(s);
	json_t *root = bytes ? document_of(s, bytes) : NULL;
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	int rc = text ? frag_outfile_put(path, text, strlen(text), err)
		      : frag_fail_nomem(err, "JSON document");

	json_decref(root);
	free(text);
	return rc;
}

/* ---- pprof ------------------------------------------------------------------------------
 *
 * The message perftools.profiles.Profile of github.com/google/pprof/proto/profile.proto,
 * uncompressed. It needs only two kinds of protocol-buffer field, numbers and bytes, which are
 * written here; a generated writer would be ten times as long.
 *
 * Frame i of the trace is function and location i + 1; the one after the last stands for blocks
 * without a stack. Strings: the fixed ones, then name and file of each frame. */

struct message {
	unsigned char *bytes;
	size_t len, cap;
	bool failed; /* memory was short */
};

static void add_byte(struct message *m, unsigned char b)
{
	m->failed = m->failed || FRAG_GROW(m->bytes, m->len, m->cap, "profile", NULL);
	if (!m->failed)
		m->bytes[m->len++] = b;
}

/* Seven bits a byte, the lowest first; the high bit: more follow. */
static void add_varint(struct message *m, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		add_byte(m, (unsigned char)(v | 0x80));
	add_byte(m, (unsigned char)v);
}

static void add_number(struct message *m, unsigned field, uint64_t v)
{
	add_varint(m, field << 3);
	add_varint(m, v);
}

static void add_bytes(struct message *m, unsigned field, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	add_varint(m, field << 3 | 2);
	add_varint(m, len);
	for (size_t i = 0; i < len; i++)
		add_byte(m, p[i]);
}

/* A message as a field of another; it is empty again then. */
static void add_message(struct message *m, unsigned field, struct message *inner)
{
	m->failed |= inner->failed;
	add_bytes(m, field, inner->bytes, inner->len);
	inner->len = 0;
}

static void add_text(struct message *m, const char *text)
{
	add_bytes(m, 6, text, strlen(text));
}

enum fixed { EMPTY, SPACE, BYTES, NO_STACK, FIXED_COUNT };

static void add_function(struct message *m, struct message *inner, uint64_t id, uint64_t name,
			 uint64_t file, uint64_t line)
{
	struct message one = { 0 };

	add_number(inner, 1, id);
	add_number(inner, 2, name);
	add_number(inner, 4, file);
	add_message(m, 5, inner);
	add_number(&one, 1, id);
	add_number(&one, 2, line);
	add_number(inner, 1, id);
	add_message(inner, 4, &one);
	add_message(m, 4, inner);
	frag_host_free(one.bytes);
}

static void add_sample(struct message *m, struct message *inner, const struct frag_sites *s,
		       uint32_t stack, uint64_t bytes)
{
	size_t n;
	const uint32_t *frames = frag_sites_frames(s, stack, &n);

	for (size_t i = 0; i < n; i++)
		add_number(inner, 1, frames[i] + 1ull); /* innermost first */
	if (!n)
		add_number(inner, 1, s->trace->stacks.frames_count + 1);
	add_number(inner, 2, bytes);
	add_message(m, 2, inner);
}

/* Everything but the samples: texts, then a function and a location for each frame. */
static void add_frames(struct message *m, struct message *inner, const struct frag_trace *t)
{
	static const char *const fixed[FIXED_COUNT] = { "", "inuse_space", "bytes", "(no stack)" };

	for (size_t i = 0; i < FIXED_COUNT; i++)
		add_text(m, fixed[i]);
	for (size_t i = 0; i < t->stacks.frames_count; i++) {
		const struct frag_frame *f = &t->stacks.frames[i];

		add_text(m, frag_trace_string(t, f->name));
		add_text(m, frag_trace_string(t, f->file));
		add_function(m, inner, i + 1, FIXED_COUNT + 2 * i, FIXED_COUNT + 2 * i + 1,
			     f->line);
	}
	add_function(m, inner, t->stacks.frames_count + 1, NO_STACK, EMPTY, 0);
}

int frag_live_stacks_put_pprof(const struct frag_live_stacks *s, const char *path,
			       struct frag_err *err)
{
	const struct frag_trace *t = s->sites->trace;
	FRAG_AUTO_FREE uint64_t *bytes = live_bytes(s);
	struct message m = { 0 }, inner = { 0 };
	int rc;

	add_number(&inner, 1, SPACE);
	add_number(&inner, 2, BYTES);
	add_message(&m, 1, &inner);
	for (uint32_t stack = 0; bytes && stack < s->sites->stacks_count; stack++)
		if (bytes[stack])
			add_sample(&m, &inner, s->sites, stack, bytes[stack]);
	add_frames(&m, &inner, t);
	rc = bytes && !m.failed ? frag_outfile_put(path, (const char *)m.bytes, m.len, err)
				: frag_fail_nomem(err, "profile");
	FRAG_FREE(inner.bytes, m.bytes);
	return rc;
}
