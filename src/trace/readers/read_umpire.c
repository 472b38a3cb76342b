/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's replay log (LLNL/Umpire, UMPIRE_REPLAY or UMPIRE_EVENTS): one JSON object per line, in
 * the form of today (category, name, numeric_args, string_args) or the older one (kind "replay",
 * event, payload, result). Every allocator logs what it is asked, also a pool's upstream; what the
 * program asked are the events of those allocators that no other one stands on. Host allocators are
 * left out.
 */
#include <string.h>

#include <jansson.h>

#include "base/clean.h"
#include "lib/addr_map.h"
#include "lib/grow.h"
#include "trace/log/log.h"

#define NAME_MAX_BYTES 64u

struct allocator {
	char name[NAME_MAX_BYTES],
		base[NAME_MAX_BYTES]; /* base: a name or a reference, "" = a resource */
	uint64_t ref;
	uint64_t events;
	const char *format; /* by its type */
	bool below;	    /* another one with events stands on it */
	bool host;
};

struct entry {
	struct frag_log_entry e;
	uint32_t allocator;
};

struct reader {
	struct frag_log log; /* first: see read_lines */
	struct allocator *allocators;
	size_t allocators_count, allocators_cap;
	struct frag_addr_map by_ref;
	struct entry *entries;
	size_t entries_count, entries_cap;
};

static int allocator_of(struct reader *r, uint64_t ref, uint32_t *out, struct frag_err *err)
{
	const struct frag_addr_cell *cell = frag_addr_map_find(&r->by_ref, ref);

	if (cell) {
		*out = frag_addr_number(cell);
		return 0;
	}
	FRAG_TRY(FRAG_GROW(r->allocators, r->allocators_count, r->allocators_cap, "allocators",
			   err));
	FRAG_CHECK_ALLOC(!frag_addr_map_number(&r->by_ref, ref, r->allocators_count), "allocators",
			 err);
	*out = (uint32_t)r->allocators_count;
	r->allocators[r->allocators_count++] = (struct allocator){ .ref = ref };
	return 0;
}

/* ---- lines ---------------------------------------------------------------------------- */

/* What both forms of a line come down to. */
struct line {
	const char *name;
	const json_t *numbers, *texts, *tags, *result; /* result: of the older form */
	uint64_t time_ns;
	bool old;
};

static bool read_forms(const json_t *o, struct line *l)
{
	const char *kind = json_string_value(json_object_get(o, "kind"));
	const json_t *payload = json_object_get(o, "payload");

	*l = (struct line){ .old = kind && !strcmp(kind, "replay") };
	if (!frag_log_json_number(o, "timestamp", &l->time_ns))
		l->time_ns = FRAG_LOG_UNKNOWN;
	l->name = json_string_value(json_object_get(o, l->old ? "event" : "name"));
	l->numbers = l->old ? payload : json_object_get(o, "numeric_args");
	l->texts = l->old ? payload : json_object_get(o, "string_args");
	l->tags = l->old ? payload : json_object_get(o, "tags");
	l->result = json_object_get(o, "result");
	return l->name != NULL;
}

static void take_text(const json_t *o, const char *key, char *out)
{
	const char *text = json_string_value(json_object_get(o, key));

	if (text)
		snprintf(out, NAME_MAX_BYTES, "%s", text);
}

static int add(struct reader *r, const struct line *l, struct frag_log_entry e, uint64_t ref,
	       struct frag_err *err)
{
	uint32_t at;

	FRAG_TRY(allocator_of(r, ref, &at, err));
	r->allocators[at].events++;
	e.stream = FRAG_LOG_UNKNOWN;
	e.time_us = l->time_ns == FRAG_LOG_UNKNOWN ? l->time_ns : l->time_ns / 1000;
	FRAG_TRY(FRAG_GROW(r->entries, r->entries_count, r->entries_cap, "entries", err));
	r->entries[r->entries_count++] = (struct entry){ e, at };
	return 0;
}

static int read_call(struct reader *r, const struct line *l, uint64_t line, struct frag_err *err)
{
	bool allocates =
		frag_ends_with(l->name, "allocate") && !frag_ends_with(l->name, "deallocate");
	struct frag_log_entry e = { .action = allocates ? FRAG_LOG_ALLOC : FRAG_LOG_FREE,
				    .line = line,
				    .bytes = FRAG_LOG_UNKNOWN };
	const json_t *from = l->old && allocates ? l->result : l->texts;
	uint64_t ref;

	if (l->old && allocates && !l->result)
		return 0; /* the intent; the line with the result comes */
	if (!frag_log_json_number(l->texts, "allocator_ref", &ref) || ref == FRAG_LOG_UNKNOWN ||
	    !frag_log_json_number(from, l->old ? "memory_ptr" : "pointer", &e.id) ||
	    e.id == FRAG_LOG_UNKNOWN ||
	    (allocates && !frag_log_json_number(l->numbers, "size", &e.bytes)))
		return frag_log_fail(err, "line", line,
				     "'%.40s' without allocator_ref, pointer or size", l->name);
	return add(r, l, e, ref, err);
}

/* A pair of lines: size and current_ptr first, then new_ptr. */
static int read_reallocate(struct reader *r, const struct line *l, uint64_t line,
			   struct frag_err *err)
{
	struct frag_log_entry e = { .line = line, .bytes = FRAG_LOG_UNKNOWN };
	const json_t *result = l->old && l->result ? l->result : l->texts;
	uint64_t ref, to, from;

