/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From logs to traces, see log.h. While entries arrive, an event holds the number of its allocation
 * instead of a slot, and streams are numbered as they appear: slots can be assigned only when the
 * blocks live before the first line are known.
 */
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/addr_map.h"
#include "lib/grow.h"
#include "trace/build/build.h"
#include "trace/whole.h"

#define TIME_MAX ((1ull << 40) - 1)
#define UNIX_FROM_US 978307200000000ull /* 2001 */
#define NO_SLOT UINT32_MAX

struct live {
	uint64_t bytes;
	uint16_t stream, pool;
	bool let_go; /* its free was requested, another stream still uses it */
	bool early;  /* it is from before the log */
};

/* Numbers for handles, in the order they turn up. */
struct names {
	uint64_t *list; /* [0] = 0 */
	size_t count, cap;
	struct frag_addr_map number_of;
};

struct frag_log_dev {
	uint32_t ordinal;
	struct frag_event *events;
	size_t count, cap;
	struct live *allocs; /* by number */
	size_t allocs_count, allocs_cap;
	struct frag_addr_map live;  /* id -> number */
	struct frag_addr_map empty; /* id -> requests of 0 bytes that are not freed, less one */
	struct frag_addr_map freed; /* ids of blocks that were freed */
	size_t early_count;
	uint64_t unknown_frees;
	struct names streams, pools;
};

/* ---- entries ----------------------------------------------------------------------- */

static int fail_entry(const struct frag_log *log, const struct frag_log_entry *e, const char *what,
		      struct frag_err *err)
{
	return frag_log_fail(err, log->place, e->line, "%s (id 0x%llx)", what,
			     (unsigned long long)e->id);
}

static int device_of(struct frag_log *log, const struct frag_log_entry *e,
		     struct frag_log_dev **out, struct frag_err *err)
{
	for (size_t i = 0; i < log->devs_count; i++) {
		*out = &log->devs[i];
		if ((*out)->ordinal == e->device)
			return 0;
	}
	if (log->devs_count == FRAG_LOG_DEVICES_MAX)
		return fail_entry(log, e, "more than 64 devices", err);
	FRAG_TRY(FRAG_GROW(log->devs, log->devs_count, log->devs_cap, "devices", err));
	*out = &log->devs[log->devs_count++];
	**out = (struct frag_log_dev){ .ordinal = e->device };
	return 0;
}

static int number_of(struct frag_log *log, struct names *n, const struct frag_log_entry *e,
		     uint64_t handle, uint16_t *out, struct frag_err *err)
{
	const struct frag_addr_cell *cell;

	*out = 0;
	if (!n->count) {
		FRAG_TRY(FRAG_GROW(n->list, n->count, n->cap, "streams", err));
		n->list[n->count++] = 0;
	}
	if (!handle || handle == FRAG_LOG_UNKNOWN)
		return 0;
	cell = frag_addr_map_find(&n->number_of, handle);
	if (cell) {
		*out = (uint16_t)frag_addr_number(cell);
		return 0;
	}
	if (n->count > UINT16_MAX)
		return fail_entry(log, e, "more than 65535 streams or pools", err);
	FRAG_TRY(FRAG_GROW(n->list, n->count, n->cap, "streams", err));
	FRAG_CHECK_ALLOC(!frag_addr_map_number(&n->number_of, handle, n->count), "streams", err);
	*out = (uint16_t)n->count;
	n->list[n->count++] = handle;
	return 0;
}

static uint64_t moment(struct frag_log *log, uint64_t time_us)
{
	if (time_us != FRAG_LOG_UNKNOWN) {
		log->times_seen = true;
		if (log->first_us == FRAG_LOG_UNKNOWN)
			log->first_us = log->last_us = time_us;
		log->last_us = FRAG_MAX(log->last_us, time_us);
	}
	return log->first_us == FRAG_LOG_UNKNOWN ? 0
						 : FRAG_MIN(log->last_us - log->first_us, TIME_MAX);
}

static int put(struct frag_log_dev *dev, struct frag_event ev, struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(dev->events, dev->count, dev->cap, "events", err));
	dev->events[dev->count++] = ev;
	return 0;
}

static int new_number(struct frag_log_dev *dev, struct frag_event ev, uint32_t *out,
		      struct frag_err *err)
{
	if (dev->allocs_count >= NO_SLOT)
		return FRAG_INPUT(err, "too many allocations");
	FRAG_TRY(FRAG_GROW(dev->allocs, dev->allocs_count, dev->allocs_cap, "allocations", err));
	*out = (uint32_t)dev->allocs_count;
	dev->allocs[dev->allocs_count++] =
		(struct live){ .bytes = ev.bytes, .stream = ev.stream, .pool = (uint16_t)ev.pool };
	return 0;
}

