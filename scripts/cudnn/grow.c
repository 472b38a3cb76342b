/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grows the trees of cufrag_trees.csv (tables.py beside this starts it). Integers, and doubles that
 * only one operation at a time rounds, in a fixed order: the same trees on every machine.
 *
 *	grow < PROBLEM > TREES
 *
 * A problem is the words "sum" (its answers are 0 or 1, values of leaves are added up: above 0, it
 * is so) or "vote" (its answers are numbers of classes; a leaf has the most frequent one, and how
 * frequent it is, in ninths), TREES, LEAVES, ROWS and FEATURES, then for each feature how many cuts its
 * values have, and these, then for each row its answer and between which cuts its features are. Each
 * tree is printed as a line of nodes, a branch before what is below it:
 *
 *	FEATURE<THRESHOLD	the next node where the feature is at most the threshold, else the one behind all nodes of the next
 *	=VALUE			a leaf
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS 100
#define SCORE 256    /* units of 1 in a sum's values, which are logarithms of odds */
#define LARGEST 2000 /* score beyond which all are equally sure */
#define RATE_PERCENT 20
#define RIDGE 65536 /* what is added to the weight of a leaf */

struct problem {
	bool is_sum;
	int trees, leaves, rows, features, classes;
	int32_t *answers;
	uint8_t *bins; /* of each feature, those of all rows */
	int64_t (*cuts)
		[BINS]; /* of each feature: a bin holds what is above the cut before and at most its own */
	int *cut_count;
};

struct split {
	double gain;
	int feature, bin;
};

struct node {
	int first, count; /* rows */
	int left;	  /* the right one is behind it; 0: a leaf */
	struct split best;
	int64_t value; /* of a leaf of a sum */
	int answer, share;
};

struct state {
	const struct problem *p;
	uint64_t dice;
	int *rows, *moved;
	struct node *nodes;
	int count;
	int32_t *scores, *slopes, *weights; /* of each row, for sums */
	int64_t (*sums)[2];
	int *left, *all; /* of each class */
};

