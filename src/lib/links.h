/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of structs that have members `prev` and `next`, NULL at the ends. `first` is where the
 * chain begins, an lvalue; the other arguments are pointers. Each is evaluated several times.
 */
#ifndef FRAG_LIB_LINKS_H
#define FRAG_LIB_LINKS_H

#include <stddef.h>

#define FRAG_LINK_FIRST(first, x) \
	do { \
		(x)->prev = NULL; \
		(x)->next = (first); \
		if ((x)->next) \
			(x)->next->prev = (x); \
		(first) = (x); \
	} while (0)
#define FRAG_LINK_AFTER(at, x) \
	do { \
		(x)->prev = (at); \
		(x)->next = (at)->next; \
		if ((x)->next) \
			(x)->next->prev = (x); \
		(at)->next = (x); \
	} while (0)
#define FRAG_LINK_BEFORE(first, at, x) \
	do { \
		(x)->prev = (at)->prev; \
		(x)->next = (at); \
		*((x)->prev ? &(x)->prev->next : &(first)) = (x); \
		(at)->prev = (x); \
	} while (0)
/* x keeps its own links. */
#define FRAG_UNLINK(first, x) \
	do { \
		*((x)->prev ? &(x)->prev->next : &(first)) = (x)->next; \
		if ((x)->next) \
			(x)->next->prev = (x)->prev; \
	} while (0)
/* The one behind `at`. */
#define FRAG_UNLINK_NEXT(at) \
	do { \
		(at)->next = (at)->next->next; \
		if ((at)->next) \
			(at)->next->prev = (at); \
	} while (0)

/* Queues of structs with members `older`, `newer`. `q`: a struct with `oldest` and `newest`. */
#define FRAG_QUEUE_ADD(q, x) \
	do { \
		(x)->older = (q)->newest; \
		(x)->newer = NULL; \
		*((x)->older ? &(x)->older->newer : &(q)->oldest) = (x); \
		(q)->newest = (x); \
	} while (0)
#define FRAG_QUEUE_REMOVE(q, x) \
	do { \
		*((x)->older ? &(x)->older->newer : &(q)->oldest) = (x)->newer; \
		*((x)->newer ? &(x)->newer->older : &(q)->newest) = (x)->older; \
	} while (0)

#endif