/* Counts a request of 0 bytes; `by` -1 counts its free, if there was such a request. */
static bool count_empty(struct frag_log_dev *dev, uint64_t id, int by, struct frag_err *err)
{
	struct frag_addr_cell *cell = frag_addr_map_find(&dev->empty, id);

	if (by > 0 && !cell && frag_addr_map_number(&dev->empty, id, 0))
		return !frag_fail_nomem(err, "live blocks");
	if (!cell)
		return by > 0;
	if (by < 0 && !frag_addr_number(cell))
		frag_addr_map_remove(&dev->empty, cell);
	else
		cell->value += (uint64_t)by;
	return true;
}

static int add_alloc(struct frag_log *log, struct frag_log_dev *dev, const struct frag_log_entry *e,
		     struct frag_event ev, struct frag_err *err)
{
	uint32_t number = 0;

	if (!e->bytes)
		return count_empty(dev, e->id, 1, err) ? 0 : FRAG_ENOMEM;
	if (!e->id && !log->numbered)
		return fail_entry(log, e, "allocation without an address", err);
	if (frag_addr_map_find(&dev->live, e->id))
		return fail_entry(log, e, "allocated again without a free", err);
	FRAG_TRY(new_number(dev, ev, &number, err));
	FRAG_CHECK_ALLOC(!frag_addr_map_number(&dev->live, e->id, number), "live blocks", err);
	ev.slot = number;
	return put(dev, ev, err);
}

/* Of something from before the log. */
static int add_early_free(struct frag_log_dev *dev, const struct frag_log_entry *e,
			  struct frag_event ev, struct frag_err *err)
{
	uint32_t number = 0;

	if (e->bytes == FRAG_LOG_UNKNOWN) {
		dev->unknown_frees++;
		return 0;
	}
	if (!e->bytes)
		return 0;
	FRAG_TRY(new_number(dev, ev, &number, err));
	ev.slot = number;
	dev->allocs[number].early = true;
	dev->early_count++;
	return put(dev, ev, err);
}

static int add_free(struct frag_log *log, struct frag_log_dev *dev, const struct frag_log_entry *e,
		    struct frag_event ev, struct frag_err *err)
{
	struct frag_addr_cell *cell;
	struct live *block;

	cell = frag_addr_map_find(&dev->live, e->id);
	if ((!e->bytes || (!cell && e->bytes == FRAG_LOG_UNKNOWN)) &&
	    count_empty(dev, e->id, -1, err))
		return 0;
	if (!e->id && !cell)
		return 0; /* the null pointer */
	if (!cell && ev.kind != FRAG_EV_FREE)
		return 0;		   /* begun before the log: its size is not known */
	if (!strcmp(log->place, "line")) { /* profilers lose events */
		if (!cell && frag_addr_map_find(&dev->freed, e->id))
			return fail_entry(log, e, "freed twice", err);
		FRAG_CHECK_ALLOC(frag_addr_map_find(&dev->freed, e->id) ||
					 !frag_addr_map_number(&dev->freed, e->id, 0),
				 "freed blocks", err);
	}
	if (!cell)
		return add_early_free(dev, e, ev, err);
	ev.slot = frag_addr_number(cell);
	block = &dev->allocs[ev.slot];
	if (block->let_go != (ev.kind == FRAG_EV_FREE_COMPLETED))
		return fail_entry(log, e, "freed twice, or completed without a request", err);
	if (ev.kind == FRAG_EV_FREE_REQUESTED)
		block->let_go = true;
	else
		frag_addr_map_remove(&dev->live, cell);
	/* an event names the stream of the block */
	ev.bytes = block->bytes;
	ev.stream = block->stream;
	ev.pool = block->pool;
	return put(dev, ev, err);
}

