/* SPDX-License-Identifier: Apache-2.0 */
/* A replay under observation; see change_watch.h. */
#include "change_watch.h"
#include "lib/grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(FRAG_SEGMENT_UNMAP < CHANGE_REFUSED, "kinds of change are distinct");

/* ---- lists of changes ---- */

bool changes_add(struct change_list *list, const struct change *change)
{
	if (FRAG_GROW(list->items, list->count, list->cap, "changes", NULL))
		return false;
	list->items[list->count++] = *change;
	return true;
}

int change_compare(const struct change *a, const struct change *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

FRAG_COMPARE(compare_all, struct change, change_compare(x, y), FRAG_ORDER(x->addr, y->addr))

void changes_sort(struct change_list *list)
{
	if (list->count > 1)
		qsort(list->items, list->count, sizeof(*list->items), compare_all);
}

void change_describe(char *out, size_t cap, const struct change *items, size_t count, size_t at)
{
	static const char *const names[] = {
		[FRAG_SEGMENT_ALLOC] = "segment_alloc", [FRAG_SEGMENT_FREE] = "segment_free",
		[FRAG_SEGMENT_MAP] = "segment_map",	[FRAG_SEGMENT_UNMAP] = "segment_unmap",
		[CHANGE_REFUSED] = "out of memory",	[CHANGE_SERVED] = "a refused request",
	};

	if (at < count)
		snprintf(out, cap, "%s of %" PRIu64 " bytes", names[items[at].kind],
			 items[at].bytes);
	else
		snprintf(out, cap, "nothing more");
}

/* ---- the replay ---- */

static void note(struct change_watch *w, unsigned kind, frag_addr_t addr, uint64_t bytes)
{
	struct change c = { .event = w->event, .bytes = bytes, .addr = addr, .kind = kind };

	w->short_of_memory |= !changes_add(&w->made, &c);
}

static void journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		    uint32_t stream)
{
	(void)stream;
	note(ctx, kind, addr, bytes);
}

int change_watch_open(struct change_watch *w, const struct frag_policy_spec *spec,
		      struct frag_device *device, const struct frag_trace_dev *td,
		      uint64_t limit_bytes, struct frag_err *err)
{
	struct frag_run_hooks hooks = { .journal = journal, .journal_ctx = w };
	struct frag_run_options opt;
	int rc;

	*w = (struct change_watch){ .td = td };
	frag_run_options_defaults(&opt);
	opt.limit_bytes = limit_bytes;
	opt.skip_oom = true;
	opt.windows_max = 2;
	rc = frag_run_create_hooked(spec, device, td, &opt, &hooks, &w->run, err);
	if (rc)
		change_watch_close(w);
	return rc;
}

int change_watch_step(struct change_watch *w, size_t event, struct frag_err *err)
{
	const struct frag_event *e = &w->td->events[event];
	uint64_t granted = w->run->granted_refusals;

	w->event = event;
	w->made.count = 0;
	FRAG_TRY(frag_run_feed(w->run, e, 1, err));
	if (e->kind == FRAG_EV_ALLOC && w->run->slots[e->slot].state != SLOT_LIVE)
		note(w, CHANGE_REFUSED, FRAG_NO_ADDR, e->bytes);
	if (e->kind == FRAG_EV_REFUSED && w->run->granted_refusals != granted)
		note(w, CHANGE_SERVED, FRAG_NO_ADDR, e->bytes);
	changes_sort(&w->made);
	return w->short_of_memory ? frag_fail_nomem(err, "verify") : 0;
}

void change_watch_close(struct change_watch *w)
{
	frag_run_destroy(w->run);
	frag_host_free(w->made.items);
	*w = (struct change_watch){ 0 };
}
