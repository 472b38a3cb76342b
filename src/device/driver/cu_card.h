/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A card by the CUDA driver, for policies in a running PyTorch (src/inject/live) and as the base of
 * the card of measurements (src/device/cuda), which puts what it checks and measures around these
 * operations. No header of CUDA is needed to build it.
 *
 * - Streams are handles by index. Of a running program: 0 is the default stream, the others in the order of first use.
 * - Every call makes the card's primary context current and restores the thread's, and is allowed while a stream of
 *   the program is captured (relaxed mode). During a capture nothing is synchronised (FRAG_EDEVICE), fences are
 *   not queried (they count as not done), and a fence on a captured stream is recorded after the capture. A card of
 *   one thread, whose context is current anyway, does without.
 * - Reserved: pages of 2 MiB under cudaMalloc, handles, what the driver says its pools hold.
 *
 * One thread at a time (for a running PyTorch, the lock of live_core.h).
 */
#ifndef FRAG_DEVICE_CU_CARD_H
#define FRAG_DEVICE_CU_CARD_H

#include <frag/device.h>

#include "device/driver_memory.h"
#include "cu_table.h"

/* Signatures are those of devices, visitors and PyTorch: most functions use a few arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct frag_cu_fence {
	void *event;
	uint64_t serial;
	uint32_t stream;
	bool open, late; /* recorded and not seen done; to be recorded after the capture */
};

struct frag_cu_mempool {
	void *pool;
	struct frag_cu_mempool *next;
};

struct frag_cu_card {
	const struct frag_cu *cu;
	struct frag_device *dev; /* the front */
	int ordinal, device;
	void *context;
	char name[96];
	int driver_version;
	uint64_t total_bytes, context_bytes, granule_bytes;
	uint32_t can;
	bool dead;	   /* the process ends: calls do nothing and succeed */
	unsigned captures; /* under way */
	bool fenced;	   /* who unmaps waits before */
	bool own_thread;   /* the context is current, and no stream is captured */
	bool idle;	   /* nothing was handed out or freed since the card was waited for */

	struct frag_drvmem memory;    /* of cuMemAlloc and cuMemCreate */
	struct frag_addr_map managed; /* address -> bytes */
	uint64_t managed_bytes;
	struct frag_cu_mempool *pools;

	void **streams; /* raw handles by index */
	uint32_t streams_count, streams_cap, last_stream;
	struct frag_cu_fence *fences;
	uint32_t fences_count, fence_next;
	uint64_t fence_serial;
	void **events; /* not in use */
	size_t events_count, events_cap;

	int peers[64]; /* devices that may reach this card's mapped memory */
	unsigned peers_count;
};

/* Fills in a zeroed card: `ordinal` of the driver, with its primary context. */
int frag_cu_card_init(struct frag_cu_card *c, int ordinal, struct frag_err *err);
/* The same as a device of its own. Only tests close it. */
int frag_cu_card_open(int ordinal, struct frag_cu_card **out, struct frag_err *err);
/* What close does, but for the struct itself; pools that are left are forgotten, too. */
void frag_cu_card_forget(struct frag_cu_card *c);

/* FRAG_CU_ENTERED(c): the context is current to the end of the scope; captures allow it. */
struct frag_cu_scope {
	const struct frag_cu_card *card;
	bool pushed;
	int mode;
};
struct frag_cu_scope frag_cu_enter(const struct frag_cu_card *c);
void frag_cu_leave(struct frag_cu_scope *s);
#define FRAG_CU_ENTERED(c) \
	struct frag_cu_scope scope_ __attribute__((unused)) FRAG_AUTO(frag_cu_leave) = \
		frag_cu_enter(c)

/* FRAG_CARD_CALL(c, err, cuMemFree_v2, addr): one call of the driver between enter and leave; none
 * when the process ends. 0, or FRAG_EDEVICE with the call's name. FRAG_CARD_ALLOC: the same for
 * memory; FRAG_OOM where the card has none left. */
#define FRAG_CARD_CALL(c, err, call, ...) \
	frag_cu_check((c)->cu, (c)->dead ? 0 : FRAG_CARD_DO_(c, call, __VA_ARGS__), #call, (err))
#define FRAG_CARD_ALLOC(c, err, call, ...) \
	frag_cu_check_alloc((c)->cu, FRAG_CARD_DO_(c, call, __VA_ARGS__), #call, (err))
#define FRAG_CARD_DO_(c, call, ...) \
	({ \
		FRAG_CU_ENTERED(c); \
		(c)->cu->call(__VA_ARGS__); \
	})

FRAG_DEVICE_DECLARE(frag_cu_card)

/* ---- streams, events (cu_fence.c) ---- */

/* Room for `count` streams; new handles are NULL. Errors: FRAG_ENOMEM. */
int frag_cu_streams_room(struct frag_cu_card *c, uint32_t count, struct frag_err *err);
/* Index of a stream of the program. Errors: FRAG_ENOMEM. */
int frag_cu_stream_index(struct frag_cu_card *c, void *stream, uint32_t *index,
			 struct frag_err *err);
/* An event to record, and back. pre: entered. */
int frag_cu_event_take(struct frag_cu_card *c, void **out, struct frag_err *err);
void frag_cu_event_give(struct frag_cu_card *c, void *event);

/* ---- virtual memory (cu_vmm.c), pools of the driver (cu_mempool.c) ---- */

/* What is mapped on `c` can be reached from `peer` from now on, if the hardware can. */
void frag_cu_card_peer(struct frag_cu_card *c, const struct frag_cu_card *peer);
struct frag_cu_allocation frag_cu_on_card(const struct frag_cu_card *c);

uint64_t frag_cu_mempool_bytes(struct frag_cu_card *c);

#endif