int frag_log_add(struct frag_log *log, const struct frag_log_entry *e, struct frag_err *err)
{
	static const uint8_t kinds[] = { [FRAG_LOG_ALLOC] = FRAG_EV_ALLOC,
					 [FRAG_LOG_FREE] = FRAG_EV_FREE,
					 [FRAG_LOG_REFUSED] = FRAG_EV_REFUSED,
					 [FRAG_LOG_TRIM] = FRAG_EV_TRIM,
					 [FRAG_LOG_FREE_REQUESTED] = FRAG_EV_FREE_REQUESTED,
					 [FRAG_LOG_FREE_COMPLETED] = FRAG_EV_FREE_COMPLETED };
	bool request = e->action == FRAG_LOG_ALLOC || e->action == FRAG_LOG_REFUSED;
	struct frag_event ev = { 0 };
	struct frag_log_dev *dev = NULL;
	uint16_t stream, pool;

	if (log->device >= 0 && log->device != e->device)
		return 0;
	if (request && e->bytes == FRAG_LOG_UNKNOWN)
		return fail_entry(log, e, "request without a size", err);
	if (e->bytes != FRAG_LOG_UNKNOWN && e->bytes > FRAG_MAX_REQUEST)
		return fail_entry(log, e, "size of 256 TiB or more", err);
	FRAG_TRY(device_of(log, e, &dev, err));
	log->streams_seen |= e->stream != FRAG_LOG_UNKNOWN;
	FRAG_TRY(number_of(log, &dev->streams, e, e->stream, &stream, err));
	FRAG_TRY(number_of(log, &dev->pools, e, e->pool, &pool, err));
	ev.stream = stream;
	ev.pool = pool;
	ev.time_us = moment(log, e->time_us);
	ev.bytes = e->bytes == FRAG_LOG_UNKNOWN ? 0 : e->bytes;
	ev.kind = kinds[e->action];
	switch (e->action) {
	case FRAG_LOG_ALLOC:
		ev.stack = e->stack & 0xffffffu;
		return add_alloc(log, dev, e, ev, err);
	case FRAG_LOG_REFUSED:
		return e->bytes ? put(dev, ev, err) : 0;
	case FRAG_LOG_TRIM:
		ev.bytes = 0;
		ev.stream = 0;
		return put(dev, ev, err);
	default:
		return add_free(log, dev, e, ev, err);
	}
}

FRAG_COMPARE(by_time, struct frag_log_entry, FRAG_ORDER(x->time_us, y->time_us),
	     FRAG_ORDER(x->line, y->line))

int frag_log_later(struct frag_log *log, const struct frag_log_entry *e, struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(log->later, log->later_count, log->later_cap, "entries", err));
	log->later[log->later_count++] = *e;
	return 0;
}

int frag_log_add_sorted(struct frag_log *log, uint64_t unit, uint64_t base_us, struct frag_err *err)
{
	if (log->later_count)
		qsort(log->later, log->later_count, sizeof(*log->later), by_time);
	for (size_t i = 0; i < log->later_count; i++) {
		log->later[i].time_us = log->later[i].time_us / unit + base_us;
		FRAG_TRY(frag_log_add(log, &log->later[i], err));
	}
	return 0;
}

/* ---- the trace ---------------------------------------------------------------------- */

/* Streams ascending by handle; *renamed: from the order they came in. */
static int sort_streams(struct frag_log_dev *dev, struct frag_trace_dev *out, uint16_t **renamed,
			struct frag_err *err)
{
	size_t n = dev->streams.count;

	*renamed = frag_host_calloc(n, sizeof(**renamed));
	out->streams = frag_host_calloc(n, sizeof(*out->streams));
	out->pools = frag_host_calloc(dev->pools.count, sizeof(*out->pools));
	FRAG_CHECK_ALLOC(*renamed && out->streams && out->pools, "streams", err);
	memcpy(out->streams, dev->streams.list, n * sizeof(*out->streams));
	out->streams_count = (uint32_t)n;
	frag_sort_streams(out, dev->streams.list, n, *renamed);
	for (size_t i = 0; i < dev->pools.count; i++)
		out->pools[i].a = dev->pools.list[i];
	out->pools_count = (uint32_t)dev->pools.count;
	return 0;
}

/* slots: by number of the allocation; free_slots: scratch of as many. */
static void fill_events(const struct frag_log_dev *dev, const uint16_t *renamed, uint32_t *slots,
			uint32_t *free_slots, struct frag_trace_dev *out)
{
	size_t free_count = 0, n = 0;

	for (size_t i = 0; i < dev->allocs_count; i++) {
		if (!dev->allocs[i].early)
			continue;
		slots[i] = out->slots_count;
		out->events[n++] = (struct frag_event){
			.bytes = dev->allocs[i].bytes,
			.slot = out->slots_count++,
			.stream = renamed[dev->allocs[i].stream],
			.kind = FRAG_EV_ALLOC,
			.flags = FRAG_EVF_INITIAL,
		};
	}
	for (size_t i = 0; i < dev->count; i++) {
		struct frag_event ev = dev->events[i];
		uint32_t number = ev.slot;

		ev.stream = renamed[ev.stream];
		if (ev.kind == FRAG_EV_ALLOC)
			ev.slot = slots[number] =
				free_count ? free_slots[--free_count] : out->slots_count++;
		else if (ev.kind == FRAG_EV_FREE || ev.kind == FRAG_EV_FREE_COMPLETED)
			free_slots[free_count++] = ev.slot = slots[number];
		else if (ev.kind == FRAG_EV_FREE_REQUESTED)
			ev.slot = slots[number];
		out->events[n++] = ev;
	}
	out->events_count = n;
}

