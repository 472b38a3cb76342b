/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot in PyTorch's format, for its viewer and for cufrag. Of a recording it repeats the
 * evidence, so that it equals the recording; of a policy it tells what the replay did: its
 * segments, addresses and refusals, and the state at the end.
 */
#include "export.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "heap_list.h"
#include "lib/grow.h"
#include "pickle_write.h"
#include "replay/run.h"
#include "trace/strings.h"

struct block {
	frag_addr_t addr;
	uint64_t bytes, requested;
	uint8_t state;
};

struct segment {
	uint32_t ordinal;
	frag_addr_t addr;
	uint64_t bytes, stream;
	struct frag_pool_id pool;
	size_t first_block, blocks_count;
	bool small, expandable;
};

struct viz {
	const struct frag_export_job *job;
	const struct frag_trace_dev *td;
	struct frag_pickle_writer w;
	uint32_t *stack_ids;  /* [stacks] memo of the list of frames + 1 */
	uint32_t *string_ids; /* [strings_count] of a string: many frames may share one */
	uint32_t strings_count;
	struct frag_event *born; /* [slots] of this device */
	frag_addr_t *addrs;	 /* [slots] as recorded */
	bool maps;		 /* segments are mapped: expandable */
	struct segment *segments;
	struct block *blocks;
	size_t segments_count, segments_cap, blocks_count, blocks_cap;
};

/* ---- entries ---------------------------------------------------------------------------- */

static void set_string(struct viz *v, const char *key, uint32_t string)
{
	frag_pickle_put_text(&v->w, key);
	if (string >= v->strings_count) {
		frag_pickle_put_text(&v->w, "");
	} else if (v->string_ids[string]) {
		frag_pickle_put_again(&v->w, v->string_ids[string] - 1);
	} else {
		frag_pickle_put_text(&v->w, frag_trace_string(v->job->trace, string));
		v->string_ids[string] = frag_pickle_put_memo(&v->w) + 1;
	}
}

static void put_frames(struct viz *v, uint32_t stack)
{
	const struct frag_stacks *s = &v->job->trace->stacks;

	frag_pickle_put_text(&v->w, "frames");
	if (!stack || stack >= s->count) {
		frag_pickle_put_list(&v->w);
		frag_pickle_put_list_end(&v->w);
		return;
	}
	if (v->stack_ids[stack]) {
		frag_pickle_put_again(&v->w, v->stack_ids[stack] - 1);
		return;
	}
	frag_pickle_put_list(&v->w);
	for (uint64_t i = s->first[stack]; i < s->first[stack + 1]; i++) {
		const struct frag_frame *f = &s->frames[s->index[i]];

		frag_pickle_put_dict(&v->w);
		set_string(v, "filename", f->file);
		frag_pickle_set_uint(&v->w, "line", f->line);
		set_string(v, "name", f->name);
		frag_pickle_put_dict_end(&v->w);
	}
	frag_pickle_put_list_end(&v->w);
	v->stack_ids[stack] = frag_pickle_put_memo(&v->w) + 1;
}

static uint64_t stream_of(const struct viz *v, uint32_t stream)
{
	return stream < v->td->streams_count ? v->td->streams[stream] : 0;
}

static struct frag_pool_id pool_of(const struct viz *v, uint32_t pool)
{
	return pool < v->td->pools_count ? v->td->pools[pool] : (struct frag_pool_id){ 0, 0 };
}

