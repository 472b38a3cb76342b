/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device of a running PyTorch: a policy, and what it needs beyond a replay: waiting for
 * streams, captures, threads.
 *
 * - A block that other streams used goes to the policy when the events recorded at its free are done
 *   (free_requested at once, free then), as in a replay. While something is captured no event is recorded or
 *   asked for; that is done with the first request after it.
 * - Memory of a capture belongs to its private pool. Policies without FRAG_POLICY_POOLS do not know pools: then a
 *   second policy, `pytorch`, serves them, and nothing of it reaches the eager program.
 * - Policies without FRAG_POLICY_STREAMS hand any free memory to any stream: then the stream waits, on the card,
 *   for those that freed something since it waited for them (live_wait.c).
 *
 * Lock: every function needs d->mutex held, except those that open or lock a device. Order:
 * frag_live.opening, then one device.
 */
#ifndef FRAG_LIVE_CORE_H
#define FRAG_LIVE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include <frag/base.h>
#include <frag/policy.h>

#include "lib/addr_map.h"
#include "lib/slabs.h"
#include "live.h"
#include "device/driver/cu_card.h"

struct frag_live_use {
	uint32_t stream;
	struct frag_live_use *next;
};

struct frag_live_block {
	struct frag_block b;
	struct frag_live_use *uses;   /* of other streams than its own */
	struct frag_live_block *next; /* freed in a capture, events still to be recorded */
	uint32_t events;	      /* recorded, not seen done */
	uint16_t pool;		      /* index of pools + 1; 0 = none */
	bool aside;		      /* of the second policy */
	uint32_t context;	      /* where it was asked for; 0 = not known */
};

struct frag_live_wait {
	struct frag_live_block *block;
	void *event;
	struct frag_live_wait *next; /* of the same stream */
};

/* A private pool. Its index + 1 is the number that policies see. */
struct frag_live_pool {
	struct frag_live_pool_id id;
	uint32_t refs, live;
	uint32_t serial; /* in the recording: places are used again */
	bool used;	 /* else the place is free */
};

/* std::function<bool(cudaStream_t)> of libstdc++, any ABI. */
struct frag_live_filter {
	void *data[2];
	bool (*manager)(struct frag_live_filter *to, const struct frag_live_filter *from, int op);
	bool (*invoker)(const struct frag_live_filter *self, void **stream);
};

/* Requests of these streams go to a pool. */
struct frag_live_capture {
	uint16_t pool;
	bool by_filter;
	void *stream;
	struct frag_live_filter filter;
};
#define FRAG_LIVE_CAPTURES_MAX 64

/* What happened (live_history.c): `count` entries from `first` on, in a ring. */
struct frag_live_history {
	struct frag_live_event *ring;
	uint64_t first, count, cap;
	uint64_t max;
	uint32_t actions; /* bits of those wanted */
	int64_t epoch_ns; /* of the clock's zero */
};

struct frag_live_dev {
	pthread_mutex_t mutex;
	int ordinal;
	struct frag_cu_card *card;
	struct frag_device *dev;
	struct frag_policy main, aside; /* aside.ops NULL: not needed so far */
	uint64_t limit_bytes;		/* UINT64_MAX = none */
	double fraction;
	uint64_t fail_every, start_ns;
	struct frag_err problem; /* of an upcall, or of a free */

	struct frag_slab blocks, uses, waits;
	struct frag_addr_map live; /* address -> block */
	struct {
		struct frag_live_wait *first, *last;
	} * waiting; /* by stream */
	uint32_t waiting_cap;
	uint64_t waiting_count; /* events */
	struct frag_live_block *deferred;

	struct frag_live_pool *pools;
	size_t pools_count, pools_cap;
	uint32_t pools_serial;
	struct frag_live_capture captures[FRAG_LIVE_CAPTURES_MAX];
	unsigned captures_count;

