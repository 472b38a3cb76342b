/* SPDX-License-Identifier: Apache-2.0 */
/* How the processes of a layout start; see layouts.h. */
#include "layouts.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <xxhash.h>

#include "pretend/start/fork_server.h"

#define WORTH_IT \
	4u /* unknown layouts: below, the server and a known one cost more than they save */

void frag_layout_forks_init(struct frag_layout_forks *f, const struct frag_layouts *x,
			    const char *folder)
{
	*f = (struct frag_layout_forks){ .folder = folder, .known = SIZE_MAX };
	/* a memory limit is for children of one process; engines start their own */
	f->way = x->exact || x->requests || x->pretend.memory_bytes ? FRAG_LAYOUT_ANEW
								    : FRAG_LAYOUT_FIRST;
}

void frag_layout_forks_enter(const struct frag_layout_forks *f, enum frag_layout_way way,
			     struct frag_layouts *x)
{
	x->pretend.trial = way == FRAG_LAYOUT_KNOWN;
	if (way == FRAG_LAYOUT_FIRST)
		frag_launch_put_path(CUFRAG_NOGPU_MODULES, f->folder, "modules");
	if (way == FRAG_LAYOUT_FORKED || way == FRAG_LAYOUT_KNOWN)
		frag_launch_put_path(CUFRAG_NOGPU_FORKS, f->folder, "ask");
}

size_t frag_layouts_open_count(const struct frag_layouts *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->border.count; i++)
		n += x->border.points[i].decided != x->border.cards;
	return n;
}

enum frag_layout_way frag_layout_forks_way(const struct frag_layout_forks *f,
					   const struct frag_layouts *x, size_t point)
{
	return x->results[point].anew || f->way == FRAG_LAYOUT_KNOWN ? FRAG_LAYOUT_ANEW : f->way;
}

bool frag_layout_failed(const struct frag_layout_result *r)
{
	return r->status == FRAG_LAYOUT_FAILED || r->status == FRAG_LAYOUT_ENDLESS;
}

void frag_layout_forks_end(struct frag_layout_forks *f)
{
	frag_forks_end(f->server);
	f->server = 0;
	f->way = FRAG_LAYOUT_ANEW;
}

bool frag_layout_forks_ended(struct frag_layout_forks *f, enum frag_layout_way way,
			     struct frag_layouts *x, size_t point,
			     const struct frag_layout_result *r)
{
	/* a failed layout may not have loaded the modules that the next one needs */
	if (way == FRAG_LAYOUT_FIRST && f->way == way && r->status == FRAG_LAYOUT_RAN &&
	    frag_layouts_open_count(x) > WORTH_IT && (f->server = frag_forks_begin(f->folder))) {
		f->known = point;
		f->way = FRAG_LAYOUT_KNOWN;
	}
	if (way == FRAG_LAYOUT_KNOWN) {
		/* results begin as zeros, padding and texts included */
		f->way = FRAG_LAYOUT_FORKED;
		if (memcmp(r, &x->results[point], sizeof(*r)) != 0) {
			frag_layout_forks_end(f);
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
	/* a fork that failed runs again without one */
	x->results[point].anew =
		way == FRAG_LAYOUT_FORKED && (f->way != way || frag_layout_failed(r));
	return !x->results[point].anew;
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