static void put_entry(struct viz *v, const char *action, const char *where, frag_addr_t addr,
		      uint64_t bytes, uint32_t stream, uint64_t time_us, uint32_t pool,
		      uint32_t stack)
{
	struct frag_pool_id id = pool_of(v, pool);
	uint32_t in_list = v->w.in_list;

	frag_pickle_put_dict(&v->w);
	frag_pickle_set_text(&v->w, "action", action);
	frag_pickle_set_uint(&v->w, where, addr);
	frag_pickle_set_uint(&v->w, "size", bytes);
	frag_pickle_set_uint(&v->w, "stream", stream_of(v, stream));
	frag_pickle_set_uint(&v->w, "time_us", v->job->trace->start_us + time_us);
	/* not as recorded: the key tells the release, and the pools are found without it */
	if (v->td->pools_count > 1 && !v->job->as_recorded)
		frag_pickle_set_pair(&v->w, "pool_id", id.a, id.b);
	put_frames(v, stack);
	frag_pickle_put_dict_end(&v->w);
	v->w.in_list = in_list;
	frag_pickle_put_list_more(&v->w);
}

static const char *const segment_actions[] = {
	[FRAG_SEGMENT_ALLOC] = "segment_alloc",
	[FRAG_SEGMENT_FREE] = "segment_free",
	[FRAG_SEGMENT_MAP] = "segment_map",
	[FRAG_SEGMENT_UNMAP] = "segment_unmap",
};

/* The request and the end of a block; its slot was noted at the request. */
static void put_event(struct viz *v, const struct frag_event *e, frag_addr_t addr)
{
	const struct frag_event *b = &v->born[e->slot];

	if (e->kind == FRAG_EV_ALLOC)
		put_entry(v, "alloc", "addr", addr, e->bytes, e->stream, e->time_us, e->pool,
			  e->stack);
	if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_REQUESTED)
		put_entry(v, "free_requested", "addr", addr, b->bytes, b->stream, e->time_us,
			  b->pool, e->stack);
	if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
		put_entry(v, "free_completed", "addr", addr, b->bytes, b->stream, e->time_us,
			  b->pool, e->stack);
}

/* ---- as recorded ------------------------------------------------------------------------ */

static void put_seen(struct viz *v, const struct frag_evidence *s)
{
	if (s->kind <= FRAG_SEEN_SEGMENT_UNMAP)
		put_entry(v, segment_actions[s->kind], "addr", s->addr, s->bytes, s->stream,
			  s->time_us, 0, 0);
	else if (s->kind == FRAG_SEEN_OOM)
		put_entry(v, "oom", "device_free", s->addr, s->bytes, s->stream, s->time_us, 0, 0);
	else
		put_entry(v, "snapshot", "addr", 0, s->bytes, s->stream, s->time_us, 0, 0);
}

static void put_recorded(struct viz *v)
{
	const struct frag_trace_dev *td = v->td;
	size_t seen = 0;

	for (size_t i = 0; i < td->events_count; i++) {
		const struct frag_event *e = &td->events[i];

		for (; seen < td->seen_count && td->seen[seen].before <= i; seen++)
			put_seen(v, &td->seen[seen]);
		if (e->kind >= FRAG_EV_TRIM || e->slot >= td->slots_count)
			continue;
		if (e->kind == FRAG_EV_ALLOC) {
			v->born[e->slot] = *e;
			v->addrs[e->slot] = td->addrs[i];
			if (e->flags & FRAG_EVF_INITIAL)
				continue;
		}
		put_event(v, e, v->addrs[e->slot]);
	}
	for (; seen < td->seen_count; seen++)
		put_seen(v, &td->seen[seen]);
}

static int room(struct viz *v, struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(v->segments, v->segments_count, v->segments_cap, "export", err));
	return FRAG_GROW(v->blocks, v->blocks_count, v->blocks_cap, "export", err);
}