	bool handed;	  /* the policy gives memory of one stream to another */
	uint64_t serial;  /* of frees */
	uint64_t *freed;  /* [stream]: serial of its last */
	uint64_t *waited; /* [stream * cap + other]: serial up to which it has waited */
	uint32_t waited_cap;

	struct frag_live_history history;
	uint32_t context; /* of the request or free under way */
	uint64_t seen_calls;
	uint64_t requests, refusals; /* since the start */
	struct frag_live_stats stats;
	struct frag_live_base { /* at the last reset */
		int64_t calls, ns, failed, took, gave;
	} base;
};

/* The process. */
struct frag_live_process {
	int pid;       /* that started it; 0 = not started */
	bool is_child; /* getpid is a system call, and a free happens every microsecond: it is told */
	struct frag_policy_spec *spec, *aside;
	uint64_t limit_bytes, seed, fail_every;
	unsigned release;
	uint64_t start_ns;
	pthread_mutex_t opening;
	struct frag_live_dev *devs[FRAG_LIVE_DEVICES_MAX];
	double fractions[FRAG_LIVE_DEVICES_MAX]; /* 0 = not set */
	void (*on_oom)(int device, uint64_t requested, uint64_t total, uint64_t free);
};
extern struct frag_live_process frag_live;

/* The device, opened if need be. Errors: of the driver, of the policy. */
int frag_live_dev_get(int ordinal, struct frag_live_dev **out, struct frag_err *err);
void frag_live_dev_close(
	struct frag_live_dev *d); /* tests; at the end of the process with card->dead */
void frag_live_lock(struct frag_live_dev *d);
void frag_live_unlock(struct frag_live_dev *d);
/* Is this the process that started the library, and not a child of it? */
static inline bool frag_live_is_on(void)
{
	return FRAG_LIKELY(frag_live.pid != 0) && FRAG_LIKELY(!frag_live.is_child);
}
/* The device, if it was used; NULL else. known: and this is the process that did. opened: a capture
 * may be the first that a device sees. */
struct frag_live_dev *frag_live_used(int device);
static inline struct frag_live_dev *frag_live_known(int device)
{
	return frag_live_is_on() ? frag_live_used(device) : NULL;
}
struct frag_live_dev *frag_live_opened(int device);
/* FRAG_LIVE_WITH (d, frag_live_used(device)) { … }: with it locked, or not at all. No return. */
#define FRAG_LIVE_WITH(d, device) \
	for (struct frag_live_dev *d = frag_live_locked(device); d; frag_live_unlock(d), d = NULL)
static inline struct frag_live_dev *frag_live_locked(struct frag_live_dev *d)
{
	if (d)
		frag_live_lock(d);
	return d;
}

/* 0 and *out, FRAG_OOM, or an error. pre: bytes > 0 */
int frag_live_take(struct frag_live_dev *d, uint64_t bytes, void *stream, frag_addr_t *out,
		   struct frag_err *err);
void frag_live_give(struct frag_live_dev *d, frag_addr_t addr);
void frag_live_use(struct frag_live_dev *d, frag_addr_t addr, void *stream);
/* empty_cache; asked: by the program, so it is in the recording. */
int frag_live_trim(struct frag_live_dev *d, bool asked, struct frag_err *err);

/* ---- live_log.c ---- */

/* A .csv has the lines, another file is a growing .cft. Replaces the file. Errors: FRAG_EOUTPUT. */
int frag_live_log_open(const char *path, struct frag_err *err);
/* Is anything recorded? Asked by every thread of the program; who writes finds the disk full. */
extern atomic_bool frag_live_log_on;
static inline bool frag_live_logging(void)
{
	return atomic_load_explicit(&frag_live_log_on, memory_order_acquire);
}

struct frag_live_line {
	const char *action; /* as read_csv.c knows it */
	frag_addr_t addr;
	uint64_t bytes, time_ns;
	const void *stream;
	int device;
	uint32_t pool;
};
void frag_live_log_line(const struct frag_live_line *l);
/* ---- live_torch.c ---- */

