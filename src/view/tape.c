/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a lane as columns. What the program did is the same under every policy and written
 * once; what the policy did with it is written for each. A reader derives requested and allocated
 * bytes from the events; where that is not what the replay had, a correction is written, so the
 * reader is always exact. tests/view/page.py reads the whole format.
 */
#include <string.h>

#include "lib/addr_map.h"
#include "lib/grow.h"
#include "replay/run.h"
#include "view.h"

#define PIECE (1u << 17) /* events of a piece: some 10 ms to unpack */
#define BUCKETS_MAX (1u << 16)
#define BUCKET_MIN 64u
#define LOSSES_MAX 1024u
#define MARKS_MAX 50000u /* of a kind */

/* Columns of the four blobs of a piece; script/read.js has the same order. */
enum { OP, TIME, ASKED, SLOT, OTHER, PROGRAM_COLUMNS };
enum { ADDR, ADDRS, EXTRA, CHANGE, CORRECT, LANE_COLUMNS };
enum mark { MARK_STEP, MARK_REFUSED, MARK_TRIM, MARK_RETURNED };
enum { REQUESTED, ALLOCATED, ACTIVE, RESERVED, SERIES };

enum live_state { GONE, LIVE, WAITING, DROPPED };

struct live {
	uint64_t bytes, granted, born, born_us;
	frag_addr_t addr;
	uint32_t stack;
	uint16_t stream, pool;
	uint8_t state;
};

struct tape {
	struct frag_view *view;
	struct frag_lane *lane;
	bool shared, what_if, ended;
	const struct frag_initial_state *initial;
	struct live *live;
	size_t live_count;
	struct frag_column program[PROGRAM_COLUMNS], places[LANE_COLUMNS];
	struct frag_column keys[2], pyramid[2 * SERIES + 1], losses, marks;
	struct frag_addr_map addrs; /* numbers within the piece */
	uint64_t asked[4];	    /* by the last request: bytes, stack, stream, pool */
	frag_addr_t addr_last;
	uint32_t *spare; /* slots freed in this piece, the last on top */
	size_t spare_count, spare_cap;
	uint64_t *pieces, *peaks;
	size_t pieces_count, pieces_cap, peaks_cap;
	uint64_t event, us, sparse_event, piece_peak;
	uint64_t now[SERIES], told[SERIES]; /* of the replay; as a reader derives it */
	uint64_t low[SERIES], high[SERIES], before[SERIES];
	uint64_t bucket_us, loss_every, loss_event, mark_event, mark_us;
	uint64_t events_count, parts;
	size_t marks_count[4]; /* of each kind */
};

/* ---- a piece ---- */

struct ranges {
	struct frag_column *to;
	uint64_t last, start, end;
	uint32_t stream, next_stream;
	bool begins; /* a segment */
};

static void end_range(struct ranges *r)
{
	if (r->start == r->end)
		return;
	frag_column_step(r->to, r->last, r->start);
	frag_column_put(r->to, r->end - r->start);
	frag_column_put(r->to, r->stream);
	r->last = r->end;
}

static void on_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct ranges *r = ctx;

	(void)addr, (void)bytes;
	r->next_stream = stream;
	r->begins = true;
}

/* Blocks without gaps are a range: parts that are not mapped have none. */
static void on_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		     uint64_t releasable)
{
	struct ranges *r = ctx;

	(void)state, (void)releasable;
	if (r->begins || addr != r->end) {
		end_range(r);
		r->start = addr;
		r->stream = r->next_stream;
		r->begins = false;
	}
	r->end = addr + bytes;
}