static int finals_recorded(struct viz *v, struct frag_err *err)
{
	const struct frag_trace_dev *td = v->td;

	for (size_t i = 0; i < td->final_segments_count; i++) {
		const struct frag_final_segment *s = &td->final_segments[i];

		FRAG_TRY(room(v, err));
		v->segments[v->segments_count++] = (struct segment){ td->ordinal,
								     s->addr,
								     s->bytes,
								     stream_of(v, s->stream),
								     pool_of(v, s->pool),
								     v->blocks_count,
								     s->blocks_count,
								     s->small,
								     s->expandable };
		for (uint32_t k = 0; k < s->blocks_count; k++) {
			const struct frag_final_block *b = &td->final_blocks[s->first_block + k];

			FRAG_TRY(room(v, err));
			v->blocks[v->blocks_count++] =
				(struct block){ b->addr, b->bytes, b->requested, b->state };
		}
	}
	return 0;
}

/* ---- of a replay ------------------------------------------------------------------------ */

static int on_event(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	struct viz *v = ctx;
	const struct frag_event *e = t->e;

	(void)err;
	for (size_t i = 0; i < t->changes_count; i++) {
		const struct frag_export_change *c = &t->changes[i];

		v->maps |= c->kind == FRAG_SEGMENT_MAP;
		put_entry(v, segment_actions[c->kind], "addr", c->addr, c->bytes, c->stream,
			  e->time_us, 0, 0);
	}
	if (t->refused)
		put_entry(v, "oom", "device_free", 0, e->bytes, e->stream, e->time_us, e->pool,
			  e->stack);
	if (e->kind >= FRAG_EV_TRIM || t->refused || t->dropped || t->addr == FRAG_NO_ADDR)
		return 0;
	if (e->kind == FRAG_EV_ALLOC)
		v->born[e->slot] = *e;
	put_event(v, e, t->addr);
	return 0;
}

/* A segment with its blocks, whose pool and size class are those of what lives in it. */
static int end_segment(struct viz *v, const struct frag_heap_list *list,
		       const struct frag_listed_segment *from, struct frag_err *err)
{
	struct segment s = { .ordinal = v->td->ordinal,
			     .addr = from->addr,
			     .bytes = from->bytes,
			     .stream = stream_of(v, from->stream),
			     .first_block = v->blocks_count,
			     .blocks_count = from->blocks_count,
			     .small = true,
			     .expandable = v->maps };

	for (size_t i = from->first_block; i < from->first_block + from->blocks_count; i++) {
		const struct frag_listed_block *b = &list->blocks[i];

		FRAG_TRY(room(v, err));
		v->blocks[v->blocks_count++] =
			(struct block){ b->addr, b->bytes, b->requested, b->state };
		if (b->slot == FRAG_NO_SLOT)
			continue;
		s.pool = pool_of(v, v->born[b->slot].pool);
		s.small &= b->requested <= FRAG_MIB;
	}
	s.small &= s.expandable || s.bytes == FRAG_PAGE;
	FRAG_TRY(room(v, err));
	v->segments[v->segments_count++] = s;
	return 0;
}

static int on_end(void *ctx, struct frag_run *run, struct frag_err *err)
{
	FRAG_AUTO(frag_heap_list_release) struct frag_heap_list list = { 0 };

	FRAG_TRY(frag_heap_list_take(&list, run, err));
	for (size_t i = 0; i < list.segments_count; i++)
		FRAG_TRY(end_segment(ctx, &list, &list.segments[i], err));
	return 0;
}

/* ---- the rest of the dict --------------------------------------------------------------- */