/* Looks all names up, once, in the libraries of the process: when memory is out it is too late.
 * True: OutOfMemoryError can be raised; else it is a RuntimeError. */
bool frag_live_throw_ready(void);
/* pre: no lock is held. Where PyTorch's exceptions are not there the process ends with the text. */
void frag_live_throw_oom(const char *text) __attribute__((noreturn));
void frag_live_throw_error(const char *text) __attribute__((noreturn));

/* ---- live_history.c ---- */

extern atomic_bool frag_live_history_on;
static inline bool frag_live_in_history(void)
{
	return atomic_load_explicit(&frag_live_history_on, memory_order_acquire);
}
void frag_live_history_note(struct frag_live_dev *d, const struct frag_live_line *l,
			    const struct frag_live_block *block);
/* A new device. pre: opening is locked */
void frag_live_history_begin(struct frag_live_dev *d);
/* For frag_device.log. */
void frag_live_history_call(void *ctx, enum frag_call call, uint64_t bytes, int result);
extern uint32_t (*frag_live_on_alloc)(void), (*frag_live_on_free)(void);
/* Where the request, or the free, comes from. pre: no lock is held */
static inline uint32_t frag_live_context(bool of_free)
{
	uint32_t (*fn)(void) = __atomic_load_n(of_free ? &frag_live_on_free : &frag_live_on_alloc,
					       __ATOMIC_ACQUIRE);

	return FRAG_UNLIKELY(fn != NULL) ? fn() : 0;
}

/* ---- reports ---- */

void frag_live_tell(struct frag_live_dev *d, const char *action,
		    const struct frag_live_block *block, uint64_t bytes, const void *stream,
		    uint32_t pool);
static inline bool frag_live_told(void)
{
	return frag_live_logging() || frag_live_in_history();
}
/* A line of the recording and of the history, if there is one. block: what it is about; NULL: the
 * values of a refused request (bytes, stream) or of a pool (its serial). */
static inline void frag_live_note(struct frag_live_dev *d, const char *action,
				  const struct frag_live_block *block, uint64_t bytes,
				  const void *stream, uint32_t pool)
{
	if (FRAG_UNLIKELY(frag_live_told()))
		frag_live_tell(d, action, block, bytes, stream, pool);
}

/* ---- live_wait.c: blocks that other streams used ---- */

/* pre: the block has uses. It goes back to its policy later. */
void frag_live_wait_for(struct frag_live_dev *d, struct frag_live_block *block);
/* Gives back what is done; all: waits for everything first. Nothing in a capture. */
void frag_live_settle(struct frag_live_dev *d, bool all);
/* live_core.c: the block goes to its policy now. */
void frag_live_complete(struct frag_live_dev *d, struct frag_live_block *block);

/* ---- live_pools.c ---- */

/* The pool that a request of this stream belongs to, 0 = none. */
uint16_t frag_live_pool_of(const struct frag_live_dev *d, void *stream);
/* Pools whose graphs are gone give back what they can. */
int frag_live_pools_trim(struct frag_live_dev *d, struct frag_err *err);

/* A block of a policy that does not know streams is handed out, and comes back. */
int frag_live_hand_over(struct frag_live_dev *d, const struct frag_block *b, struct frag_err *err);
void frag_live_left_by(struct frag_live_dev *d, const struct frag_block *b);
/* The card was waited for: nothing is in use. */
void frag_live_left_forget(struct frag_live_dev *d);

/* ---- live_stats.c ---- */

void frag_live_count_alloc(struct frag_live_dev *d, const struct frag_live_block *block);
/* freed by the program; returned to the policy */
void frag_live_count_free(struct frag_live_dev *d, const struct frag_live_block *block);
void frag_live_count_done(struct frag_live_dev *d, const struct frag_live_block *block);
/* After calls of the policy: what the driver did meanwhile. */
void frag_live_count_driver(struct frag_live_dev *d);

#endif
