/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observes a replay of a recording: what each event changes in the policy's segments, and whether
 * requests are served as recorded. For verify on a card, and on the simulated card compared with
 * it.
 *
 * Ownership: the watch owns its run and its list until change_watch_close; spec, device and trace
 * are borrowed until then.
 */
#ifndef FRAG_VERIFY_CHANGE_WATCH_H
#define FRAG_VERIFY_CHANGE_WATCH_H

#include "replay/run.h"

/* Kinds of change besides those of segments (enum frag_segment_event, which come first). */
#define CHANGE_REFUSED 4 /* recorded as served, out of memory here */
#define CHANGE_SERVED 5	 /* recorded as out of memory, served here */

struct change {
	size_t event;
	uint64_t bytes;	  /* bytes of the segment or pages; CHANGE_REFUSED, _SERVED: of the
			   * request */
	frag_addr_t addr; /* FRAG_NO_ADDR for a request */
	uint8_t kind;
};

struct change_list {
	struct change *items;
	size_t count, cap;
};

/* False: host memory is short; nothing was added. */
bool changes_add(struct change_list *list, const struct change *change);
/* Sorts by kind, bytes, address: order in an event means nothing, releases follow addresses. */
void changes_sort(struct change_list *list);
/* <0, 0, >0 by kind and bytes, which do not depend on addresses. */
int change_compare(const struct change *a, const struct change *b);
/* Text of items[at], "segment_alloc of 2097152 bytes"; "nothing more" if at == count. */
void change_describe(char *out, size_t cap, const struct change *items, size_t count, size_t at);

struct change_watch {
	const struct frag_trace_dev *td;
	struct frag_run *run;
	size_t event;		 /* the current event */
	struct change_list made; /* changes by this event, sorted */
	bool short_of_memory;
};

/* limit_bytes: UINT64_MAX = none. On failure, nothing needs closing. */
int change_watch_open(struct change_watch *w, const struct frag_policy_spec *spec,
		      struct frag_device *device, const struct frag_trace_dev *td,
		      uint64_t limit_bytes, struct frag_err *err);
/* Replays td->events[event]; `made` then has its changes. Call in order, from 0. */
int change_watch_step(struct change_watch *w, size_t event, struct frag_err *err);
/* pre: opened, or zeroed. */
void change_watch_close(struct change_watch *w);

#endif