static int finish_dev(struct frag_log_dev *dev, struct frag_trace_dev *out, struct frag_err *err)
{
	FRAG_AUTO_FREE uint32_t *slots =
		frag_host_calloc(2 * dev->allocs_count + 1, sizeof(*slots));
	FRAG_AUTO_FREE uint16_t *renamed = NULL;
	int rc;

	out->ordinal = dev->ordinal;
	out->recorded_count = dev->count;
	out->uncertain_blocks = dev->unknown_frees;
	rc = sort_streams(dev, out, &renamed, err);
	out->events = frag_host_calloc(dev->count + dev->early_count + 1, sizeof(*out->events));
	if (!rc && (!slots || !out->events))
		rc = frag_fail_nomem(err, "events");
	if (!rc)
		fill_events(dev, renamed, slots, slots + dev->allocs_count, out);
	return rc;
}

FRAG_COMPARE(by_ordinal, struct frag_log_dev, FRAG_ORDER(x->ordinal, y->ordinal))

/* "csv without streams, times": the format, and what the log lacks. */
static char *describe(const struct frag_log *log, const char *format)
{
	char *text = NULL;

	if (log->complete)
		return frag_host_strdup(format);
	return asprintf(&text, "%.80s" FRAG_LOG_LACKS "%s%sbeginning%s", format,
			log->streams_seen ? "" : "streams, ", log->times_seen ? "" : "times, ",
			log->lines.cut ? ", end" : "") < 0
		       ? NULL
		       : text;
}

const char *frag_log_lacks(const struct frag_trace *t)
{
	const char *lacks = t->format ? strstr(t->format, FRAG_LOG_LACKS) : NULL;

	return lacks ? lacks + strlen(FRAG_LOG_LACKS) : NULL;
}

static int fill_trace(struct frag_log *log, const char *format, struct frag_trace *t,
		      struct frag_err *err)
{
	t->settings.max_split_bytes = t->settings.limit_bytes = UINT64_MAX;
	if (log->times_seen && log->first_us >= UNIX_FROM_US)
		t->start_us = log->first_us;
	t->settings.conf = frag_host_strdup("");
	t->format = describe(log, format);
	t->devs = frag_host_calloc(log->devs_count, sizeof(*t->devs));
	FRAG_CHECK_ALLOC(t->settings.conf && t->format && t->devs, "trace", err);
	qsort(log->devs, log->devs_count, sizeof(*log->devs), by_ordinal);
	for (size_t i = 0; i < log->devs_count; i++) {
		t->devs_count++;
		FRAG_TRY(finish_dev(&log->devs[i], &t->devs[i], err));
	}
	return frag_log_stacks_finish(log->stacks, t, err);
}

static int finish(struct frag_log *log, const char *format, struct frag_trace **out,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	size_t events = 0;

	for (size_t i = 0; i < log->devs_count; i++)
		events += log->devs[i].count;
	if (!events)
		return FRAG_INPUT(err, "the log (%s) has no allocation on a device", format);
	FRAG_TRY_CALLOC(trace, 1, "trace", err);
	FRAG_TRY(fill_trace(log, format, trace, err));
	*out = FRAG_GIVE(trace);
	return 0;
}

static void release(struct frag_log *log)
{
	for (size_t i = 0; i < log->devs_count; i++) {
		struct frag_log_dev *dev = &log->devs[i];

		FRAG_FREE(dev->events, dev->allocs, dev->streams.list, dev->pools.list);
		frag_addr_map_release(&dev->live);
		frag_addr_map_release(&dev->empty);
		frag_addr_map_release(&dev->freed);
		frag_addr_map_release(&dev->streams.number_of);
		frag_addr_map_release(&dev->pools.number_of);
	}
	FRAG_FREE(log->devs, log->later);
	frag_log_stacks_destroy(log->stacks);
	frag_log_lines_release(&log->lines);
}

int frag_log_read(struct frag_log *log, const char *format, const char *options,
		  int (*fill)(struct frag_log *log, struct frag_err *err), struct frag_trace **out,
		  struct frag_err *err)
{
	struct frag_trace_options o;
	int rc;

	FRAG_TRY(frag_trace_options_parse(options, &o, err));
	log->place = log->place ? log->place : "line";
	log->first_us = log->last_us = FRAG_LOG_UNKNOWN;
	log->device = o.device;
	rc = fill(log, err) ?: finish(log, log->format ?: format, out, err);
	release(log);
	return rc;
}
