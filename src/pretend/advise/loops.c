/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated calls; see edit.h. */
#include "edit.h"

#include <string.h>

#include "lib/bisect.h"
#include "lib/grow.h"

#define REPEATS_MIN 3u
#define PART_MIN 0.5	 /* of the saved bytes below a node that repeat equally often */
#define CHILDREN_MAX 64u /* of one node; a model has fewer */
#define ITEMS_MAX 65536u /* requests of a forward phase that are looked at */
#define DEPTH_MAX 512u
#define LOOPS_MAX 64u

struct item { /* requests in a row with one stack */
	uint32_t stack;
	uint64_t saved;
};

struct child {
	uint32_t frame, runs;
	uint64_t saved;
};

/* The frame at this depth, 0 = the outermost; UINT32_MAX = the stack ends before. */
static uint32_t frame_at(const struct frag_story *s, uint32_t stack, size_t depth)
{
	size_t n;
	const uint32_t *f = frag_stack_frames(s->trace, stack, &n);

	return depth < n ? f[n - 1 - depth] : UINT32_MAX;
}

/* Children in the order of their first call. */
static size_t find_children(const struct frag_story *s, const struct item *items, size_t n,
			    size_t depth, struct child *list)
{
	size_t count = 0, last = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		uint32_t frame = frame_at(s, items[i].stack, depth);
		size_t c = 0;

		while (c < count && list[c].frame != frame)
			c++;
		if (c == CHILDREN_MAX)
			return 0;
		if (c == count)
			list[count++] = (struct child){ .frame = frame };
		list[c].runs += c != last;
		list[c].saved += items[i].saved;
		last = c;
	}
	return count;
}

/* The number of repeats that most of the saved bytes have, and the first child with it. */
static uint32_t repeats(const struct child *list, size_t count, size_t *head, uint64_t *part)
{
	uint64_t all = 0, best = 0;
	uint32_t k = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t sum = 0;

		all += list[i].saved;
		for (size_t j = 0; j < count; j++)
			sum += list[j].runs == list[i].runs ? list[j].saved : 0;
		if (list[i].runs < REPEATS_MIN || sum <= best)
			continue;
		best = sum;
		k = list[i].runs;
		*head = i;
	}
	*part = best;
	return (double)best >= PART_MIN * (double)all && best ? k : 0;
}

/* Is a module called? Other repeats, such as loading weights, are not blocks of a model. */
static bool calls_module(const struct frag_story *s, const struct frag_loop *loop)
{
	for (size_t d = 0; d < loop->depth; d++) {
		const struct frag_frame *f = &s->trace->stacks.frames[frame_at(s, loop->stack, d)];
		const char *name = frag_trace_string(s->trace, f->name);

		if (!strcmp(name, "forward") || !strcmp(name, "_call_impl"))
			return true;
	}
	return false;
}

/* items: all below one node. Sorts them by child, in a stable order. */
static int search(const struct frag_story *s, struct item *items, size_t n, size_t depth,
		  struct frag_loops *out, struct frag_err *err)
{
	struct child list[CHILDREN_MAX];
	FRAG_AUTO_FREE struct item *sorted = NULL;
	size_t count = find_children(s, items, n, depth, list), head = 0, at = 0;
	uint64_t part;

	while (count == 1 && list[0].frame != UINT32_MAX)
		count = find_children(s, items, n, ++depth, list);
	if (count < 2 || depth > DEPTH_MAX)
		return 0;
	if (repeats(list, count, &head, &part)) {
		struct frag_loop loop = { .stack = items[0].stack,
					  .depth = depth,
					  .head = list[head].frame,
					  .saved_bytes = part };

		if (!calls_module(s, &loop) || out->count == LOOPS_MAX)
			return 0;
		FRAG_TRY(FRAG_GROW(out->list, out->count, out->cap, "advice", err));
		out->list[out->count++] = loop;
		return 0;
	}
	FRAG_TRY_CALLOC(sorted, n, "advice", err);
	for (size_t c = 0; c < count; c++) {
		size_t from = at;

		for (size_t i = 0; i < n; i++)
			if (frame_at(s, items[i].stack, depth) == list[c].frame)
				sorted[at++] = items[i];
		if (list[c].saved && list[c].frame != UINT32_MAX)
			FRAG_TRY(search(s, sorted + from, at - from, depth + 1, out, err));
	}
	return 0;
}

/* ---- instances ---------------------------------------------------------------------------- */

