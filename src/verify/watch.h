/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay of a recording under watch: what each event changes in the segments of the policy,
 * and whether requests are served as recorded. For verify on a card, and on the simulated
 * card that is held against it.
 *
 * Ownership: the watch owns its run and its list until watch_close; spec, device and trace are
 * borrowed for as long.
 */
#ifndef FRAG_VERIFY_WATCH_H
#define FRAG_VERIFY_WATCH_H

#include "replay/run.h"

/* Kinds of change besides those of segments (enum frag_segment_event, which come first). */
#define CHANGE_REFUSED 4 /* recorded as served, out of memory here */
#define CHANGE_SERVED 5	 /* recorded as out of memory, served here */

struct change {
	size_t event;
	uint64_t bytes;	  /* of the segment or pages; CHANGE_REFUSED, _SERVED: of the request */
	frag_addr_t addr; /* FRAG_NO_ADDR: of a request */
	uint8_t kind;
};

struct change_list {
	struct change *items;
	size_t count, cap;
};

/* False: host memory is short, nothing was added. */
bool changes_add(struct change_list *list, const struct change *change);
/* By kind, bytes, address: within an event the order says nothing, releases go by address. */
void changes_sort(struct change_list *list);
/* <0, 0, >0 by kind and bytes: what does not depend on addresses. */
int change_compare(const struct change *a, const struct change *b);
/* "segment_alloc of 2097152 bytes" of items[at]; "nothing more" where at == count. */
void change_describe(char *out, size_t cap, const struct change *items, size_t count, size_t at);

struct watch {
	const struct frag_trace_dev *td;
	struct frag_run *run;
	size_t event;		 /* the current one */
	struct change_list made; /* by it, sorted */
	bool short_of_memory;
};

/* limit_bytes: UINT64_MAX = none. On failure there is nothing to close. */
int watch_open(struct watch *w, const struct frag_policy_spec *spec, struct frag_device *device,
	       const struct frag_trace_dev *td, uint64_t limit_bytes, struct frag_err *err);
/* Replays td->events[event]; then `made` is what it changed. Events go in order, from 0. */
int watch_step(struct watch *w, size_t event, struct frag_err *err);
/* pre: opened, or all zero. */
void watch_close(struct watch *w);

#endif
