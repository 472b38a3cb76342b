/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's symmetric memory: each rank of a group maps the buffers of all (card_vmm.c), and
 * PyTorch's own kernels wait for the other ranks and read their buffers. Kernels do not run here,
 * so this does their waiting and adding with messages, as for NCCL's calls. It recognizes kernels
 * by name and parameters, which are the same since PyTorch 2.5:
 *
 *	barrier_kernel		pads, channel, rank, ranks
 *	put_signal_kernel	pads, to whom, channel, rank, ranks
 *	wait_signal_kernel	pads, of whom, channel, rank, ranks
 *	one_shot_all_reduce	buffers, result [, input to copy], offset, count, pads, rank, ranks
 *	two_shot_all_reduce	buffers [, result: else in place], offset, count, pads, rank, ranks
 *
 * pads and buffers are arrays on the card with an address per rank. Kernels with multicast never
 * run: the card has none.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "nccl.h"
#include "pretend/talk/reduce.h"

#define RANKS_MAX 1024u

/* ---- groups -------------------------------------------------------------------------------- */

/* Named by its processes in rank order, so the name is the same in all. */
struct group {
	struct group *next;
	unsigned char name[NCCL_NAME_BYTES];
	struct comm *comm;
};

/* False: this process plays other ranks, too (cufrag_ranks.py), or a rank's memory is missing. */
static bool name_of(unsigned char *name, void *const *pads, size_t ranks, size_t rank)
{
	uint64_t half[2] = NCCL_NAME_BEGIN;

	for (size_t i = 0; i < ranks; i++) {
		const long process = lent_owner(pads[i]);

		if (!process || (process == getpid() && i != rank))
			return false;
		nccl_name_add(half, &process, sizeof(process));
	}
	memcpy(name, half, sizeof(half));
	return true;
}

/* NULL: no other process. */
static struct comm *group_of(void *const *pads, size_t ranks, size_t rank)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static struct group *groups;
	unsigned char name[NCCL_NAME_BYTES];
	struct group *g;

	if (ranks < 2 || ranks > RANKS_MAX || rank >= ranks || frag_pretend_owner(pads) < 0 ||
	    !name_of(name, pads, ranks, rank))
		return NULL;
	FRAG_LOCKED(&mutex);
	for (g = groups; g; g = g->next)
		if (!memcmp(g->name, name, sizeof(name)))
			return g->comm;
	g = frag_host_calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	memcpy(g->name, name, sizeof(name));
	g->comm = nccl_group_of_kernels(name, (int)ranks, (int)rank);
	g->next = groups;
	groups = g;
	return g->comm;
}

/* ---- kernels that only wait ---------------------------------------------------------------- */

static int begin(struct awaited *a, void *stream)
{
	if (a)
		a->lent = true;
	return nccl_begin(a, stream);
}

static int meet_all(void **p, void *stream)
{
	const int *rank = p[2], *ranks = p[3];
	struct comm *c = group_of(*(void ***)p[0], (size_t)*ranks, (size_t)*rank);

	if (!c)
		return NCCL_OK;
	nccl_sends(c, stream, 0);
	return nccl_give_all(c, NULL, 0, 0, PRETEND_UNKNOWN)
		       ?: begin(nccl_await_all(c, NULL, 0, 0), stream);
}

static int signal_one(void **p, void *stream, bool waits)
{
	const int *peer = p[1], *rank = p[3], *ranks = p[4];
	struct comm *c = group_of(*(void ***)p[0], (size_t)*ranks, (size_t)*rank);

	if (!c || *peer < 0 || *peer >= *ranks || *peer == *rank)
		return NCCL_OK;
	nccl_sends(c, stream, 0);
	return waits ? begin(nccl_await_one(c, *peer, TALK_SEND, NULL, 0), stream)
		     : nccl_give(c, *peer, TALK_SEND, NULL, 0, PRETEND_UNKNOWN);
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* ncclDataType_t of a template's first argument in a mangled name; -1: unknown. */
static int type_of(const char *at)
{
	return !strncmp(at, "If", 2)		      ? 7
	       : !strncmp(at, "IN3c108BFloat16E", 16) ? 9
	       : !strncmp(at, "IN3c104HalfE", 12)     ? 6
						      : -1;
}

/* Number of pointers before the first number, from the second parameter of "EvPPT_…m" on. -1:
 * another signature. */
static int pointers_of(const char *at)
{
	int pointers = 0;

	at = strstr(at, "EvPPT_");
	if (!at)
		return -1;
	for (at += strlen("EvPPT_"); *at == 'P' || *at == 'S'; pointers++) {
		at = strchr(at, '_');
		if (!at++)
			return -1;
	}
	return *at == 'm' ? pointers : -1;
}

/* at: behind the kernel's name. Without other processes, all hold the same values. */
static int sum_of_all(const char *at, void **p, void *stream, bool once)
{
	const int type = type_of(at), pointers = pointers_of(at), n = pointers + 1;
	void *result = pointers > 0 ? *(void **)p[1] : NULL, **buffers = *(void ***)p[0];
	const void *input = pointers > 1 ? *(const void **)p[2] : NULL; /* copied first */
	struct comm alone = { .ranks = 1, .kernels = true }, *c;
	size_t count, rank, bytes;
	char *own;

	if (type < 0 || pointers < 0 || pointers > 2 || (once && !result) ||
	    frag_pretend_owner(buffers) < 0)
		return NCCL_OK;
	count = *(size_t *)p[n + 1];
	rank = *(size_t *)p[n + 3];
	bytes = count * reduce_type_bytes(type);
	c = group_of(*(void ***)p[n + 2], *(size_t *)p[n + 4], rank);
	own = (char *)buffers[rank] + *(size_t *)p[n] * reduce_type_bytes(type);
	if (input && !frag_pretend_cudaMemcpyAsync(own, input, bytes, 3, stream))
		frag_pretend_arrived(own, input, bytes);
	return frag_pretend_ncclAllReduce(own, result ? result : own, count, type, REDUCE_SUM,
					  c ? c : &alone, stream);
}

static int launched(const void *function, void **parameters, void *stream)
{
	static const char *const kernels[] = { "14barrier_kernelE",
					       "17put_signal_kernelE",
					       "18wait_signal_kernelE",
					       "26one_shot_all_reduce_kernel",
					       "26two_shot_all_reduce_kernel",
					       "34two_shot_all_reduce_kernel_inplace" };
	const char *name = *frag_pretend_lent() ? frag_pretend_name_of(function) : NULL, *at = NULL;
	size_t i = 0;

	if (!name || !parameters)
		return PRETEND_OK;
	while (i < FRAG_ARRAY_LEN(kernels) && !(at = strstr(name, kernels[i])))
		i++;
	if (i == 0)
		return meet_all(parameters, stream);
	if (i < 3)
		return signal_one(parameters, stream, i == 2);
	return at ? sum_of_all(at + strlen(kernels[i]), parameters, stream, i == 3) : PRETEND_OK;
}

static void __attribute__((constructor)) put_in(void)
{
	frag_pretend_ranks.symmetric = launched;
}
