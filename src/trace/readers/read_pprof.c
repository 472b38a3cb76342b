/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory at one moment, as a profile of pprof: JAX's
 * jax.profiler.save_device_memory_profile, and explain --stacks FILE.pb. The message
 * perftools.profiles.Profile of github.com/google/pprof/proto/profile.proto is read field by field.
 * It has no addresses and no history: each sample becomes a block, see frag_is_state.
 */
#include <ctype.h>
#include <string.h>

#include "lib/addr_map.h"
#include "lib/grow.h"
#include "trace/log/log.h"
#include "trace/strings.h"
#include "trace/whole.h"

#define FILE_MOST (256u << 20)
#define DEPTH_MOST 1024u
#define FIELDS_MOST (1u << 28)
#define NAME_MOST 4096u

enum part { TYPES = 1, SAMPLES, LOCATIONS = 4, FUNCTIONS, TEXTS, PARTS };

struct span {
	const unsigned char *at, *end;
};
struct field {
	uint64_t number;
	struct span bytes; /* of a message, a text, or numbers one after the other */
};

struct reader {
	struct frag_log log; /* first: see fill */
	unsigned char *bytes;
	size_t len, cap;
	struct span *parts[PARTS];
	size_t count[PARTS], room[PARTS];
	struct frag_addr_map ids[PARTS]; /* of locations, functions, texts */
	uint64_t fields;		 /* read so far */
	const unsigned char *bad;	 /* malformed from here on; NULL: not so far */
	struct frag_strings *strings;
	struct frag_stack_table *stacks;
};

/* ---- the message ------------------------------------------------------------------------ */

static bool bad(struct reader *r, const unsigned char *at)
{
	r->bad = r->bad ? r->bad : at;
	return false;
}

/* False at the end. */
static bool varint(struct reader *r, struct span *s, uint64_t *out)
{
	const unsigned char *from = s->at;

	*out = 0;
	for (unsigned shift = 0; s->at < s->end && shift < 64; shift += 7) {
		*out |= (uint64_t)(*s->at & 0x7f) << shift;
		if (*s->at++ < 0x80)
			return true;
	}
	return from < s->end && bad(r, from);
}

/* The next field; false at the end. */
static bool next(struct reader *r, struct span *s, struct field *f)
{
	const unsigned char *from = s->at;
	uint64_t key, n;

	if (++r->fields > FIELDS_MOST) /* many may name one part */
		return bad(r, from);
	if (r->bad || !varint(r, s, &key))
		return false;
	f->number = key >> 3;
	key &= 7; /* 0: a number; 2: so many bytes; 1, 5: 8, 4 bytes */
	f->bytes.at = s->at;
	n = key == 1 ? 8 : key == 5 ? 4 : UINT64_MAX;
	if ((key == 0 || key == 2) && !varint(r, s, &n))
		return bad(r, from);
	if (key)
		f->bytes.at = s->at;
	else
		n = 0;
	if (n > (uint64_t)(s->end - s->at))
		return bad(r, from);
	f->bytes.end = s->at += n;
	return true;
}

/* The number in a field of a message; 0: none. */
static uint64_t number_in(struct reader *r, struct span s, unsigned field)
{
	struct field f;
	uint64_t n;

	while (next(r, &s, &f))
		if (f.number == field && varint(r, &f.bytes, &n))
			return n;
	return 0;
}

/* What a number stands for; it is somewhere in the file. */
static struct span part(struct reader *r, enum part p, uint64_t id)
{
	const struct frag_addr_cell *cell = frag_addr_map_find(&r->ids[p], id);
	struct span s = { 0 };

	if (cell) {
		s = r->parts[p][frag_addr_number(cell)];
		if (p == TEXTS && s.end - s.at > NAME_MOST)
			s.end = s.at + NAME_MOST;
		return s;
	}
	if (id)
		bad(r, r->bytes + r->len);
	return s;
}

static bool has_text(struct reader *r, uint64_t i, const char *what)
{
	struct span s = part(r, TEXTS, i);

	return s.at && memmem(s.at, (size_t)(s.end - s.at), what, strlen(what));
}

/* ---- samples ------------------------------------------------------------------------------ */

static int intern(struct reader *r, uint64_t text, uint32_t *out, struct frag_err *err)
{
	struct span s = part(r, TEXTS, text);

	return frag_strings_intern(r->strings, s.at ? (const char *)s.at : "",
				   (size_t)(s.end - s.at), out, err);
}

/* A location has a line for each function that was inlined there, the innermost first. */
static int add_frames(struct reader *r, uint64_t location, uint32_t *frames, size_t *n,
		      struct frag_err *err)
{
	struct span s = part(r, LOCATIONS, location), function;
	struct field f;

	while (*n < DEPTH_MOST && next(r, &s, &f)) {
		struct frag_frame frame = { 0 };

		if (f.number != 4)
			continue;
		frame.line = (uint32_t)FRAG_MIN(number_in(r, f.bytes, 2), INT32_MAX);
		function = part(r, FUNCTIONS, number_in(r, f.bytes, 1));
		FRAG_TRY(intern(r, number_in(r, function, 2), &frame.name, err));
		FRAG_TRY(intern(r, number_in(r, function, 4), &frame.file, err));
		FRAG_TRY(frag_stack_table_frame(r->stacks, frame, &frames[(*n)++], err));
	}
	return 0;
}

