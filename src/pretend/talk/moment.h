/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moments on the modelled clock (stream.c) that may depend on other ranks. A message arrives after
 * its send began; a collective ends after all members have begun, each on its own clock. Completion
 * times are computed lazily, when first queried:
 *
 *	moment_await(&m, talk, peers …)	m becomes the later of itself and what the peers send
 *	moment_heard(node, i, message)	one peer's message arrived, with its start
 *	moment_over(&m, ns)		is it over at ns? Waits until that is certain
 *
 * It is certain once each peer has sent its start, or its clock is past `ns`, because later
 * messages start later. The rank with the smallest clock never waits, so there is always progress,
 * and answers do not depend on the speed of processes. Only a peer that makes no progress for ten
 * seconds, or waits for this process, is assumed to be later.
 */
#ifndef FRAG_NOGPU_MOMENT_H
#define FRAG_NOGPU_MOMENT_H

#include "talk.h"

#define MOMENT_HANGS 4u

struct moment {
	uint64_t ns; /* not before this time */
	unsigned hangs_count;
	struct moment_hang {
		uint64_t number, after_ns; /* nor before this long after node `number` */
	} hangs[MOMENT_HANGS];
};

struct moment_node;

/* Thread-safe, and so is every struct moment that is only accessed through these calls. */
void moment_add(struct moment *m, uint64_t ns);
/* Sets m to the later of both. */
void moment_max(struct moment *m, const struct moment *other);
/* Sets the function that reads messages and calls moment_heard; callers may hold locks that
 * delivery needs. */
void moment_listen(void (*hear)(void));
/* Delays m to `ns` after the starts of these peers (-1: none). NULL: no memory, or no peers. */
struct moment_node *moment_await(struct moment *m, struct talk *t, const int *peers, size_t count,
				 uint64_t ns);
/* The message of peers[i]. NULL: the rank has ended, or is no longer awaited. The node lasts until
 * all parts are heard. */
void moment_heard(struct moment_node *n, size_t i, const struct talk_message *message);
/* The start to send to other ranks: known, or promised. */
struct talk_when moment_when(const struct moment *m);

bool moment_over(struct moment *m, uint64_t ns);
/* Is it known to be over at ns? Does not wait. */
bool moment_passed(struct moment *m, uint64_t ns);
/* Waits until its time is known, and returns it. */
uint64_t moment_wait(struct moment *m);
/* Publishes results that other ranks were promised. */
void moment_tell(void);

#endif
