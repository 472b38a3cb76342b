/* SPDX-License-Identifier: Apache-2.0 */
/* Bisection in several directions; see border.h. */
#include "border.h"

#include <frag/base.h>

#include "lib/random.h"

#define ASSUMED_PER_CHECK 20u
/* Pairs of points of a group compared to choose the next one: some ms per card. */
#define COMPARED_MAX (1u << 20)

/* Does x need at most the memory of y, by the order of the axes? */
static bool below(const struct frag_border *b, const struct frag_border_point *x,
		  const struct frag_border_point *y)
{
	for (unsigned i = 0; i < b->axes; i++)
		if (x->level[i] > y->level[i])
			return false;
	return true;
}

/* A group, and its points that run next or now. */
struct round {
	const struct frag_border *b;
	size_t first, end, due[FRAG_BORDER_AT_ONCE];
	size_t undecided;
	unsigned dues, running;
};

static void group_of(const struct frag_border *b, size_t i, size_t *first, size_t *end)
{
	*first = *end = i;
	while (*first && b->points[*first - 1].group == b->points[i].group)
		--*first;
	while (*end < b->count && b->points[*end].group == b->points[i].group)
		++*end;
}

static struct round round_of(const struct frag_border *b, size_t first)
{
	struct round r = { .b = b };

	group_of(b, first, &r.first, &r.end);
	for (size_t i = r.first; i < r.end; i++) {
		r.running += b->points[i].running;
		r.undecided += b->points[i].decided != b->cards;
		if (b->points[i].due && r.dues < FRAG_BORDER_AT_ONCE)
			r.due[r.dues++] = i;
	}
	return r;
}

static bool open_(const struct frag_border *b, const struct frag_border_point *p)
{
	return p->decided != b->cards && !p->running && !p->due;
}

/* Does a due point lie between the two? */
static bool cut(const struct round *r, const struct frag_border_point *lower,
		const struct frag_border_point *upper)
{
	for (unsigned d = 0; d < r->dues; d++) {
		const struct frag_border_point *p = &r->b->points[r->due[d]];

		if (below(r->b, lower, p) && below(r->b, p, upper))
			return true;
	}
	return false;
}

/* Points that are decided for a card by either answer of point i, in the worse case. */
static size_t settled_for(const struct round *r, uint64_t card, size_t i)
{
	const struct frag_border *b = r->b;
	const struct frag_border_point *p = &b->points[i];
	size_t lower = 0, upper = 0;

	for (size_t k = r->first; k < r->end; k++) {
		const struct frag_border_point *q = &b->points[k];

		if (q->decided & card)
			continue;
		lower += below(b, q, p) && !cut(r, q, p);
		upper += below(b, p, q) && !cut(r, p, q);
	}
	return FRAG_MIN(lower, upper);
}

static size_t settled_by(const struct round *r, size_t i)
{
	size_t all = 0;

	for (uint64_t card = 1; card & r->b->cards; card <<= 1)
		all += settled_for(r, card, i);
	return all;
}

/* The undecided point that decides most others in the worse case. A large group is sampled. */
static size_t best_of(const struct round *r)
{
	const struct frag_border *b = r->b;
	size_t open = 0, seen = 0, most = 0, best = SIZE_MAX, step;

	for (size_t i = r->first; i < r->end; i++)
		open += open_(b, &b->points[i]);
	step = 1 + open * (r->end - r->first) / COMPARED_MAX;
	for (size_t i = r->first; i < r->end; i++) {
		size_t n = open_(b, &b->points[i]) && seen++ % step == 0 ? settled_by(r, i) : 0;

		best = n && n >= most ? i : best; /* on a tie the higher one: often all fit */
		most = FRAG_MAX(most, n);
	}
	return best;
}

/* Chooses the next points of a group after all earlier ones have answered, so that the choice does
 * not depend on run times and an interrupted search resumes with the same answers. */
static void begin_round(struct frag_border *b, struct round *r)
{
	while (r->dues < FRAG_MAX(b->at_once, 1u)) {
		size_t i = best_of(r);

		if (i == SIZE_MAX)
			return;
		b->points[i].due = true;
		r->due[r->dues++] = i;
	}
}

size_t frag_border_next(struct frag_border *b)
{
	size_t best = SIZE_MAX, fewest = SIZE_MAX, undecided = 0;

	for (size_t first = 0; first < b->count;) {
		struct round r = round_of(b, first);

		first = r.end;
		if (r.running > fewest || (r.running == fewest && r.undecided <= undecided))
			continue;
		if (!r.dues)
			begin_round(b, &r);
		for (unsigned d = 0; d < r.dues; d++) {
			if (b->points[r.due[d]].running)
				continue;
			best = r.due[d];
			fewest = r.running;
			undecided = r.undecided;
			break;
		}
	}
	return best;
}

static void spread(struct frag_border *b, size_t i)
{
	const struct frag_border_point *p = &b->points[i];
	size_t first, end;

	if (p->alone)
		return;
	group_of(b, i, &first, &end);
	for (size_t k = first; k < end; k++) {
		struct frag_border_point *q = &b->points[k];
		uint64_t yes = below(b, q, p) ? p->fits : 0;
		uint64_t no = below(b, p, q) ? b->cards & ~p->fits : 0;

		if (q->ran)
			continue;
		q->fits |= yes & ~q->decided;
		q->decided |= yes | no;
	}
}

void frag_border_decide(struct frag_border *b, size_t i, uint64_t fits)
{
	struct frag_border_point *p = &b->points[i];

	p->ran = true;
	p->running = p->due = false;
	p->decided = b->cards;
	p->fits = fits;
	spread(b, i);
}

static void undecide(struct frag_border_point *p)
{
	p->decided = p->elsewhere;
	p->fits = 0;
}

void frag_border_fail(struct frag_border *b, size_t i)
{
	struct frag_border_point *p = &b->points[i];

	p->alone = p->ran = true;
	p->running = p->checking = p->due = false;
	p->decided = b->cards;
	p->fits = 0;
}

void frag_border_count(struct frag_border *b)
{
	b->assumed = 0;
	for (size_t i = 0; i < b->count; i++)
		b->assumed += !b->points[i].ran && b->points[i].decided == b->cards;
}

size_t frag_border_check(struct frag_border *b, uint64_t most, uint64_t seed)
{
	uint64_t random = seed + b->checked, nth;

	frag_border_count(b);
	if (b->checked >= most ||
	    b->checked >= (b->assumed + b->checked + ASSUMED_PER_CHECK - 1) / ASSUMED_PER_CHECK ||
	    !b->assumed)
		return SIZE_MAX;
	nth = frag_random(&random) % b->assumed;
	for (size_t i = 0; i < b->count; i++) {
		struct frag_border_point *p = &b->points[i];

		if (p->ran || p->decided != b->cards || p->running || nth--)
			continue;
		p->checking = true;
		b->checked++;
		return i;
	}
	return SIZE_MAX;
}

void frag_border_checked(struct frag_border *b, size_t i, uint64_t fits)
{
	struct frag_border_point *p = &b->points[i];
	bool agrees = p->fits == fits;
	size_t first, end;

	p->ran = true;
	p->running = p->checking = false;
	p->fits = fits;
	if (agrees)
		return;
	b->wrong++;
	group_of(b, i, &first, &end);
	for (size_t k = first; k < end; k++) {
		b->points[k].alone = true;
		if (!b->points[k].ran && !b->points[k].running)
			undecide(&b->points[k]);
	}
}
