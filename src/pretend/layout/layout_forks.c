/* SPDX-License-Identifier: Apache-2.0 */
/* See layout_forks.h. */
#include "layout_forks.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include "pretend/start/fork_server.h"

#define WORTH_IT 4u /* unknown layouts: below, the server and its trial cost more than they save */

void frag_layout_forks_init(struct frag_layout_forks *f, const struct frag_layouts *x,
			    const char *folder)
{
	*f = (struct frag_layout_forks){ .folder = folder, .point = SIZE_MAX };
	/* a memory limit is for children of one process; engines start their own */
	f->way = x->anew || x->requests || x->pretend.memory_bytes ? FRAG_LAYOUT_ANEW
								   : FRAG_LAYOUT_FIRST;
}

void frag_layout_forks_enter(const struct frag_layout_forks *f, enum frag_layout_way way,
			     struct frag_layouts *x)
{
	x->pretend.trial = way == FRAG_LAYOUT_TRIAL;
	if (way == FRAG_LAYOUT_FIRST)
		frag_forks_note(f->folder);
	if (way == FRAG_LAYOUT_FORKED || way == FRAG_LAYOUT_TRIAL)
		frag_forks_use(f->folder);
}

static size_t count_open(const struct frag_layouts *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->border.count; i++)
		n += x->border.points[i].decided != x->border.cards;
	return n;
}

enum frag_layout_way frag_layout_forks_way(struct frag_layout_forks *f,
					   const struct frag_layouts *x, size_t point)
{
	if (x->results[point].anew)
		return FRAG_LAYOUT_ANEW;
	if (f->server)
		return FRAG_LAYOUT_FORKED;
	f->scouted = x->pretend.ranks && !strcmp(x->pretend.ranks, "roles") &&
		     frag_layout_world(x, frag_layout_of(x, point)) > 1;
	return f->way;
}

bool frag_layout_forks_hold(const struct frag_layout_forks *f)
{
	return f->way == FRAG_LAYOUT_FIRST && f->scouted && !f->server;
}

static void late_path(const struct frag_layout_forks *f, char *path, size_t cap)
{
	snprintf(path, cap, "%.4000s/modules.late", f->folder); /* cufrag_recorder.py */
}

/* A failed layout may not have loaded the modules that the next one needs. */
static void forget_first(struct frag_layout_forks *f)
{
	char path[4200];

	frag_forks_end(f->server);
	f->server = 0;
	late_path(f, path, sizeof(path));
	unlink(path);
}

bool frag_layout_forks_begin(struct frag_layout_forks *f, const struct frag_layouts *x)
{
	char path[4200];

	late_path(f, path, sizeof(path));
	if (!frag_layout_forks_hold(f) || access(path, R_OK) || count_open(x) <= WORTH_IT)
		return false;
	f->server = frag_forks_begin(f->folder);
	if (!f->server)
		forget_first(f);
	return f->server;
}

bool frag_layout_forks_early(const struct frag_layout_forks *f, enum frag_layout_way way)
{
	return way == FRAG_LAYOUT_FORKED && f->server && f->way != FRAG_LAYOUT_FORKED;
}

static bool same_on(const struct frag_layout_on_card *a, const struct frag_layout_on_card *b)
{
	return a->completes == b->completes && a->roomy == b->roomy && a->rank == b->rank &&
	       a->peak_reserved_bytes == b->peak_reserved_bytes && a->room_bytes == b->room_bytes &&
	       !strcmp(a->setting, b->setting);
}

static bool same(const struct frag_layouts *x, const struct frag_layout_result *a,
		 const struct frag_layout_result *b)
{
	for (size_t c = 0; c < x->cards_count; c++)
		if (!same_on(&a->cards[c], &b->cards[c]))
			return false;
	return a->status == b->status && a->min_bytes == b->min_bytes && a->rank == b->rank &&
	       a->ranks == b->ranks && a->free_bytes == b->free_bytes && a->step_us == b->step_us &&
	       a->events == b->events && a->engine.tokens == b->engine.tokens &&
	       !memcmp(a->kinds, b->kinds, sizeof(a->kinds));
}

/* A newly started process had the same result. */
static bool is_known(const struct frag_layouts *x, const struct frag_layout_result *r)
{
	for (size_t i = 0; i < x->border.count; i++)
		if (x->results[i].status == r->status && !strcmp(x->results[i].message, r->message))
			return true;
	return false;
}

static void give_up(struct frag_layout_forks *f)
{
	frag_forks_end(f->server);
	f->server = 0;
	f->way = FRAG_LAYOUT_ANEW;
}

static bool failed(const struct frag_layout_result *r)
{
	return r->status == FRAG_LAYOUT_FAILED || r->status == FRAG_LAYOUT_ENDLESS;
}

/* Chooses it as the trial: a fork repeats it for comparison. */
static void end_first(struct frag_layout_forks *f, const struct frag_layouts *x, size_t point,
		      const struct frag_layout_result *r)
{
	f->scouted = false;
	if (r->status != FRAG_LAYOUT_RAN) {
		forget_first(f);
		return;
	}
	if (!f->server && count_open(x) > WORTH_IT)
		f->server = frag_forks_begin(f->folder);
	f->point = f->server ? point : SIZE_MAX;
	f->way = f->server ? FRAG_LAYOUT_TRIAL : FRAG_LAYOUT_FIRST;
}

bool frag_layout_forks_ended(struct frag_layout_forks *f, enum frag_layout_way way,
			     const struct frag_layouts *x, size_t point,
			     const struct frag_layout_result *r)
{
	if (way == FRAG_LAYOUT_FIRST && f->way == way)
		end_first(f, x, point, r);
	if (way == FRAG_LAYOUT_TRIAL) {
		if (same(x, r, &x->results[point])) {
			f->way = FRAG_LAYOUT_FORKED;
		} else {
			give_up(f);
			x->tell(x->ctx,
				"Python is started anew for each layout: forked from one that "
				"had loaded its modules, the first did not do the same");
		}
		return false;
	}
	if (f->server && waitpid(f->server, NULL, WNOHANG) == f->server) {
		f->server = 0;
		f->way = FRAG_LAYOUT_ANEW;
	}
	/* a failed fork counts only if it also fails without forking */
	return way != FRAG_LAYOUT_FORKED || (f->way == way && (!failed(r) || is_known(x, r)));
}

void frag_layout_forks_end(struct frag_layout_forks *f)
{
	frag_forks_end(f->server);
	f->server = 0;
}

void frag_layout_roles_path(const struct frag_layouts *x, size_t layout, bool any_world, char *path,
			    size_t cap)
{
	static const char *const same_ranks[] = { "ac", "recompute", "checkpoint",
						  "checkpointing" };
	uint64_t key = 0;

	for (size_t k = 0; k < x->axes.count; k++) {
		const struct frag_axis *a = &x->axes.list[k];
		const char *value = frag_axes_value(&x->axes, layout, k);
		bool counts = k == x->world ? !any_world : a->order == FRAG_AXIS_ANY;

		for (size_t n = 0; n < FRAG_ARRAY_LEN(same_ranks); n++)
			counts &= strcmp(a->name, same_ranks[n]) != 0;
		if (counts)
			key = XXH3_64bits_withSeed(value, strlen(value), key + k + 1);
	}
	snprintf(path, cap, "%.4000s/%s.%016llx", x->folder, any_world ? "alike" : "roles",
		 (unsigned long long)key);
}