/* The state in front of a piece: live blocks by slot, totals, and the ranges of segments. */
static void write_keys(struct tape *t, const struct frag_run *run)
{
	struct frag_column *program = &t->keys[0], *places = &t->keys[1];
	struct ranges r = { .to = places };
	struct frag_visitor visitor = { &r, on_segment, on_block };
	size_t last = 0;

	frag_column_put(program, t->us);
	for (unsigned i = 0; i < SERIES; i++) {
		frag_column_put(places, t->now[i]);
		t->told[i] = t->now[i];
	}
	for (size_t i = 0; i < t->live_count; i++) {
		const struct live *b = &t->live[i];

		if (b->state == GONE)
			continue;
		frag_column_put(program, i + 1 - last);
		last = i + 1;
		frag_column_put(program, t->event - b->born);
		frag_column_put(program, t->us - b->born_us);
		frag_column_put(program, b->bytes);
		frag_column_put(program, b->stack);
		frag_column_put(program, b->stream);
		frag_column_put(program, b->pool);
		frag_column_put(places, b->state);
		if (b->state != DROPPED) {
			frag_column_step(places, t->addr_last, b->addr);
			frag_column_step(places, b->bytes, b->granted);
			t->addr_last = b->addr;
		}
	}
	frag_column_put(program, 0);
	if (run->policy.ops->visit && (t->event || run->restored))
		run->policy.ops->visit(run->policy.self, &visitor);
	end_range(&r);
}

static int end_piece(struct tape *t, struct frag_err *err)
{
	struct frag_blob_store *s = &t->view->store;
	uint64_t blob[4] = { 0 };

	if (!t->event)
		return 0;
	if (!t->shared) {
		FRAG_TRY(frag_blob_store_pack(s, &t->keys[0], 1, &blob[0], err));
		FRAG_TRY(frag_blob_store_pack(s, t->program, PROGRAM_COLUMNS, &blob[1], err));
	}
	FRAG_TRY(frag_blob_store_pack(s, &t->keys[1], 1, &blob[2], err));
	FRAG_TRY(frag_blob_store_pack(s, t->places, LANE_COLUMNS, &blob[3], err));
	FRAG_TRY(FRAG_GROW(t->peaks, t->pieces_count / 4, t->peaks_cap, "page", err));
	t->peaks[t->pieces_count / 4] = t->piece_peak;
	for (unsigned i = 0; i < 4; i++) {
		FRAG_TRY(FRAG_GROW(t->pieces, t->pieces_count, t->pieces_cap, "page", err));
		t->pieces[t->pieces_count++] = blob[i];
	}
	return 0;
}

static int begin_piece(struct tape *t, const struct frag_run *run, struct frag_err *err)
{
	FRAG_TRY(end_piece(t, err));
	frag_addr_map_release(&t->addrs);
	t->spare_count = 0;
	t->sparse_event = t->event;
	t->piece_peak = 0;
	t->addr_last = 0;
	memset(t->asked, 0, sizeof(t->asked));
	t->keys[0].count = t->keys[1].count = 0;
	write_keys(t, run);
	t->addr_last = 0;
	for (unsigned i = 0; t->shared && i < PROGRAM_COLUMNS; i++)
		t->program[i].count = 0;
	return 0;
}

/* ---- an event ---- */

/*
 * Slots are handed out again in the order in which they were freed, the last first: then 0 is written. What is freed is
 * named by the age of its block, because a step that is repeated repeats ages, not slots.
 */
static int put_slot(struct tape *t, const struct frag_event *e, struct frag_err *err)
{
	if (e->kind != FRAG_EV_ALLOC) {
		frag_column_put(&t->program[SLOT], t->event - t->live[e->slot].born);
		if (e->kind == FRAG_EV_FREE_REQUESTED)
			return 0;
		FRAG_TRY(FRAG_GROW(t->spare, t->spare_count, t->spare_cap, "page", err));
		t->spare[t->spare_count++] = e->slot;
	} else if (t->spare_count && t->spare[t->spare_count - 1] == e->slot) {
		frag_column_put(&t->program[SLOT], 0);
		t->spare_count--;
	} else {
		frag_column_put(&t->program[SLOT], (uint64_t)e->slot + 1);
	}
	return 0;
}

static int put_program(struct tape *t, const struct frag_told *told, struct frag_err *err)
{
	const struct frag_event *e = told->e;
	const uint64_t asked[4] = { e->bytes, e->stack, e->stream, e->pool };

	frag_column_byte(&t->program[OP], (uint8_t)(e->kind | e->flags << 3));
	frag_column_step(&t->program[TIME], t->us, e->time_us);
	for (unsigned i = 0; i < 4 && (e->kind == FRAG_EV_ALLOC || e->kind == FRAG_EV_REFUSED);
	     i++) {
		frag_column_step(&t->program[ASKED], t->asked[i], asked[i]);
		t->asked[i] = asked[i];
	}
	if (e->kind < FRAG_EV_TRIM)
		return put_slot(t, e, err);
	if (e->kind == FRAG_EV_MARK || e->kind == FRAG_EV_TRIM)
		frag_column_put(&t->program[OTHER], e->kind == FRAG_EV_MARK ? e->slot : e->pool);
	return 0;
}