/* The frame that the loop's calls lead to; UINT32_MAX = another path. */
static uint32_t below(const struct frag_story *s, const struct frag_loop *loop, uint32_t stack)
{
	for (size_t d = 0; d < loop->depth; d++)
		if (frame_at(s, stack, d) != frame_at(s, loop->stack, d))
			return UINT32_MAX;
	return frame_at(s, stack, loop->depth);
}

static int find_instances(const struct frag_story *s, struct frag_loop *loop, struct frag_err *err)
{
	FRAG_AUTO_FREE uint32_t *of_stack = NULL;
	uint32_t last = UINT32_MAX;
	size_t open = SIZE_MAX; /* first life of the open instance */

	FRAG_TRY_CALLOC(of_stack, s->sites.stacks_count, "advice", err);
	for (uint32_t i = 0; i < s->sites.stacks_count; i++)
		of_stack[i] = below(s, loop, i);
	for (size_t i = 0; i <= s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		bool ends = i == s->count || (open != SIZE_MAX && l->span != s->lives[open].span);
		uint32_t frame = i < s->count && l->stack < s->sites.stacks_count &&
						 frag_life_span(s, l)->phase == FRAG_PHASE_FORWARD
					 ? of_stack[l->stack]
					 : UINT32_MAX;
		bool begins = frame == loop->head && (last != frame || ends);

		if (open != SIZE_MAX && (ends || begins || frame == UINT32_MAX)) {
			FRAG_TRY(FRAG_GROW(loop->list, loop->count, loop->cap, "advice", err));
			loop->list[loop->count++] = (struct frag_instance){
				.first = s->lives[open].born,
				.end = ends ? s->spans[s->lives[open].span].end : l->born,
				.span = s->lives[open].span
			};
			open = SIZE_MAX;
		}
		if (begins)
			open = i;
		last = frame;
	}
	return 0;
}

static uint32_t fullest_span(const struct frag_story *s)
{
	uint32_t best = UINT32_MAX;
	uint64_t most = 0, sum = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];

		if (i && l->span != s->lives[i - 1].span)
			sum = 0;
		if (frag_life_span(s, l)->phase != FRAG_PHASE_FORWARD || l->back == FRAG_NEVER)
			continue;
		sum += l->bytes;
		if (sum > most) {
			most = sum;
			best = l->span;
		}
	}
	return best;
}

int frag_loops_find(const struct frag_story *s, struct frag_loops *out, struct frag_err *err)
{
	uint32_t span = fullest_span(s);
	FRAG_AUTO_FREE struct item *items = NULL;
	size_t n = 0;

	*out = (struct frag_loops){ 0 };
	if (!s->stacks || span == UINT32_MAX)
		return 0;
	FRAG_TRY_CALLOC(items, ITEMS_MAX, "advice", err);
	for (size_t i = frag_story_born(s, s->spans[span].first);
	     i < s->count && s->lives[i].span == span; i++) {
		const struct frag_life *l = &s->lives[i];

		if (!n || items[n - 1].stack != l->stack) {
			if (n == ITEMS_MAX)
				break;
			items[n++] = (struct item){ .stack = l->stack };
		}
		items[n - 1].saved += l->back == FRAG_NEVER ? 0 : l->bytes;
	}
	FRAG_TRY(search(s, items, n, 0, out, err));
	for (size_t i = 0; i < out->count; i++)
		FRAG_TRY(find_instances(s, &out->list[i], err));
	return 0;
}

void frag_loops_release(struct frag_loops *l)
{
	for (size_t i = 0; i < l->count; i++)
		frag_host_free(l->list[i].list);
	frag_host_free(l->list);
	*l = (struct frag_loops){ 0 };
}

char *frag_loop_line(const struct frag_story *s, const struct frag_loop *loop)
{
	uint32_t best = frame_at(s, loop->stack, 0);
	int rank = 0; /* 1: a line outside PyTorch, 2: of a forward() there */

	for (size_t d = 0; d < loop->depth; d++) {
		uint32_t frame = frame_at(s, loop->stack, d);
		const struct frag_frame *f = &s->trace->stacks.frames[frame];
		int now = strstr(frag_trace_string(s->trace, f->file), "torch/")
				  ? 0
				  : 1 + !strcmp(frag_trace_string(s->trace, f->name), "forward");

		best = now >= rank ? frame : best;
		rank = FRAG_MAX(rank, now);
	}
	return frag_frame_name(s->trace, best);
}

const struct frag_instance *frag_loops_instance(const struct frag_loops *l, uint64_t event)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct frag_loop *loop = &l->list[i];
		size_t at;

		FRAG_BISECT(at, 0, loop->count, loop->list[at].end <= event);
		if (at < loop->count && loop->list[at].first <= event)
			return &loop->list[at];
	}
	return NULL;
}