/* space: which of its values are bytes. */
static int read_sample(struct reader *r, size_t i, size_t space, struct frag_err *err)
{
	struct frag_log_entry e = { .id = i + 1, .stream = FRAG_LOG_UNKNOWN };
	struct span s = r->parts[SAMPLES][i], device;
	uint32_t frames[DEPTH_MOST];
	size_t n = 0, k = 0;
	struct field f;
	uint64_t v;

	e.line = (uint64_t)(s.at - r->bytes);
	e.pool = e.time_us = FRAG_LOG_UNKNOWN;
	while (next(r, &s, &f)) {
		while (f.number == 1 && varint(r, &f.bytes, &v))
			FRAG_TRY(add_frames(r, v, frames, &n, err));
		for (; f.number == 2 && varint(r, &f.bytes, &v); k++)
			e.bytes = k == space ? v : e.bytes;
		if (f.number != 3 || !has_text(r, number_in(r, f.bytes, 1), "device"))
			continue;
		device = part(r, TEXTS, number_in(r, f.bytes, 2)); /* "cuda:0" */
		while (device.at < device.end && !isdigit(*device.at))
			device.at++;
		e.device = device.at < device.end ? *device.at - '0' : 0;
	}
	FRAG_TRY(frag_stack_table_stack(r->stacks, frames, n, &e.stack, err));
	return frag_log_add(&r->log, &e, err);
}

static int read_parts(struct reader *r, struct frag_err *err)
{
	struct span all = { r->bytes, r->bytes + r->len };
	size_t space = 0;
	struct field f;

	while (next(r, &all, &f)) {
		uint64_t p = f.number, id;

		if (p >= PARTS)
			continue;
		FRAG_TRY(FRAG_GROW(r->parts[p], r->count[p], r->room[p], "profile", err));
		r->parts[p][r->count[p]++] = f.bytes;
		id = p == TEXTS ? r->count[p] - 1 : p >= LOCATIONS ? number_in(r, f.bytes, 1) : 0;
		if (p >= LOCATIONS && !frag_addr_map_find(&r->ids[p], id))
			FRAG_CHECK_ALLOC(!frag_addr_map_number(&r->ids[p], id, r->count[p] - 1),
					 "profile", err);
	}
	while (space + 1 < r->count[TYPES] &&
	       !has_text(r, number_in(r, r->parts[TYPES][space], 1), "space"))
		space++;
	for (size_t i = 0; i < r->count[SAMPLES]; i++)
		FRAG_TRY(read_sample(r, i, space, err));
	if (!r->bad)
		return 0;
	return frag_log_fail(err, "offset", (uint64_t)(r->bad - r->bytes),
			     "malformed or cut profile");
}

static int fill(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	int c;

	while ((c = frag_input_get(log->lines.in, err)) >= 0) {
		if (r->len == FILE_MOST)
			return FRAG_INPUT(err, "a profile of more than 256 MiB");
		FRAG_TRY(FRAG_GROW(r->bytes, r->len, r->cap, "profile", err));
		r->bytes[r->len++] = (unsigned char)c;
	}
	FRAG_TRY(c == FRAG_INPUT_EOF ? 0 : c);
	FRAG_TRY(frag_strings_create(&r->strings, err));
	FRAG_TRY(frag_stack_table_create(&r->stacks, err));
	return read_parts(r, err);
}

static int read_pprof(struct frag_input *in, const char *options, struct frag_trace **out,
		      struct frag_err *err)
{
	struct reader r = { .log = { .lines.in = in, .place = "offset" } };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	int rc = frag_log_read(&r.log, "pprof", options, fill, &trace, err);

	if (!rc) {
		trace->strings = FRAG_GIVE(r.strings);
		rc = frag_stack_table_take(r.stacks, &trace->stacks, err);
	}
	if (!rc)
		*out = FRAG_GIVE(trace);
	frag_strings_destroy(r.strings);
	frag_stack_table_destroy(r.stacks);
	for (unsigned p = 0; p < PARTS; p++) {
		frag_host_free(r.parts[p]);
		frag_addr_map_release(&r.ids[p]);
	}
	frag_host_free(r.bytes);
	return rc;
}

static int probe(const unsigned char *bytes, size_t len)
{
	struct reader r = { 0 };
	struct span s = { bytes, bytes + len };
	struct field f;

	/* it begins with a type of values, two numbers of texts */
	if (!len || bytes[0] != (TYPES << 3 | 2) || !next(&r, &s, &f))
		return 0;
	s = f.bytes;
	while (next(&r, &s, &f))
		if (f.number > 2 || f.bytes.end - f.bytes.at > 2)
			return 0;
	return r.bad ? 0 : 60;
}

const struct frag_reader_ops frag_reader_pprof = {
	.name = "pprof",
	.summary = "who holds memory at one moment: JAX's memory.prof "
		   "(jax.profiler.save_device_memory_profile), explain --stacks FILE.pb",
	.probe = probe,
	.read = read_pprof,
};
