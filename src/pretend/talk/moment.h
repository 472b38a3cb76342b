/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moments on the modelled clock (stream.c) that may depend on what other ranks have not said yet. What a rank sends comes when that has
 * begun, and a collective ends when all have begun, each on its own clock; nobody waits for that before somebody must know:
 *
 *	moment_await(&m, talk, peers …)	m is now the later of what it was and of what comes
 *	moment_heard(node, i, message)	one rank has said when it began
 *	moment_over(&m, ns)		is it over at ns? Waits until that is certain
 *
 * It is certain once all have said when they began, or one who has not is further on its clock, since whatever it will say begins later. Who
 * waits lags behind nobody for whom it waits, so the one that is least far goes on, and the answers do not depend on how
 * fast the processes run. Only a process that does nothing for ten seconds, or waits for this one, is taken to be later.
 */
#ifndef FRAG_NOGPU_MOMENT_H
#define FRAG_NOGPU_MOMENT_H

#include "talk.h"

#define MOMENT_HANGS 4u

struct moment {
	uint64_t ns; /* not before it, */
	unsigned hangs_count;
	struct moment_hang {
		uint64_t number, after_ns; /* nor before so much after this node */
	} hangs[MOMENT_HANGS];
};

struct moment_node;

/* Safe from any thread, and so are the moments that are only used by these. */
void moment_add(struct moment *m, uint64_t ns);
/* The later of both. */
void moment_max(struct moment *m, const struct moment *other);
/* How messages are heard, by moment_heard; it may be called with locks held that delivering them needs. */
void moment_listen(void (*hear)(void));
/* Not before what these peers (-1: none) say, and ns more. NULL: no memory, or nobody is awaited. */
struct moment_node *moment_await(struct moment *m, struct talk *t, const int *peers, size_t count,
				 uint64_t ns);
/* What peers[i] says. NULL: the rank has ended, or is no longer awaited. The node lasts until all of its parts have been heard. */
void moment_heard(struct moment_node *n, size_t i, const struct talk_message *message);
/* For other ranks: when this was, or will have been. */
struct talk_when moment_when(const struct moment *m);

bool moment_over(struct moment *m, uint64_t ns);
/* Is it known to have been over at ns? Waits for nobody. */
bool moment_passed(struct moment *m, uint64_t ns);
/* When it is over. Waits until that is known. */
uint64_t moment_wait(struct moment *m);
/* Tells others what has come to be known, if they were promised it. */
void moment_tell(void);

#endif
