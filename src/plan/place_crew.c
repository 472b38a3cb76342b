/* SPDX-License-Identifier: Apache-2.0 */
/* The placement search over threads: the same search with other random orders on each. */
#include <stdlib.h>
#include <string.h>

#include "parallel.h"
#include "place.h"

struct member {
	uint64_t *offsets, height, nodes;
	enum frag_search_answer answer;
	struct frag_err err;
	int rc;
};

struct crew {
	const struct frag_buffers *b;
	const struct frag_search_options *opt;
	struct member *members;
	_Atomic bool done;
};

static void run_member(void *ctx, size_t i)
{
	struct crew *c = ctx;
	struct member *m = &c->members[i];

	m->rc = frag_place_search_one(c->b, c->opt, &c->done, i, m->offsets, &m->height, &m->answer,
				      &m->nodes, &m->err);
	if (m->rc || m->answer != FRAG_SEARCH_GAVE_UP)
		c->done = true;
}

static int members_init(struct crew *c, unsigned threads, const uint64_t *offsets, uint64_t height,
			struct frag_err *err)
{
	size_t n = c->b->count;

	for (unsigned i = 0; i < threads; i++) {
		c->members[i].offsets = frag_host_calloc(n + 1, sizeof(*offsets));
		if (!c->members[i].offsets)
			return frag_fail_nomem(err, "placement search");
		c->members[i].height = height;
		if (height != UINT64_MAX && n)
			memcpy(c->members[i].offsets, offsets, n * sizeof(*offsets));
	}
	return 0;
}

/* The lowest placement, and an answer if one has it. */
static int take_best(struct crew *c, unsigned threads, uint64_t *offsets, uint64_t *height,
		     enum frag_search_answer *answer, uint64_t *nodes, struct frag_err *err)
{
	*answer = FRAG_SEARCH_GAVE_UP;
	*nodes = 0;
	for (unsigned i = 0; i < threads; i++) {
		const struct member *m = &c->members[i];

		if (m->rc) {
			*err = m->err;
			return m->rc;
		}
		*nodes += m->nodes;
		if (m->answer != FRAG_SEARCH_GAVE_UP)
			*answer = m->answer;
		if (m->height < *height) {
			*height = m->height;
			memcpy(offsets, m->offsets, c->b->count * sizeof(*offsets));
		}
	}
	return 0;
}

int frag_place_search(const struct frag_buffers *b, const struct frag_search_options *opt,
		      uint64_t *offsets, uint64_t *height, enum frag_search_answer *answer,
		      uint64_t *nodes, struct frag_err *err)
{
	unsigned threads = FRAG_MAX(opt->threads, 1u);
	struct crew c = { .b = b, .opt = opt };
	static const struct frag_watch nobody;
	int rc;

	c.members = frag_host_calloc(threads, sizeof(*c.members));
	if (!c.members)
		return frag_fail_nomem(err, "placement search");
	rc = members_init(&c, threads, offsets, *height, err);
	if (!rc)
		rc = frag_parallel(threads, threads, run_member, &c,
				   opt->watch ? opt->watch : &nobody, NULL, NULL, err);
	if (!rc)
		rc = take_best(&c, threads, offsets, height, answer, nodes, err);
	for (unsigned i = 0; i < threads; i++)
		frag_host_free(c.members[i].offsets);
	frag_host_free(c.members);
	return rc;
}