static void *room(size_t count, size_t size)
{
	void *p = calloc(count + 1, size);

	if (!p) {
		fputs("grow: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

/* splitmix64 */
static uint64_t draw(uint64_t *dice)
{
	uint64_t z = *dice += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int64_t number(void)
{
	long long n = 0;

	if (scanf("%lld", &n) != 1)
		exit(1);
	return n;
}

static void read_problem(struct problem *p)
{
	char kind[8];

	if (scanf("%7s %d %d %d %d", kind, &p->trees, &p->leaves, &p->rows, &p->features) != 5)
		exit(1);
	p->is_sum = !strcmp(kind, "sum");
	p->answers = room((size_t)p->rows, sizeof(*p->answers));
	p->bins = room((size_t)p->rows * (size_t)p->features, 1);
	p->cuts = room((size_t)p->features, sizeof(*p->cuts));
	p->cut_count = room((size_t)p->features, sizeof(*p->cut_count));
	for (int f = 0; f < p->features; f++) {
		p->cut_count[f] = (int)number();
		for (int i = 0; i < p->cut_count[f]; i++)
			p->cuts[f][i] = number();
	}
	for (int i = 0; i < p->rows; i++) {
		p->answers[i] = (int32_t)number();
		p->classes = p->answers[i] >= p->classes ? p->answers[i] + 1 : p->classes;
		for (int f = 0; f < p->features; f++)
			p->bins[(size_t)f * (size_t)p->rows + (size_t)i] = (uint8_t)number();
	}
}

/* ---- one split ----------------------------------------------------------------------------- */

/* How much better two sides tell the answers than both together, by a sum's slopes and weights. */
static void try_sum(struct state *s, const struct node *n, int feature, struct split *best)
{
	const uint8_t *bins = s->p->bins + (size_t)feature * (size_t)s->p->rows;
	int count = s->p->cut_count[feature];
	int64_t slope = 0, weight = 0, left_slope = 0, left_weight = 0;

	memset(s->sums, 0, (size_t)(count + 1) * sizeof(*s->sums));
	for (int i = n->first; i < n->first + n->count; i++) {
		int row = s->rows[i];

		s->sums[bins[row]][0] += s->slopes[row];
		s->sums[bins[row]][1] += s->weights[row];
	}
	for (int b = 0; b <= count; b++) {
		slope += s->sums[b][0];
		weight += s->sums[b][1];
	}
	for (int b = 0; b < count; b++) {
		double l, r, all = (double)slope * (double)slope, gain;

		left_slope += s->sums[b][0];
		left_weight += s->sums[b][1];
		if (!left_weight || left_weight == weight)
			continue;
		l = (double)left_slope * (double)left_slope;
		r = (double)(slope - left_slope) * (double)(slope - left_slope);
		l /= (double)(left_weight + RIDGE);
		r /= (double)(weight - left_weight + RIDGE);
		all /= (double)(weight + RIDGE);
		gain = l + r;
		gain -= all;
		if (gain > best->gain)
			*best = (struct split){ gain, feature, b };
	}
}

/* The same by squares of the numbers of each class (Gini). */
static void try_vote(struct state *s, const struct node *n, int feature, struct split *best)
{
	const uint8_t *bins = s->p->bins + (size_t)feature * (size_t)s->p->rows;
	int starts[BINS + 1] = { 0 }, at = 0, end;
	int64_t left = 0, right = 0, whole;

	memset(s->left, 0, (size_t)s->p->classes * sizeof(*s->left));
	memset(s->all, 0, (size_t)s->p->classes * sizeof(*s->all));
	for (int i = n->first; i < n->first + n->count; i++) {
		starts[bins[s->rows[i]] + 1]++;
		right += 2 * s->all[s->p->answers[s->rows[i]]]++ + 1;
	}
	whole = right;
	for (int b = 0; b < BINS; b++)
		starts[b + 1] += starts[b];
	for (int i = n->first; i < n->first + n->count; i++) {
		int row = s->rows[i];

		s->moved[starts[bins[row]]++] = row; /* now each is where the next begins */
	}
	for (int b = 0; b < s->p->cut_count[feature]; b++) {
		double l, gain;

		for (end = starts[b]; at < end; at++) {
			int answer = s->p->answers[s->moved[at]];

			left += 2 * s->left[answer] + 1;
			right -= 2 * (s->all[answer] - s->left[answer]) - 1;
			s->left[answer]++;
		}
		if (at < 2 || n->count - at < 2)
			continue;
		l = (double)left / (double)at;
		gain = (double)right / (double)(n->count - at);
		gain += l;
		gain -= (double)whole / (double)n->count;
		if (gain > best->gain)
			*best = (struct split){ gain, feature, b };
	}
}

/* Half of the features, which other nodes and trees draw otherwise. */
static struct split best_split(struct state *s, const struct node *n)
{
	struct split best = { 0.000001, -1, 0 };

	for (int f = 0; f < s->p->features; f++) {
		if (draw(&s->dice) & 1 || !s->p->cut_count[f] || n->count < 4)
			continue;
		(s->p->is_sum ? try_sum : try_vote)(s, n, f, &best);
	}
	return best;
}

/* ---- one tree ------------------------------------------------------------------------------ */

static void finish(struct state *s, struct node *n)
{
	int64_t slope = 0, weight = 0;

	memset(s->all, 0, (size_t)s->p->classes * sizeof(*s->all));
	for (int i = n->first; i < n->first + n->count; i++) {
		int row = s->rows[i];

		if (s->p->is_sum) {
			slope += s->slopes[row];
			weight += s->weights[row];
		}
		s->all[s->p->answers[row]]++;
	}
	n->value = slope * SCORE * RATE_PERCENT / 100 / (weight + RIDGE);
	for (int c = 0; c < s->p->classes; c++)
		if (s->all[c] > s->all[n->answer])
			n->answer = c;
	n->share = (18 * s->all[n->answer] + n->count) / (2 * n->count);
	n->share = n->share ? n->share : 1;
	n->best = best_split(s, n);
}

static void part(struct state *s, int at)
{
	struct node *n = &s->nodes[at], *l = &s->nodes[s->count], *r = l + 1;
	const uint8_t *bins = s->p->bins + (size_t)n->best.feature * (size_t)s->p->rows;
	int left = 0, right = 0, *rows = s->rows + n->first;

	for (int i = 0; i < n->count; i++) {
		if (bins[rows[i]] <= n->best.bin)
			rows[left++] = rows[i];
		else
			s->moved[right++] = rows[i];
	}
	memcpy(rows + left, s->moved, (size_t)right * sizeof(*rows));
	*l = (struct node){ .first = n->first, .count = left };
	*r = (struct node){ .first = n->first + left, .count = right };
	n->left = s->count;
	s->count += 2;
	finish(s, l);
	finish(s, r);
}

/* The best leaf is split until there are as many as there may be. */
static void grow(struct state *s)
{
	for (int i = 0; i < s->p->rows; i++)
		s->rows[i] = i;
	s->nodes[0] = (struct node){ .count = s->p->rows };
	s->count = 1;
	finish(s, &s->nodes[0]);
	for (int leaves = 1; leaves < s->p->leaves; leaves++) {
		int best = -1;

		for (int i = 0; i < s->count; i++)
			if (!s->nodes[i].left && s->nodes[i].best.feature >= 0 &&
			    (best < 0 || s->nodes[i].best.gain > s->nodes[best].best.gain))
				best = i;
		if (best < 0)
			break;
		part(s, best);
	}
}

/* Do all leaves below say the same? */
static bool is_one(const struct state *s, int at, int answer, int share)
{
	const struct node *n = &s->nodes[at];

	if (n->left)
		return is_one(s, n->left, answer, share) && is_one(s, n->left + 1, answer, share);
	return n->answer == answer && n->share == share;
}

static void print(const struct state *s, int at)
{
	const struct node *n = &s->nodes[at], *leaf = n;

	while (leaf->left)
		leaf = &s->nodes[leaf->left];
	if (!n->left || (!s->p->is_sum && is_one(s, at, leaf->answer, leaf->share))) {
		if (s->p->is_sum)
			printf("=%lld ", (long long)n->value);
		else
			printf("=%d:%d ", leaf->answer, leaf->share);
		return;
	}
	printf("%d<%lld ", n->best.feature, (long long)s->p->cuts[n->best.feature][n->best.bin]);
	print(s, n->left);
	print(s, n->left + 1);
}

/* ---- trees that are added up --------------------------------------------------------------- */

static int32_t likely[2 * LARGEST + 1]; /* of each score, in 65,536ths */

/* Powers of the 256th root of e, by multiplication: no library's exp is the same everywhere. */
static void fill_likely(void)
{
	double odds = 1;

	for (int score = 0; score <= LARGEST; score++) {
		likely[LARGEST + score] = (int32_t)(65536 * (odds / (1 + odds)));
		likely[LARGEST - score] = 65536 - likely[LARGEST + score];
		odds *= 1.0039138893383475;
	}
}

/* Before the first tree, all rows are as likely. */
static void begin(struct state *s)
{
	int64_t so = 0;
	int32_t score = -LARGEST;

	for (int i = 0; i < s->p->rows; i++)
		so += s->p->answers[i];
	while (score < LARGEST && likely[LARGEST + score] < 65536 * so / s->p->rows)
		score++;
	for (int i = 0; i < s->p->rows; i++)
		s->scores[i] = score;
	printf("=%d\n", score);
}

static void weigh(struct state *s)
{
	for (int i = 0; i < s->p->rows; i++) {
		int32_t score = s->scores[i], chance;

		score = score > LARGEST ? LARGEST : score < -LARGEST ? -LARGEST : score;
		chance = likely[LARGEST + score];
		s->slopes[i] = (s->p->answers[i] ? 65536 : 0) - chance;
		s->weights[i] = (int32_t)((int64_t)chance * (65536 - chance) >> 16);
	}
}

static void add_up(struct state *s)
{
	for (int at = 0; at < s->count; at++) {
		const struct node *n = &s->nodes[at];

		for (int i = n->first; !n->left && i < n->first + n->count; i++)
			s->scores[s->rows[i]] += (int32_t)n->value;
	}
}

static void solve(const struct problem *p)
{
	size_t rows = (size_t)p->rows;
	struct state s = { .p = p,
			   .rows = room(rows, sizeof(int)),
			   .moved = room(rows, sizeof(int)),
			   .nodes = room(2 * (size_t)p->leaves + 2, sizeof(struct node)),
			   .scores = room(rows, sizeof(int32_t)),
			   .slopes = room(rows, sizeof(int32_t)),
			   .weights = room(rows, sizeof(int32_t)),
			   .sums = room(BINS + 1, sizeof(*s.sums)),
			   .left = room((size_t)p->classes, sizeof(int)),
			   .all = room((size_t)p->classes, sizeof(int)) };

	if (p->is_sum)
		begin(&s);
	for (int tree = 0; tree < p->trees; tree++) {
		s.dice = (uint64_t)tree;
		if (p->is_sum)
			weigh(&s);
		grow(&s);
		if (p->is_sum)
			add_up(&s);
		print(&s, 0);
		putchar('\n');
	}
}

int main(void)
{
	struct problem p = { .trees = 0 };

	fill_likely();
	read_problem(&p);
	solve(&p);
	return 0;
}