	if (!frag_log_json_number(l->texts, "allocator_ref", &ref) || ref == FRAG_LOG_UNKNOWN ||
	    !frag_log_json_number(l->numbers, "size", &e.bytes) ||
	    !frag_log_json_number(result, l->old ? "memory_ptr" : "new_ptr", &to) ||
	    !frag_log_json_number(l->texts, "current_ptr", &from))
		return frag_log_fail(err, "line", line, "malformed 'reallocate'");
	if (to == FRAG_LOG_UNKNOWN)
		return 0;
	if (from != FRAG_LOG_UNKNOWN && from) {
		FRAG_TRY(add(r, l,
			     (struct frag_log_entry){ .action = FRAG_LOG_FREE,
						      .id = from,
						      .line = line,
						      .bytes = FRAG_LOG_UNKNOWN },
			     ref, err));
	}
	if (e.bytes == FRAG_LOG_UNKNOWN || !e.bytes)
		return 0;
	e.action = FRAG_LOG_ALLOC;
	e.id = to;
	return add(r, l, e, ref, err);
}

static int read_make(struct reader *r, const struct line *l, struct frag_err *err)
{
	const json_t *ref_in = l->old && l->result ? l->result : l->texts;
	struct allocator *a;
	const char *type;
	uint64_t ref;
	uint32_t at;

	if (!frag_log_json_number(ref_in, "allocator_ref", &ref) || ref == FRAG_LOG_UNKNOWN)
		return 0; /* the intent of the older form, or another call */
	FRAG_TRY(allocator_of(r, ref, &at, err));
	a = &r->allocators[at];
	take_text(l->tags, "allocator_name", a->name);
	take_text(l->texts, "arg0", a->base);
	type = json_string_value(json_object_get(l->texts, "type"));
	a->format = !*a->base				  ? "umpire-resource"
		    : type && strstr(type, "DynamicPool") ? "umpire-dynamicpool"
							  : "umpire";
	return 0;
}

static int read_object(struct frag_log *log, const json_t *o, uint64_t line, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	struct line l;

	if (!read_forms(o, &l))
		return frag_log_fail(err, "line", line, "not a line of an Umpire replay log");
	if (!strcmp(l.name, "allocate") || !strcmp(l.name, "named_allocate") ||
	    !strcmp(l.name, "deallocate"))
		return read_call(r, &l, line, err);
	if (!strcmp(l.name, "reallocate"))
		return read_reallocate(r, &l, line, err);
	if (!strncmp(l.name, "make", 4))
		return read_make(r, &l, err);
	return 0; /* copy, move, release, coalesce, version, statistics */
}

/* ---- which allocators ----------------------------------------------------------------- */

static struct allocator *base_of(struct reader *r, const struct allocator *a)
{
	uint64_t ref;

	if (!a->base[0])
		return NULL;
	if (frag_log_number(a->base, &ref)) {
		const struct frag_addr_cell *cell = frag_addr_map_find(&r->by_ref, ref);

		return cell ? &r->allocators[frag_addr_number(cell)] : NULL;
	}
	for (size_t i = 0; i < r->allocators_count; i++)
		if (!strcmp(r->allocators[i].name, a->base))
			return &r->allocators[i];
	return NULL;
}

static bool host_name(const char *name)
{
	return !strncmp(name, "HOST", 4) || !strncmp(name, "PINNED", 6) ||
	       !strncmp(name, "FILE", 4);
}

/* Which allocator uses which, and which are host memory. Programs have a few dozen allocators. */
static int judge(struct reader *r, struct frag_err *err)
{
	if (r->allocators_count > 4096)
		return FRAG_INPUT(err, "%zu allocators exceed the limit of 4096",
				  r->allocators_count);
	for (size_t i = 0; i < r->allocators_count; i++) {
		struct allocator *a = &r->allocators[i], *at = a, *base;
		const char *name = a->name;

		for (int depth = 0; depth < 16 && at; depth++, at = base) {
			base = base_of(r, at);
			name = base ? base->name : at->base[0] ? at->base : at->name;
			if (base && base != a && a->events)
				base->below = true;
		}
		a->host = host_name(name);
	}
	return 0;
}

static int read_lines(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	uint64_t most = 0;

	FRAG_TRY(frag_log_json_lines(log, read_object, err) ?: judge(r, err));
	for (size_t i = 0; i < r->allocators_count; i++) {
		const struct allocator *a = &r->allocators[i];

		if (a->below || a->host || a->events <= most)
			continue;
		most = a->events;
		log->format = a->format; /* of that with most requests */
	}
	for (size_t i = 0; i < r->entries_count; i++) {
		const struct allocator *a = &r->allocators[r->entries[i].allocator];

		if (!a->below && !a->host)
			FRAG_TRY(frag_log_add(log, &r->entries[i].e, err));
	}
	return 0;
}

static int read_umpire(struct frag_input *in, const char *options, struct frag_trace **out,
		       struct frag_err *err)
{
	struct reader r = { .log.lines.in = in };
	int rc = frag_log_read(&r.log, "umpire", options, read_lines, out, err);

	FRAG_FREE(r.allocators, r.entries);
	frag_addr_map_release(&r.by_ref);
	return rc;
}

static int probe(const unsigned char *bytes, size_t len)
{
	json_auto_t *o = frag_log_first_object(bytes, len);
	const char *kind = json_string_value(json_object_get(o, "kind"));

	if (kind && !strcmp(kind, "replay"))
		return 80;
	return json_object_get(o, "category") && json_object_get(o, "numeric_args") ? 80 : 0;
}

const struct frag_reader_ops frag_reader_umpire = {
	.name = "umpire",
	.summary = "Umpire's replay log, what the program asked of its device allocators: times; "
		   "no streams; one device",
	.probe = probe,
	.read = read_umpire,
};