static void put_segments(struct viz *v)
{
	static const char *const states[] = { [FRAG_STATE_LIVE] = "active_allocated",
					      [FRAG_STATE_WAITING] = "active_pending_free",
					      [FRAG_STATE_FREE] = "inactive" };

	frag_pickle_set_list(&v->w, "segments");
	for (size_t i = 0; i < v->segments_count; i++) {
		const struct segment *s = &v->segments[i];
		uint64_t live = 0, active = 0, requested = 0;

		for (size_t k = 0; k < s->blocks_count; k++) {
			const struct block *b = &v->blocks[s->first_block + k];

			live += b->state == FRAG_STATE_LIVE ? b->bytes : 0;
			active += b->state != FRAG_STATE_FREE ? b->bytes : 0;
			requested += b->state != FRAG_STATE_FREE ? b->requested : 0;
		}
		frag_pickle_put_dict(&v->w);
		frag_pickle_set_uint(&v->w, "device", s->ordinal);
		frag_pickle_set_uint(&v->w, "address", s->addr);
		frag_pickle_set_uint(&v->w, "total_size", s->bytes);
		frag_pickle_set_uint(&v->w, "allocated_size", live);
		frag_pickle_set_uint(&v->w, "active_size", active);
		frag_pickle_set_uint(&v->w, "requested_size", requested);
		frag_pickle_set_uint(&v->w, "stream", s->stream);
		frag_pickle_set_text(&v->w, "segment_type", s->small ? "small" : "large");
		frag_pickle_set_pair(&v->w, "segment_pool_id", s->pool.a, s->pool.b);
		frag_pickle_set_bool(&v->w, "is_expandable", s->expandable);
		put_frames(v, 0);
		frag_pickle_set_list(&v->w, "blocks");
		for (size_t k = 0; k < s->blocks_count; k++) {
			const struct block *b = &v->blocks[s->first_block + k];

			frag_pickle_put_dict(&v->w);
			frag_pickle_set_uint(&v->w, "address", b->addr);
			frag_pickle_set_uint(&v->w, "size", b->bytes);
			frag_pickle_set_uint(&v->w, "requested_size", b->requested);
			frag_pickle_set_text(&v->w, "state", states[b->state]);
			put_frames(v, 0);
			frag_pickle_put_dict_end(&v->w);
		}
		frag_pickle_put_list_end(&v->w);
		frag_pickle_put_dict_end(&v->w);
	}
	frag_pickle_put_list_end(&v->w);
}

/* A number behind a key of PyTorch's settings; `none` where it is not there. */
static double setting(const char *conf, const char *key, double none)
{
	const char *at = strstr(conf, key);

	return at ? strtod(at + strlen(key), NULL) : none;
}

static void put_settings(struct viz *v)
{
	const struct frag_trace_settings *s = &v->job->trace->settings;
	bool torch = !strcmp(frag_policy_spec_ops(v->job->spec)->name, "pytorch");
	const char *text = frag_policy_spec_text(v->job->spec);
	const char *conf = v->job->as_recorded ? (s->conf ? s->conf : "")
			   : strchr(text, ':') ? strchr(text, ':') + 1
					       : "";
	double split = setting(conf, "max_split_size_mb:", -1), gc = s->gc_threshold;
	bool expandable = s->expandable;

	frag_pickle_set_dict(&v->w, "allocator_settings");
	if (v->job->as_recorded ? s->present : torch) {
		if (!v->job->as_recorded) {
			gc = setting(conf, "garbage_collection_threshold:", 0);
			expandable = strstr(conf, "expandable_segments:True") != NULL;
		} else if (s->max_split_bytes != UINT64_MAX) {
			split = floor((double)s->max_split_bytes / (double)FRAG_MIB);
		}
		frag_pickle_set_text(&v->w, "PYTORCH_CUDA_ALLOC_CONF", conf);
		if (split >= 0)
			frag_pickle_set_uint(&v->w, "max_split_size",
					     v->job->as_recorded && s->max_split_bytes != UINT64_MAX
						     ? s->max_split_bytes
						     : (uint64_t)split * FRAG_MIB);
		frag_pickle_set_double(&v->w, "garbage_collection_threshold", gc);
		frag_pickle_set_bool(&v->w, "expandable_segments", expandable);
	}
	if (v->job->as_recorded && s->present) {
		frag_pickle_set_dict(&v->w, "roundup_power2_divisions");
		for (unsigned i = 0; i < 16; i++) {
			char mib[16];

			snprintf(mib, sizeof(mib), "%u", 1u << i);
			frag_pickle_set_uint(&v->w, mib, s->roundup[i]);
		}
		frag_pickle_put_dict_end(&v->w);
	}
	frag_pickle_put_dict_end(&v->w);
}