static void take_alloc(struct tape *t, const struct frag_told *told)
{
	const struct frag_event *e = told->e;
	struct live *b = &t->live[e->slot];
	const struct frag_addr_cell *cell;

	*b = (struct live){ .bytes = e->bytes,
			    .born = told->index,
			    .born_us = e->time_us,
			    .addr = told->addr,
			    .stack = e->stack,
			    .stream = e->stream,
			    .pool = (uint16_t)e->pool,
			    .state = told->refused ? DROPPED : LIVE };
	if (told->refused) {
		frag_column_put(&t->places[ADDR], 0);
		return;
	}
	b->granted = told->run->slots[e->slot].b.granted;
	cell = frag_addr_map_find(&t->addrs, b->addr);
	frag_column_put(&t->places[ADDR], cell ? cell->value + 1 : 1);
	if (!cell) {
		t->places[ADDR].failed |=
			frag_addr_map_number(&t->addrs, b->addr, t->addrs.count) != 0;
		frag_column_step(&t->places[ADDRS], t->addr_last >> 9, b->addr >> 9);
		frag_column_put(&t->places[ADDRS], b->addr & 511);
		t->addr_last = b->addr;
	}
	frag_column_step(&t->places[EXTRA], b->bytes, b->granted);
	t->told[REQUESTED] += b->bytes;
	t->told[ALLOCATED] += b->granted;
	t->told[ACTIVE] += b->granted;
}

static void take_free(struct tape *t, const struct frag_event *e)
{
	struct live *b = &t->live[e->slot];

	if (b->state == LIVE) {
		t->told[REQUESTED] -= b->bytes;
		t->told[ALLOCATED] -= b->granted;
	}
	if (b->state != DROPPED && b->state != GONE && e->kind != FRAG_EV_FREE_REQUESTED)
		t->told[ACTIVE] -= b->granted;
	if (e->kind != FRAG_EV_FREE_REQUESTED)
		b->state = GONE;
	else if (b->state == LIVE)
		b->state = WAITING;
}

/* What changed beside the blocks: ranges of segments, reserved bytes, what was not derived. */
static void put_changes(struct tape *t, const struct frag_told *told)
{
	for (size_t i = 0; i < told->changes_count; i++) {
		const struct frag_export_change *c = &told->changes[i];

		frag_column_put(&t->places[CHANGE], t->event - t->sparse_event);
		t->sparse_event = t->event;
		frag_column_put(&t->places[CHANGE], c->kind);
		frag_column_put(&t->places[CHANGE], c->addr);
		frag_column_put(&t->places[CHANGE], c->bytes);
		frag_column_put(&t->places[CHANGE], c->stream);
	}
	for (unsigned i = 0; i < SERIES; i++) {
		if (t->now[i] == t->told[i])
			continue;
		frag_column_put(&t->places[CORRECT], told->index % PIECE);
		frag_column_put(&t->places[CORRECT], i);
		frag_column_step(&t->places[CORRECT], t->told[i], t->now[i]);
		t->told[i] = t->now[i];
	}
}

static void put_mark(struct tape *t, enum mark what, const struct frag_event *e, uint64_t value)
{
	if (t->marks_count[what]++ >= MARKS_MAX) {
		t->lane->marks_left_out++;
		return;
	}
	frag_column_byte(&t->marks, (uint8_t)what);
	frag_column_put(&t->marks, t->event - t->mark_event);
	frag_column_put(&t->marks, e->time_us - t->mark_us);
	frag_column_put(&t->marks, value);
	t->mark_event = t->event;
	t->mark_us = e->time_us;
}

