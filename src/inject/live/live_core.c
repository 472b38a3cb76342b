/* SPDX-License-Identifier: Apache-2.0 */
/* A device of a running PyTorch: requests and frees on their way to the policy. */
#include "live_core.h"

#include <frag/clock.h>

struct frag_live_process frag_live = { .opening = PTHREAD_MUTEX_INITIALIZER };

/* ---- opening -------------------------------------------------------------------------- */

static void sync_upcall(void *ctx)
{
	struct frag_live_dev *d = ctx;

	d->stats.num_sync_all_streams++;
	frag_live_settle(d, true);
}

static int make_policy(struct frag_live_dev *d, const struct frag_policy_spec *spec,
		       struct frag_policy *out, struct frag_err *err)
{
	struct frag_policy_env env = {
		.dev = d->dev,
		.limit_bytes = d->limit_bytes,
		.device_total_bytes = d->card->total_bytes,
		.seed = frag_live.seed,
		.streams_count = 1,
		.sync = sync_upcall,
		.sync_ctx = d,
		.source_release = frag_live.release,
		.ordinal = (uint32_t)d->ordinal,
	};

	return frag_policy_create(spec, &env, out, err);
}

static int open_device(struct frag_live_dev *d, struct frag_err *err)
{
	const struct frag_policy_ops *core = frag_policy_spec_core(frag_live.spec);
	uint32_t stream;

	FRAG_TRY(frag_cu_card_open(d->ordinal, &d->card, err));
	d->dev = d->card->dev;
	d->card->fenced = core->flags & FRAG_POLICY_FENCED;
	d->limit_bytes = frag_live.limit_bytes;
	if (frag_live.fractions[d->ordinal] > 0)
		d->fraction = frag_live.fractions[d->ordinal];
	if (d->fraction < 1)
		d->limit_bytes = FRAG_MIN(d->limit_bytes,
					  (uint64_t)(d->fraction * (double)d->card->total_bytes));
	d->handed = !(core->flags & FRAG_POLICY_STREAMS);
	d->fail_every = frag_live.fail_every;
	d->dev->fail_call = d->fail_every;
	frag_live_history_begin(d);
	d->dev->log = frag_live_history_call;
	d->dev->log_ctx = d;
	FRAG_TRY(frag_cu_stream_index(d->card, NULL, &stream, err));
	return make_policy(d, frag_live.spec, &d->main, err);
}

void frag_live_dev_close(struct frag_live_dev *d)
{
	frag_policy_destroy(&d->aside);
	frag_policy_destroy(&d->main);
	if (d->card)
		frag_dev_close(d->dev);
	frag_slab_release(&d->blocks);
	frag_slab_release(&d->uses);
	frag_slab_release(&d->waits);
	frag_addr_map_release(&d->live);
	pthread_mutex_destroy(&d->mutex);
	FRAG_FREE(d->waiting, d->freed, d->waited, d->pools, d->history.ring, d);
}

static int make_device(int ordinal, struct frag_live_dev **out, struct frag_err *err)
{
	struct frag_live_dev *d;
	int rc;

	FRAG_TRY_CALLOC(d, 1, "device", err);
	pthread_mutex_init(&d->mutex, NULL);
	d->ordinal = ordinal;
	d->start_ns = frag_live.start_ns;
	d->fraction = 1;
	frag_slab_init(&d->blocks, sizeof(struct frag_live_block));
	frag_slab_init(&d->uses, sizeof(struct frag_live_use));
	frag_slab_init(&d->waits, sizeof(struct frag_live_wait));
	rc = open_device(d, err);
	if (rc)
		frag_live_dev_close(d);
	else
		*out = d;
	return rc;
}

/* Mapped memory of each is for the others, too. pre: opening is locked, `d` is not yet known. */
static void introduce(struct frag_live_dev *d)
{
	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX; i++) {
		struct frag_live_dev *other = frag_live.devs[i];

		if (!other)
			continue;
		frag_live_lock(other);
		frag_cu_card_peer(other->card, d->card);
		frag_live_unlock(other);
		frag_cu_card_peer(d->card, other->card);
	}
}

int frag_live_dev_get(int ordinal, struct frag_live_dev **out, struct frag_err *err)
{
	struct frag_live_dev *d;
	int rc = 0;

	if (ordinal < 0 || ordinal >= FRAG_LIVE_DEVICES_MAX)
		return frag_fail(err, FRAG_EDEVICE, "there is no device %d", ordinal);
	d = frag_live_used(ordinal);
	if (FRAG_UNLIKELY(!d)) {
		pthread_mutex_lock(&frag_live.opening);
		d = frag_live.devs[ordinal];
		if (!d)
			rc = make_device(ordinal, &d, err);
		if (!rc && d != frag_live.devs[ordinal]) {
			introduce(d);
			__atomic_store_n(&frag_live.devs[ordinal], d, __ATOMIC_RELEASE);
		}
		pthread_mutex_unlock(&frag_live.opening);
	}
	*out = d;
	return rc;
}