static int put_mark(void *ctx, const struct frag_event *e, size_t n, uint64_t first,
		    struct frag_err *err)
{
	struct viz *v = ctx;

	(void)first;
	(void)err;
	for (size_t i = 0; i < n; i++) {
		if (e[i].kind != FRAG_EV_MARK)
			continue;
		frag_pickle_put_dict(&v->w);
		frag_pickle_set_text(&v->w, "stage", e[i].flags & FRAG_EVF_END ? "END" : "START");
		set_string(v, "name", e[i].slot);
		frag_pickle_set_uint(&v->w, "device", v->td->ordinal);
		frag_pickle_set_uint(&v->w, "time_us", v->job->trace->start_us + e[i].time_us);
		frag_pickle_put_dict_end(&v->w);
		frag_pickle_put_list_more(&v->w);
	}
	return 0;
}

static int put_device(struct viz *v, uint32_t dev, struct frag_err *err)
{
	int rc;

	v->td = &v->job->trace->devs[dev];
	v->born = frag_host_calloc((size_t)v->td->slots_count + 1, sizeof(*v->born));
	v->addrs = frag_host_calloc((size_t)v->td->slots_count + 1, sizeof(*v->addrs));
	rc = v->born && v->addrs ? 0 : frag_fail_nomem(err, "export");
	if (!rc && v->job->as_recorded && v->td->has_evidence && !v->job->path) {
		put_recorded(v);
		rc = finals_recorded(v, err);
	} else if (!rc) {
		rc = frag_export_walk(v->job, dev, on_event, on_end, v, err);
	}
	FRAG_FREE(v->born, v->addrs);
	return rc;
}

static int put_all(struct viz *v, struct frag_err *err)
{
	const struct frag_trace *t = v->job->trace;
	struct frag_events marks = { t, 0, v->job->path };
	uint32_t ordinal = 0;

	frag_pickle_put_dict(&v->w);
	frag_pickle_set_list(&v->w, "device_traces");
	for (uint32_t d = 0; d < t->devs_count; d++, ordinal++) {
		for (; ordinal < t->devs[d].ordinal; ordinal++) {
			frag_pickle_put_list(&v->w);
			frag_pickle_put_list_end(&v->w);
		}
		frag_pickle_put_list(&v->w);
		FRAG_TRY(put_device(v, d, err));
		frag_pickle_put_list_end(&v->w);
	}
	frag_pickle_put_list_end(&v->w);
	put_segments(v);
	put_settings(v);
	/* annotations are those of all devices: once */
	frag_pickle_set_list(&v->w, "external_annotations");
	v->td = &t->devs[0];
	FRAG_TRY(frag_events_each(&marks, put_mark, v, err));
	frag_pickle_put_list_end(&v->w);
	frag_pickle_put_dict_end(&v->w);
	return 0;
}

static int put(const struct frag_export_job *job, struct frag_err *err)
{
	struct viz v = { .job = job };
	int rc = frag_pickle_write_begin(&v.w, job->to, err), end;

	FRAG_TRY(rc);
	v.stack_ids = frag_host_calloc(job->trace->stacks.count + 1, sizeof(*v.stack_ids));
	v.strings_count = job->trace->strings ? frag_strings_count(job->trace->strings) : 0;
	v.string_ids = frag_host_calloc(v.strings_count + 1, sizeof(*v.string_ids));
	rc = v.stack_ids && v.string_ids ? put_all(&v, err) : frag_fail_nomem(err, "export");
	end = frag_pickle_write_end(&v.w, rc ? NULL : err);
	FRAG_FREE(v.stack_ids, v.string_ids, v.segments, v.blocks);
	return rc ? rc : end;
}

const struct frag_export_format frag_export_memory_viz = { .write = put };
