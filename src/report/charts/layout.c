/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address-space map: what the blocks of each sample are used for, on an axis without the
 * addresses that were never held; then a grid of rows (addresses) and columns (samples), and boxes
 * of cells with the same main use. A grid that is too ragged gets fewer rows.
 */
#include "layout.h"
#include "lib/grow.h"
#include "lib/bisect.h"

#include "replay/hints.h"
#include "replay/run.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS 180u
/* Blocks that all moments together may show: with very many, fewer moments are looked at. */
#define BLOCKS_MAX (1ull << 20)
#define COLUMNS_MIN 16u
#define ROWS 160u
#define BOXES_MAX 5000u

const char *frag_layout_use_name(enum frag_layout_use use)
{
	static const char *const names[FRAG_LAYOUT_USES] = { "none", "live", "waiting",
							     "non_releasable", "releasable" };

	return names[use];
}

struct range {
	frag_addr_t from, to;
	uint64_t at; /* where it begins on the folded axis */
};

/* A block, or a part of one, at a sample. */
struct piece {
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t column;
	enum frag_layout_use use;
};

struct grid {
	const struct frag_trace_dev *dev;
	size_t *sample; /* [columns] events after which to look */
	size_t columns, rows, looked;
	struct piece *pieces;
	size_t pieces_count, pieces_cap;
	struct range *ranges; /* addresses that were ever held, ascending */
	size_t count;
	uint64_t span;
	/* bytes[column][row][use] */
	uint64_t (*bytes)[FRAG_LAYOUT_USES];
	bool failed; /* memory was short */
};

static uint64_t (*cell_at(const struct grid *g, size_t column, size_t row))[FRAG_LAYOUT_USES]
{
	return &g->bytes[column * g->rows + row];
}

/* ---- the blocks -------------------------------------------------------------------- */

static void on_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	(void)ctx;
	(void)addr;
	(void)bytes;
	(void)stream;
}

static void add_piece(struct grid *g, frag_addr_t addr, uint64_t bytes, enum frag_layout_use use)
{
	g->failed |= FRAG_GROW(g->pieces, g->pieces_count, g->pieces_cap, "address-space map",
			       NULL) != 0;
	if (bytes && !g->failed)
		g->pieces[g->pieces_count++] =
			(struct piece){ addr, bytes, (uint32_t)g->looked, use };
}

static void on_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		     uint64_t releasable)
{
	struct grid *g = ctx;

	if (state == FRAG_STATE_LIVE || state == FRAG_STATE_WAITING) {
		add_piece(g, addr, bytes,
			  state == FRAG_STATE_LIVE ? FRAG_LAYOUT_LIVE : FRAG_LAYOUT_WAITING);
		return;
	}
	/* which part of a free block it is that could go is not told: the upper one here */
	releasable = FRAG_MIN(releasable, bytes);
	add_piece(g, addr, bytes - releasable, FRAG_LAYOUT_NON_RELEASABLE);
	add_piece(g, addr + (bytes - releasable), releasable, FRAG_LAYOUT_RELEASABLE);
}

/* ---- the folded axis --------------------------------------------------------------- */

FRAG_COMPARE(by_address, struct range, FRAG_ORDER(x->from, y->from))

/* Addresses of all pieces, what touches as one. */
static int fold(struct grid *g, struct frag_err *err)
{
	size_t n = 0;

	FRAG_TRY_CALLOC(g->ranges, g->pieces_count + 1, "address-space map", err);
	for (size_t i = 0; i < g->pieces_count; i++)
		g->ranges[i] = (struct range){ g->pieces[i].addr,
					       g->pieces[i].addr + g->pieces[i].bytes, 0 };
	qsort(g->ranges, g->pieces_count, sizeof(*g->ranges), by_address);
	for (size_t i = 0; i < g->pieces_count; i++) {
		if (n && g->ranges[i].from <= g->ranges[n - 1].to)
			g->ranges[n - 1].to = FRAG_MAX(g->ranges[n - 1].to, g->ranges[i].to);
		else
			g->ranges[n++] = g->ranges[i];
	}
	for (size_t i = 0; i < n; i++) {
		g->ranges[i].at = g->span;
		g->span += g->ranges[i].to - g->ranges[i].from;
	}
	g->count = n;
	return 0;
}