static void note_marks(struct tape *t, const struct frag_told *told)
{
	const struct frag_event *e = told->e;
	uint64_t returned = 0;

	for (size_t i = 0; i < told->changes_count; i++)
		if (told->changes[i].kind == FRAG_SEGMENT_FREE ||
		    told->changes[i].kind == FRAG_SEGMENT_UNMAP)
			returned += told->changes[i].bytes;
	if (frag_event_ends_step(e))
		put_mark(t, MARK_STEP, e, e->slot);
	if (told->refused)
		put_mark(t, MARK_REFUSED, e, e->bytes);
	if (e->kind == FRAG_EV_TRIM)
		put_mark(t, MARK_TRIM, e, returned);
	else if (returned && (e->kind == FRAG_EV_ALLOC || e->kind == FRAG_EV_REFUSED))
		put_mark(t, MARK_RETURNED, e, returned);
	t->lane->refused_count += told->refused;
}

/* ---- the pyramid ---- */

static void end_bucket(struct tape *t)
{
	frag_column_put(&t->pyramid[2 * SERIES], t->bucket_us);
	for (unsigned i = 0; i < SERIES; i++) {
		frag_column_step(&t->pyramid[2 * i], t->before[i], t->high[i]);
		frag_column_put(&t->pyramid[2 * i + 1], t->high[i] - t->low[i]);
		t->before[i] = t->high[i];
	}
}

static void take_extremes(struct tape *t, const struct frag_told *told)
{
	bool first = told->index % t->lane->bucket_events == 0;
	uint64_t part;

	if (first && told->index)
		end_bucket(t);
	if (first)
		t->bucket_us = told->e->time_us;
	for (unsigned i = 0; i < SERIES; i++) {
		t->high[i] = first ? t->now[i] : FRAG_MAX(t->high[i], t->now[i]);
		t->low[i] = first ? t->now[i] : FRAG_MIN(t->low[i], t->now[i]);
	}
	part = told->index * t->parts / t->events_count;
	if (part < FRAG_VIEW_POINTS) {
		uint64_t *most[2] = { &t->lane->most[0][part], &t->lane->most[1][part] };

		*most[0] = FRAG_MAX(*most[0], t->now[ALLOCATED]);
		*most[1] = FRAG_MAX(*most[1], t->now[RESERVED]);
	}
	t->piece_peak = FRAG_MAX(t->piece_peak, t->now[ALLOCATED]);
	if (t->ended) /* a what-if, at the request that it refused */
		return;
	t->ended = t->what_if && frag_run_refuses_more(told->run);
	if (t->now[RESERVED] > t->lane->replayed_peak_bytes) {
		t->lane->replayed_peak_bytes = t->now[RESERVED];
		t->lane->peak_reserved_event = told->index;
	}
	if (t->now[ALLOCATED] > t->lane->peak_allocated_bytes) {
		t->lane->peak_allocated_bytes = t->now[ALLOCATED];
		t->lane->peak_event = told->index;
	}
	t->lane->peak_requested_bytes = FRAG_MAX(t->lane->peak_requested_bytes, t->now[REQUESTED]);
}

static void take_now(struct tape *t, const struct frag_told *told)
{
	t->now[REQUESTED] = told->requested;
	t->now[ALLOCATED] = told->allocated;
	t->now[ACTIVE] = told->active;
	t->now[RESERVED] = told->reserved;
}

/*
 * A history that began late: a replay that was restored has its blocks before their events, which
 * change nothing; in any other they come with their events. The lanes of a device share the list,
 * so all of them name these slots.
 */
static void take_initial(struct tape *t, const struct frag_told *told)
{
	const struct frag_initial_state *s = t->initial;

	for (size_t i = 0; i < s->blocks_count; i++) {
		const struct frag_initial_block *b = &s->blocks[i];

		if (b->slot < t->live_count)
			t->live[b->slot] = (struct live){ .bytes = b->requested,
							  .granted = b->bytes,
							  .addr = b->addr,
							  .stream = (uint16_t)b->stream,
							  .state = !told->run->restored ? DROPPED
								   : b->waiting		? WAITING
											: LIVE };
	}
	if (told->run->restored)
		take_now(t, told);
}