struct frag_live_dev *frag_live_used(int device)
{
	if (device < 0 || device >= FRAG_LIVE_DEVICES_MAX)
		return NULL;
	return __atomic_load_n(&frag_live.devs[device], __ATOMIC_ACQUIRE);
}

struct frag_live_dev *frag_live_opened(int device)
{
	struct frag_live_dev *d = NULL;

	return frag_live_is_on() && !frag_live_dev_get(device, &d, NULL) ? d : NULL;
}

void frag_live_lock(struct frag_live_dev *d)
{
	if (FRAG_LIKELY(!pthread_mutex_trylock(&d->mutex)))
		return;
	pthread_mutex_lock(&d->mutex);
	d->stats.contended++;
}

void frag_live_unlock(struct frag_live_dev *d)
{
	d->context = 0;
	pthread_mutex_unlock(&d->mutex);
}

void frag_live_tell(struct frag_live_dev *d, const char *action,
		    const struct frag_live_block *block, uint64_t bytes, const void *stream,
		    uint32_t pool)
{
	struct frag_live_line l = { .action = action,
				    .bytes = bytes,
				    .time_ns = d->dev->now_ns,
				    .stream = stream,
				    .device = d->ordinal,
				    .pool = pool };

	if (block) {
		l.addr = block->b.addr;
		l.bytes = block->b.requested;
		l.stream = d->card->streams[block->b.stream];
		l.pool = block->pool ? d->pools[block->pool - 1].serial : 0;
	}
	if (frag_live_in_history())
		frag_live_history_note(d, &l, block);
	if (frag_live_logging())
		frag_live_log_line(&l);
}

/* ---- between two calls of the policy ----------------------------------------------------- */

static void begin(struct frag_live_dev *d)
{
	d->dev->now_ns = frag_clock_ns() - d->start_ns;
	d->card->idle = false;
	if (FRAG_UNLIKELY(d->waiting_count || d->deferred))
		frag_live_settle(d, false);
}