/* Row r covers the bytes [r, r + 1) * span / rows. */
static uint64_t row_begin(const struct grid *g, size_t row)
{
	return (uint64_t)((unsigned __int128)g->span * row / g->rows);
}

static void fill_cells(struct grid *g, const struct piece *p)
{
	uint64_t from, to;
	size_t above, row;

	FRAG_BISECT(above, 1, g->count, g->ranges[above].from <= p->addr);
	from = g->ranges[above - 1].at + (p->addr - g->ranges[above - 1].from);
	to = from + p->bytes;
	row = (size_t)((unsigned __int128)from * g->rows / g->span);

	while (row && row_begin(g, row) > from)
		row--;
	for (; row < g->rows && row_begin(g, row) < to; row++) {
		uint64_t low = FRAG_MAX(from, row_begin(g, row));
		uint64_t high = FRAG_MIN(to, row_begin(g, row + 1));

		if (low < high)
			(*cell_at(g, p->column, row))[p->use] += high - low;
	}
}

/* ---- the replay ---------------------------------------------------------------------- */

static int replay(struct grid *g, const struct frag_policy_spec *spec,
		  const struct frag_sim_config *card, const struct frag_run_options *opt,
		  struct frag_err *err)
{
	struct frag_hints hints = { .trace = g->dev,
				    .restore =
					    opt->restore && frag_policy_spec_ops(spec)->restore };
	struct frag_run_options plain = *opt;
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;
	const struct frag_visitor v = { .ctx = g, .segment = on_segment, .block = on_block };
	size_t done = 0;
	int rc = 0;

	plain.losses = plain.latency = plain.check = plain.paced = plain.fill = false;
	plain.only_peaks = true;
	plain.windows_max = 2;
	FRAG_TRY(frag_hints_open(&hints, card, &dev, err));
	FRAG_TRY(frag_run_create(spec, dev, g->dev, &plain, &run, err));
	for (; !rc && g->looked < g->columns && !frag_run_stopped(run) && !g->failed; g->looked++) {
		size_t next = g->sample[g->looked] + 1;

		if (opt->stop && *opt->stop) {
			rc = frag_fail(err, FRAG_EINTR, "interrupted");
			break;
		}
		rc = frag_run_feed(run, g->dev->events + done, next - done, err);
		done = next;
		if (!rc && run->policy.ops->visit)
			run->policy.ops->visit(run->policy.self, &v);
	}
	dev->abandoned = true;
	return rc ? rc : g->failed ? frag_fail_nomem(err, "address-space map") : 0;
}

static size_t columns_of(const struct frag_trace_dev *dev)
{
	size_t live = 0, most = 1;

	for (size_t i = 0; i < dev->events_count; i++) {
		uint8_t kind = dev->events[i].kind;

		live += kind == FRAG_EV_ALLOC;
		live -= live && (kind == FRAG_EV_FREE || kind == FRAG_EV_FREE_COMPLETED);
		most = FRAG_MAX(most, live);
	}
	return FRAG_MIN(FRAG_MAX(BLOCKS_MAX / most, COLUMNS_MIN), COLUMNS);
}

/* Evenly in recorded time, else over the events. */
static int choose_samples(struct grid *g, uint64_t peak_event, struct frag_err *err)
{
	const struct frag_event *ev = g->dev->events;
	size_t n = g->dev->events_count, at = 0, columns = columns_of(g->dev);
	uint64_t end = n ? ev[n - 1].time_us : 0;

	FRAG_TRY_CALLOC(g->sample, COLUMNS, "address-space map", err);
	for (size_t c = 0; n && c < columns; c++) {
		size_t next = end ? at : n * c / columns;

		while (end && next + 1 < n && ev[next + 1].time_us <= end * c / columns)
			next++;
		if (!g->columns || next > g->sample[g->columns - 1])
			g->sample[g->columns++] = at = next;
	}
	/* the peak is looked at in place of the moment after it */
	if (peak_event < n) {
		for (at = 0; at + 1 < g->columns && g->sample[at] < peak_event;)
			at++;
		g->sample[at] = peak_event;
	}
	return 0;
}

/* ---- boxes ---------------------------------------------------------------------------- */

