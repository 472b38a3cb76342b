/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot in PyTorch's format, for its viewer and for cufrag. Of a recording it repeats the
 * evidence, so that it equals the recording; of a policy it tells what the replay did: its
 * segments, addresses and refusals, and the state at the end.
 */
#include "export.h"

#include <stdlib.h>
#include <string.h>

#include "pickle_write.h"

/* Segments and blocks of a device at the end. */
struct finals {
	struct frag_final_segment *segments;
	struct frag_final_block *blocks;
	size_t count;
	bool own; /* of a replay */
};

struct viz {
	const struct frag_export_job *job;
	const struct frag_trace_dev *td;
	struct frag_pickle_writer w;
	uint32_t *stack_ids;	 /* [stacks] memo of the list of frames + 1 */
	struct frag_event *born; /* [slots] of this device */
	frag_addr_t *addrs;	 /* [slots] as recorded */
	bool maps;		 /* segments are mapped: expandable */
	struct finals *finals;	 /* [devices] */
};

/* ---- entries ---------------------------------------------------------------------------- */

static void put_frames(struct viz *v, uint32_t stack)
{
	const struct frag_stacks *s = &v->job->trace->stacks;

	frag_pickle_put(&v->w, "s", "frames");
	if (!stack || stack >= s->count) {
		frag_pickle_put(&v->w, "[]");
		return;
	}
	if (v->stack_ids[stack]) {
		frag_pickle_put_again(&v->w, v->stack_ids[stack] - 1);
		return;
	}
	frag_pickle_put(&v->w, "[");
	for (uint64_t i = s->first[stack]; i < s->first[stack + 1]; i++) {
		const struct frag_frame *f = &s->frames[s->index[i]];

		frag_pickle_put(&v->w, "{sssuss}", "filename",
				frag_trace_string(v->job->trace, f->file), "line",
				(uint64_t)f->line, "name",
				frag_trace_string(v->job->trace, f->name));
	}
	frag_pickle_put(&v->w, "]");
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

	frag_pickle_put(&v->w, "{sssusususu", "action", action, where, addr, "size", bytes,
			"stream", stream_of(v, stream), "time_us",
			v->job->trace->start_us + time_us);
	/* not as recorded: the key tells the release, and the pools are found without it */
	if (v->td->pools_count > 1 && !v->job->as_recorded)
		frag_pickle_put(&v->w, "sp", "pool_id", id.a, id.b);
	put_frames(v, stack);
	frag_pickle_put(&v->w, "}");
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

/* The pool and size class of a segment are those of what lives in it. */
static struct frag_final_segment end_segment(const struct viz *v, const struct frag_heap_list *list,
					     const struct frag_listed_segment *from)
{
	struct frag_final_segment s = { .addr = from->addr,
					.bytes = from->bytes,
					.first_block = (uint32_t)from->first_block,
					.blocks_count = (uint32_t)from->blocks_count,
					.stream = (uint16_t)from->stream,
					.small = true,
					.expandable = v->maps };

	for (size_t i = from->first_block; i < from->first_block + from->blocks_count; i++) {
		const struct frag_listed_block *b = &list->blocks[i];

		if (b->slot == FRAG_NO_SLOT)
			continue;
		s.pool = (uint16_t)v->born[b->slot].pool;
		s.small &= b->requested <= FRAG_MIB;
	}
	s.small &= s.expandable || s.bytes == FRAG_PAGE;
	return s;
}

static int on_end(void *ctx, struct frag_run *run, struct frag_err *err)
{
	FRAG_AUTO(frag_heap_list_release) struct frag_heap_list list = { 0 };
	const struct viz *v = ctx;
	struct finals *f = &v->finals[v->td - v->job->trace->devs];

	FRAG_TRY(frag_heap_list_take(&list, run, err));
	f->own = true;
	f->count = list.segments_count;
	f->segments = frag_host_calloc(list.segments_count, sizeof(*f->segments));
	f->blocks = frag_host_calloc(list.blocks_count, sizeof(*f->blocks));
	FRAG_CHECK_ALLOC(f->segments && f->blocks, "export", err);
	for (size_t i = 0; i < list.segments_count; i++)
		f->segments[i] = end_segment(v, &list, &list.segments[i]);
	for (size_t i = 0; i < list.blocks_count; i++) {
		const struct frag_listed_block *b = &list.blocks[i];

		f->blocks[i] =
			(struct frag_final_block){ b->addr, b->bytes, b->requested, b->state };
	}
	return 0;
}

/* ---- the rest of the dict --------------------------------------------------------------- */

static void put_block(struct viz *v, const struct frag_final_block *b)
{
	static const char *const states[] = { [FRAG_STATE_LIVE] = "active_allocated",
					      [FRAG_STATE_WAITING] = "active_pending_free",
					      [FRAG_STATE_FREE] = "inactive" };

	frag_pickle_put(&v->w, "{susususs", "address", b->addr, "size", b->bytes, "requested_size",
			b->requested, "state", states[b->state]);
	put_frames(v, 0);
	frag_pickle_put(&v->w, "}");
}

static void put_segment(struct viz *v, const struct frag_final_segment *s,
			const struct frag_final_block *blocks)
{
	struct frag_pool_id pool = pool_of(v, s->pool);
	uint64_t live = 0, active = 0, requested = 0;

	for (uint32_t k = 0; k < s->blocks_count; k++) {
		live += blocks[k].state == FRAG_STATE_LIVE ? blocks[k].bytes : 0;
		active += blocks[k].state != FRAG_STATE_FREE ? blocks[k].bytes : 0;
		requested += blocks[k].state != FRAG_STATE_FREE ? blocks[k].requested : 0;
	}
	frag_pickle_put(&v->w, "{susususususu", "device", (uint64_t)v->td->ordinal, "address",
			s->addr, "total_size", s->bytes, "allocated_size", live, "active_size",
			active, "requested_size", requested);
	frag_pickle_put(&v->w, "susssp", "stream", stream_of(v, s->stream), "segment_type",
			s->small ? "small" : "large", "segment_pool_id", pool.a, pool.b);
	frag_pickle_put(&v->w, "sb", "is_expandable", s->expandable);
	put_frames(v, 0);
	frag_pickle_put(&v->w, "s[", "blocks");
	for (uint32_t k = 0; k < s->blocks_count; k++)
		put_block(v, &blocks[k]);
	frag_pickle_put(&v->w, "]}");
}

static void put_segments(struct viz *v)
{
	frag_pickle_put(&v->w, "s[", "segments");
	for (uint32_t d = 0; d < v->job->trace->devs_count; d++) {
		const struct finals *f = &v->finals[d];

		v->td = &v->job->trace->devs[d];
		for (size_t i = 0; i < f->count; i++)
			put_segment(v, &f->segments[i], f->blocks + f->segments[i].first_block);
	}
	frag_pickle_put(&v->w, "]");
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
	double split_mb = setting(conf, "max_split_size_mb:", -1);
	double gc = setting(conf, "garbage_collection_threshold:", 0);
	bool expandable = strstr(conf, "expandable_segments:True") != NULL;
	uint64_t split = v->job->as_recorded ? s->max_split_bytes : UINT64_MAX;

	if (split == UINT64_MAX && split_mb >= 0)
		split = (uint64_t)split_mb * FRAG_MIB;
	frag_pickle_put(&v->w, "s{", "allocator_settings");
	if (v->job->as_recorded ? s->present : torch) {
		frag_pickle_put(&v->w, "ss", "PYTORCH_CUDA_ALLOC_CONF", conf);
		if (split != UINT64_MAX)
			frag_pickle_put(&v->w, "su", "max_split_size", split);
		frag_pickle_put(&v->w, "sdsb", "garbage_collection_threshold",
				v->job->as_recorded ? s->gc_threshold : gc, "expandable_segments",
				v->job->as_recorded ? s->expandable : expandable);
	}
	if (v->job->as_recorded && s->present) {
		frag_pickle_put(&v->w, "s{", "roundup_power2_divisions");
		for (unsigned i = 0; i < 16; i++) {
			char mib[16];

			snprintf(mib, sizeof(mib), "%u", 1u << i);
			frag_pickle_put(&v->w, "su", mib, (uint64_t)s->roundup[i]);
		}
		frag_pickle_put(&v->w, "}");
	}
	frag_pickle_put(&v->w, "}");
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
		frag_pickle_put(&v->w, "{sssssusu}", "stage",
				e[i].flags & FRAG_EVF_END ? "END" : "START", "name",
				frag_trace_string(v->job->trace, e[i].slot), "device",
				(uint64_t)v->td->ordinal, "time_us",
				v->job->trace->start_us + e[i].time_us);
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
		v->finals[dev] = (struct finals){ v->td->final_segments, v->td->final_blocks,
						  v->td->final_segments_count, false };
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

	frag_pickle_put(&v->w, "{s[", "device_traces");
	for (uint32_t d = 0; d < t->devs_count; d++, ordinal++) {
		for (; ordinal < t->devs[d].ordinal; ordinal++)
			frag_pickle_put(&v->w, "[]");
		frag_pickle_put(&v->w, "[");
		FRAG_TRY(put_device(v, d, err));
		frag_pickle_put(&v->w, "]");
	}
	frag_pickle_put(&v->w, "]");
	put_segments(v);
	put_settings(v);
	/* annotations are those of all devices: once */
	frag_pickle_put(&v->w, "s[", "external_annotations");
	v->td = &t->devs[0];
	FRAG_TRY(frag_events_each(&marks, put_mark, v, err));
	frag_pickle_put(&v->w, "]}");
	return 0;
}

static int put(const struct frag_export_job *job, struct frag_err *err)
{
	struct viz v = { .job = job };
	int rc = frag_pickle_write_begin(&v.w, job->to, err), end;

	v.stack_ids = frag_host_calloc(job->trace->stacks.count + 1, sizeof(*v.stack_ids));
	v.finals = frag_host_calloc(job->trace->devs_count, sizeof(*v.finals));
	if (!rc)
		rc = v.stack_ids && v.finals ? put_all(&v, err) : frag_fail_nomem(err, "export");
	end = frag_pickle_write_end(&v.w, rc ? NULL : err);
	for (uint32_t d = 0; v.finals && d < job->trace->devs_count; d++)
		if (v.finals[d].own)
			FRAG_FREE(v.finals[d].segments, v.finals[d].blocks);
	FRAG_FREE(v.stack_ids, v.finals);
	return rc ? rc : end;
}

const struct frag_export_format frag_export_memory_viz = { .write = put };