static void end(struct frag_live_dev *d)
{
	if (FRAG_LIKELY(d->dev->driver_calls == d->seen_calls))
		return;
	frag_live_count_driver(d);
	if (d->fail_every && d->dev->driver_calls >= d->dev->fail_call)
		d->dev->fail_call = d->dev->driver_calls + d->fail_every;
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct frag_policy *policy_of(struct frag_live_dev *d, bool aside)
{
	return aside ? &d->aside : &d->main;
}

static int ask(struct frag_live_dev *d, struct frag_live_block *block,
	       const struct frag_request *req, struct frag_err *err)
{
	struct frag_policy *p = policy_of(d, block->aside);
	int rc = p->ops->alloc(p->self, req, &block->b, err);

	block->b.stream = req->stream;
	block->b.requested = req->bytes;
	if (rc || FRAG_LIKELY(d->dev->reserved_bytes <= d->limit_bytes))
		return rc;
	/* a policy that does not know the limit, or two that do not know each other */
	FRAG_TRY(p->ops->free(p->self, &block->b, err));
	return FRAG_OOM;
}

/* As PyTorch does: waits for everything, gives back what can go, and asks again. */
static int retry(struct frag_live_dev *d, struct frag_live_block *block,
		 const struct frag_request *req, struct frag_err *err)
{
	/* nothing may be waited for in a capture; what the policy could give back itself it has */
	if (d->captures_count)
		return FRAG_OOM;
	FRAG_TRY(frag_live_trim(d, false, err));
	return ask(d, block, req, err);
}

static int serve(struct frag_live_dev *d, struct frag_live_block *block,
		 const struct frag_request *req, struct frag_err *err)
{
	int rc = ask(d, block, req, err);

	if (FRAG_LIKELY(!rc)) {
		d->stats.num_alloc_retries += block->b.cls == FRAG_CLASS_RELEASE;
		return 0;
	}
	if (rc == FRAG_OOM) {
		rc = retry(d, block, req, err);
		d->stats.num_alloc_retries += !rc;
	}
	/* what a capture forbids is no failure of the device */
	return rc < 0 && d->captures_count ? FRAG_OOM : rc;
}

static int take(struct frag_live_dev *d, uint64_t bytes, void *stream, frag_addr_t *out,
		struct frag_err *err)
{
	struct frag_request req = { .bytes = bytes };
	struct frag_live_block *block;
	int rc;

	FRAG_TRY(frag_cu_stream_index(d->card, stream, &req.stream, err));
	if (FRAG_UNLIKELY(d->captures_count))
		req.pool = frag_live_pool_of(d, stream);
	if (frag_addr_map_reserve(&d->live) || !(block = frag_slab_alloc(&d->blocks)))
		return frag_fail_nomem(err, "block");
	*block = (struct frag_live_block){ .pool = req.pool,
					   .aside = req.pool && d->aside.ops,
					   .context = d->context };
	rc = serve(d, block, &req, err);
	if (!rc && FRAG_UNLIKELY(d->handed) && !block->aside) {
		rc = frag_live_hand_over(d, &block->b, err);
		if (rc)
			d->main.ops->free(d->main.self, &block->b, NULL);
	}
	if (FRAG_UNLIKELY(rc)) {
		frag_slab_free(&d->blocks, block);
		return rc;
	}
	frag_addr_map_put(&d->live, block->b.addr, block);
	if (FRAG_UNLIKELY(block->pool))
		d->pools[block->pool - 1].live++;
	frag_live_count_alloc(d, block);
	frag_live_note(d, "alloc", block, 0, NULL, 0);
	*out = block->b.addr;
	return 0;
}

int frag_live_take(struct frag_live_dev *d, uint64_t bytes, void *stream, frag_addr_t *out,
		   struct frag_err *err)
{
	int rc;

	begin(d);
	rc = take(d, bytes, stream, out, err);
	end(d);
	d->requests++;
	d->refusals += rc == FRAG_OOM;
	d->stats.num_ooms += rc == FRAG_OOM;
	if (FRAG_UNLIKELY(rc == FRAG_OOM))
		frag_live_note(d, "refused", NULL, bytes, stream, 0);
	return rc;
}

/* ---- frees ------------------------------------------------------------------------------ */

void frag_live_complete(struct frag_live_dev *d, struct frag_live_block *block)
{
	struct frag_policy *p = policy_of(d, block->aside);

	frag_live_count_done(d, block);
	if (FRAG_UNLIKELY(d->handed) && !block->aside)
		frag_live_left_by(d, &block->b);
	if (FRAG_UNLIKELY(block->pool))
		d->pools[block->pool - 1].live--;
	/* the block is free in any case; the error is of memory that should have gone back */
	p->ops->free(p->self, &block->b, &d->problem);
	frag_slab_free(&d->blocks, block);
}

void frag_live_give(struct frag_live_dev *d, frag_addr_t addr)
{
	struct frag_live_block *block = frag_addr_map_take(&d->live, addr);
	struct frag_policy *p;

	if (FRAG_UNLIKELY(!block))
		return;
	/* the clock takes a tenth of a pair: for policies the time of the last request will do */
	if (FRAG_UNLIKELY(frag_live_told()))
		d->dev->now_ns = frag_clock_ns() - d->start_ns;
	d->card->idle = false;
	frag_live_count_free(d, block);
	frag_live_note(d, block->uses ? "free_requested" : "free", block, 0, NULL, 0);
	if (FRAG_LIKELY(!block->uses)) {
		frag_live_complete(d, block);
	} else {
		p = policy_of(d, block->aside);
		if (p->ops->free_requested)
			p->ops->free_requested(p->self, &block->b);
		frag_live_wait_for(d, block);
	}
	end(d);
}

void frag_live_use(struct frag_live_dev *d, frag_addr_t addr, void *stream)
{
	struct frag_live_block *block = frag_addr_map_get(&d->live, addr);
	struct frag_live_use *u;
	uint32_t index;

	if (!block || frag_cu_stream_index(d->card, stream, &index, NULL) ||
	    index == block->b.stream)
		return;
	for (u = block->uses; u; u = u->next)
		if (u->stream == index)
			return;
	u = frag_slab_alloc(&d->uses);
	if (!u)
		return; /* host memory is out: the program is about to end */
	*u = (struct frag_live_use){ .stream = index, .next = block->uses };
	block->uses = u;
}

/* ---- giving back ------------------------------------------------------------------------ */

int frag_live_trim(struct frag_live_dev *d, bool asked, struct frag_err *err)
{
	int rc = 0;

	/* nothing is given back in a capture, as PyTorch does */
	if (d->captures_count)
		return 0;
	d->dev->now_ns = frag_clock_ns() - d->start_ns;
	frag_live_settle(d, true);
	if (asked)
		frag_live_note(d, "trim", NULL, 0, NULL, 0);
	if (d->main.ops->trim)
		rc = d->main.ops->trim(d->main.self, 0, err);
	if (!rc)
		rc = frag_live_pools_trim(d, err);
	end(d);
	return rc;
}