static int on_event(void *ctx, const struct frag_told *told, struct frag_err *err)
{
	struct tape *t = ctx;
	const struct frag_event *e = told->e;
	struct frag_loss loss = { 0 };

	t->event = told->index;
	if (!t->event)
		take_initial(t, told);
	if (t->event % PIECE == 0)
		FRAG_TRY(begin_piece(t, told->run, err));
	take_now(t, told);
	if (!t->shared)
		FRAG_TRY(put_program(t, told, err));
	t->us = e->time_us;
	if (e->kind == FRAG_EV_ALLOC)
		take_alloc(t, told);
	else if (e->kind < FRAG_EV_TRIM)
		take_free(t, e);
	put_changes(t, told);
	note_marks(t, told);
	take_extremes(t, told);
	if (t->event % t->loss_every)
		return 0;
	frag_run_loss(told->run, t->event, e->time_us, &loss);
	frag_column_put(&t->losses, t->event - t->loss_event);
	frag_column_put(&t->losses, loss.non_releasable_bytes);
	frag_column_put(&t->losses, loss.releasable_bytes);
	t->loss_event = t->event;
	return 0;
}

static int finish(struct tape *t, struct frag_err *err)
{
	struct frag_blob_store *s = &t->view->store;
	struct frag_lane *lane = t->lane;
	uint64_t events = t->event + 1;

	lane->duration_us = t->us;
	lane->events_count = events;
	end_bucket(t);
	t->event = events;
	FRAG_TRY(end_piece(t, err));
	FRAG_TRY(frag_blob_store_pack(s, t->pyramid, FRAG_ARRAY_LEN(t->pyramid), &lane->pyramid,
				      err));
	FRAG_TRY(frag_blob_store_pack(s, &t->losses, 1, &lane->losses, err));
	FRAG_TRY(frag_blob_store_pack(s, &t->marks, 1, &lane->marks, err));
	lane->pieces.rows =
		frag_answer_copy(&t->view->answer, t->pieces, t->pieces_count * sizeof(*t->pieces));
	lane->pieces.count = t->pieces_count;
	lane->peaks = frag_answer_copy(&t->view->answer, t->peaks,
				       t->pieces_count / 4 * sizeof(*t->peaks));
	return lane->pieces.rows && lane->peaks ? 0 : frag_fail_nomem(err, "page");
}

static void tape_release(struct tape *t)
{
	for (unsigned i = 0; i < PROGRAM_COLUMNS; i++)
		frag_host_free(t->program[i].bytes);
	for (unsigned i = 0; i < LANE_COLUMNS; i++)
		frag_host_free(t->places[i].bytes);
	for (unsigned i = 0; i < FRAG_ARRAY_LEN(t->pyramid); i++)
		frag_host_free(t->pyramid[i].bytes);
	FRAG_FREE(t->keys[0].bytes, t->keys[1].bytes, t->losses.bytes, t->marks.bytes, t->live,
		  t->spare, t->pieces, t->peaks);
	frag_addr_map_release(&t->addrs);
}

int frag_tape_write(struct frag_view *v, const struct frag_export_job *job, uint32_t dev,
		    struct frag_lane *lane, bool shared, struct frag_err *err)
{
	const struct frag_trace_dev *td = &job->trace->devs[dev];
	FRAG_AUTO(tape_release)
	struct tape t = { .view = v,
			  .lane = lane,
			  .shared = shared,
			  .what_if = !lane->peak_reserved_bytes,
			  .initial = &td->initial,
			  .live_count = td->slots_count,
			  .events_count = FRAG_MAX(td->events_count, (size_t)1),
			  .parts = FRAG_MIN(td->events_count, (size_t)FRAG_VIEW_POINTS) };

	lane->piece_events = PIECE;
	lane->bucket_events = BUCKET_MIN;
	while (td->events_count / lane->bucket_events > BUCKETS_MAX)
		lane->bucket_events *= 2;
	t.loss_every = td->events_count / LOSSES_MAX + 1;
	FRAG_TRY_CALLOC(t.live, t.live_count + 1, "page", err);
	FRAG_TRY(frag_export_walk(job, dev, on_event, NULL, &t, err));
	return finish(&t, err);
}