static enum frag_layout_use main_use(const struct grid *g, size_t column, size_t row)
{
	uint64_t *bytes = *cell_at(g, column, row), sum = 0;
	uint64_t room = row_begin(g, row + 1) - row_begin(g, row);
	enum frag_layout_use best = FRAG_LAYOUT_LIVE;

	for (unsigned u = FRAG_LAYOUT_LIVE; u < FRAG_LAYOUT_USES; u++) {
		sum += bytes[u];
		if (bytes[u] > bytes[best])
			best = (enum frag_layout_use)u;
	}
	return 2 * sum < room || !room ? FRAG_LAYOUT_NONE : best;
}

/* Does it continue a box of the row below? */
static bool extend(struct frag_layout *l, size_t end, const struct frag_layout_box *b)
{
	for (size_t i = 0; i < end; i++) {
		struct frag_layout_box *o = &l->boxes[i];

		if (o->high == b->low && o->use == b->use && o->from_event == b->from_event &&
		    o->to_event == b->to_event) {
			o->high = b->high;
			return true;
		}
	}
	return false;
}

/* Fills l->boxes [BOXES_MAX]; false if they are too many. */
static bool make_boxes(const struct grid *g, struct frag_layout *l)
{
	const struct frag_event *events = g->dev->events;

	l->count = 0;
	for (size_t row = 0; row < g->rows; row++) {
		size_t end = l->count;

		for (size_t c = 0, to; c < g->looked; c = to) {
			enum frag_layout_use use = main_use(g, c, row);
			struct frag_layout_box box;
			size_t last;

			for (to = c + 1; to < g->looked && main_use(g, to, row) == use; to++)
				;
			if (use == FRAG_LAYOUT_NONE)
				continue;
			last = to < g->columns ? g->sample[to] : g->dev->events_count - 1;
			box = (struct frag_layout_box){ .from_event = g->sample[c],
							.to_event = last,
							.from_us = events[g->sample[c]].time_us,
							.to_us = events[last].time_us,
							.low = row_begin(g, row),
							.high = row_begin(g, row + 1),
							.use = use };
			if (extend(l, end, &box))
				continue;
			if (l->count == BOXES_MAX)
				return false;
			l->boxes[l->count++] = box;
		}
	}
	return true;
}

static int make(struct grid *g, const struct frag_policy_spec *spec,
		const struct frag_sim_config *card, uint64_t peak_event,
		const struct frag_run_options *opt, struct frag_layout *out, struct frag_err *err)
{
	bool few = false;

	FRAG_TRY(choose_samples(g, peak_event, err));
	FRAG_TRY(replay(g, spec, card, opt, err));
	FRAG_TRY(fold(g, err));
	g->bytes = frag_host_calloc(g->columns * ROWS + 1, sizeof(*g->bytes));
	out->boxes = frag_host_calloc(BOXES_MAX, sizeof(*out->boxes));
	out->policy = frag_host_strdup(frag_policy_spec_text(spec));
	FRAG_CHECK_ALLOC(g->bytes && out->boxes && out->policy, "address-space map", err);
	if (!g->span)
		return 0;
	for (size_t rows = ROWS; !few; rows /= 2) {
		g->rows = rows;
		memset(g->bytes, 0, g->columns * rows * sizeof(*g->bytes));
		for (size_t i = 0; i < g->pieces_count; i++)
			fill_cells(g, &g->pieces[i]);
		few = make_boxes(g, out);
	}
	out->span_bytes = g->span;
	out->cell_bytes = g->span / g->rows;
	out->samples = g->looked;
	return 0;
}

int frag_layout_make(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		     const struct frag_trace_dev *dev, uint64_t peak_event,
		     const struct frag_run_options *opt, struct frag_layout *out,
		     struct frag_err *err)
{
	struct grid g = { .dev = dev };
	int rc;

	*out = (struct frag_layout){ 0 };
	rc = make(&g, spec, card, peak_event, opt, out, err);
	FRAG_FREE(g.sample, g.pieces, g.ranges, g.bytes);
	if (rc)
		frag_layout_release(out);
	return rc;
}

void frag_layout_release(struct frag_layout *l)
{
	FRAG_FREE(l->policy, l->boxes);
	*l = (struct frag_layout){ 0 };
}
