/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front of every device: calls the back end and does all counting.
 *
 * Every driver call runs through enter() and leave(). enter() numbers it (over all kinds, from 1),
 * checks that the device supports it, and fails it on demand without calling the back end, so such
 * a call has no effect. leave() records result, bytes and time, updates reserved_bytes and its peak
 * from the back end, and writes the log.
 *
 * Failures on demand: calls that can run out of memory (cudaMalloc, cuMemCreate,
 * cuMemAddressReserve, cudaMallocAsync, cudaMallocManaged) return FRAG_OOM, as the real driver
 * would; every other call returns FRAG_EDEVICE and a message that ends in "(injected failure of
 * call N)". Calls that the device does not support (FRAG_ENOTSUP) never reach a driver and are not
 * counted.
 *
 * Not calls: mempool_usage and managed_usage read counters and cost nothing. A first touch of
 * managed memory is not a call either, but the driver takes time for it, so it counts as a
 * prefetch.
 */

#include <frag/device.h>

#include <string.h>

#include <frag/clock.h>

/* `*ns` before a call: stays if the back end does not report the call's time. */
#define NS_UNSET UINT64_MAX

struct box {
	struct frag_device dev;
	uint32_t can;
	bool measured; /* read the host clock around each call */
};

static const char *const call_names[] = {
#define FRAG_X_(name, text) text,
	FRAG_CALL_LIST(FRAG_X_)
#undef FRAG_X_
};

const char *frag_call_name(enum frag_call call)
{
	return (unsigned)call < FRAG_CALL_COUNT ? call_names[call] : "?";
}

#define BIT(call) (1u << FRAG_CALL_##call)
_Static_assert(FRAG_CALL_COUNT <= 32, "sets of calls are 32 bits");

/* calls that can return FRAG_OOM */
#define TAKES_MEMORY (BIT(MALLOC) | BIT(CREATE) | BIT(RESERVE) | BIT(ASYNC_MALLOC) | BIT(MANAGED))
/* calls after which the reserved bytes cannot have changed */
#define KEEPS_RESERVED \
	(BIT(RESERVE) | BIT(UNRESERVE) | BIT(MAP) | BIT(SET_ACCESS) | BIT(FENCE) | BIT(QUERY) | \
	 BIT(MEM_INFO) | BIT(POOL_CREATE))

static const uint32_t needs[FRAG_CALL_COUNT] = {
	[FRAG_CALL_MALLOC] = FRAG_CAN_MALLOC,
	[FRAG_CALL_FREE] = FRAG_CAN_MALLOC,
	[FRAG_CALL_RESERVE] = FRAG_CAN_VMM,
	[FRAG_CALL_UNRESERVE] = FRAG_CAN_VMM,
	[FRAG_CALL_CREATE] = FRAG_CAN_VMM,
	[FRAG_CALL_RELEASE] = FRAG_CAN_VMM,
	[FRAG_CALL_MAP] = FRAG_CAN_VMM,
	[FRAG_CALL_SET_ACCESS] = FRAG_CAN_VMM,
	[FRAG_CALL_UNMAP] = FRAG_CAN_VMM,
	[FRAG_CALL_POOL_CREATE] = FRAG_CAN_ASYNC,
	[FRAG_CALL_POOL_DESTROY] = FRAG_CAN_ASYNC,
	[FRAG_CALL_ASYNC_MALLOC] = FRAG_CAN_ASYNC,
	[FRAG_CALL_ASYNC_FREE] = FRAG_CAN_ASYNC,
	[FRAG_CALL_POOL_TRIM] = FRAG_CAN_ASYNC,
	[FRAG_CALL_MANAGED] = FRAG_CAN_MANAGED,
	[FRAG_CALL_MANAGED_FREE] = FRAG_CAN_MANAGED,
	[FRAG_CALL_PREFETCH] = FRAG_CAN_MANAGED,
};

static inline struct box *box_of(struct frag_device *dev)
{
	return (struct box *)(void *)dev; /* dev is its first member */
}

/* A call in progress. */
struct call {
	struct frag_device *dev;
	enum frag_call kind;
	uint64_t bytes;
	uint64_t start_ns;	  /* host clock, if it is read */
	uint64_t ns;		  /* filled by the back end */
	const frag_addr_t *where; /* the call's address, for the log; NULL = none */
};

static int leave(struct call *c, int result)
{
	struct frag_device *dev = c->dev;
	struct frag_call_stat *st = &dev->stat[c->kind];

	if (c->ns == NS_UNSET)
		c->ns = box_of(dev)->measured ? frag_clock_ns() - c->start_ns : 0;
	st->ns += c->ns;
	dev->driver_ns += c->ns;
	if (FRAG_LIKELY(!result)) {
		st->count++;
		st->bytes += c->bytes;
	} else {
		st->failed++;
	}
	if (!(1u << c->kind & KEEPS_RESERVED)) {
		dev->reserved_bytes = dev->ops->reserved(dev->priv);
		dev->reserved_peak_bytes = FRAG_MAX(dev->reserved_peak_bytes, dev->reserved_bytes);
	}
	if (FRAG_UNLIKELY(dev->log != NULL)) {
		dev->logged_addr = c->where && !result ? *c->where : 0;
		dev->log(dev->log_ctx, c->kind, c->bytes, result);
	}
	return result;
}

static int inject(struct call *c, struct frag_err *err)
{
	c->ns = 0;
	if (1u << c->kind & TAKES_MEMORY)
		return leave(c, FRAG_OOM);
	return leave(c, frag_fail(err, FRAG_EDEVICE, "%s failed (injected failure of call %llu)",
				  call_names[c->kind], (unsigned long long)c->dev->driver_calls));
}

static int not_able(struct frag_device *dev, enum frag_call kind, struct frag_err *err)
{
	return frag_fail(err, FRAG_ENOTSUP,
			 "device '%s' has no %s; choose another --device or policy", dev->ops->name,
			 call_names[kind]);
}

/* 0: call the back end. Anything else is the result of the call. */
static int enter(struct call *c, struct frag_device *dev, enum frag_call kind, uint64_t bytes,
		 struct frag_err *err)
{
	struct box *box = box_of(dev);

	if (FRAG_UNLIKELY(needs[kind] & ~box->can))
		return not_able(dev, kind, err);
	*c = (struct call){ .dev = dev, .kind = kind, .bytes = bytes, .ns = NS_UNSET };
	dev->driver_calls++;
	if (FRAG_UNLIKELY(dev->limit_bytes) && 1u << kind & (BIT(MALLOC) | BIT(CREATE)) &&
	    dev->reserved_bytes + bytes > dev->limit_bytes)
		return inject(c, err);
	if (FRAG_UNLIKELY(dev->fail_call)) {
		if (dev->driver_calls == dev->fail_call ||
		    (dev->fail_all_after && dev->driver_calls > dev->fail_call))
			return inject(c, err);
	}
	if (box->measured) {
		if (dev->ops->before)
			dev->ops->before(dev->priv, kind);
		c->start_ns = frag_clock_ns();
	}
	return 0;
}

int frag_dev_open(const struct frag_device_ops *ops, void *priv, struct frag_device **out,
		  struct frag_err *err)
{
	struct box *box;
	struct frag_device_info info;

	FRAG_TRY_CALLOC(box, 1, "device", err);
	memset(&info, 0, sizeof(info));
	ops->info(priv, &info);
	box->dev.ops = ops;
	box->dev.priv = priv;
	box->can = info.can;
	box->measured = !info.modelled;
	*out = &box->dev;
	return 0;
}

void frag_dev_info(const struct frag_device *dev, struct frag_device_info *out)
{
	memset(out, 0, sizeof(*out));
	dev->ops->info(dev->priv, out);
}

void frag_dev_close(struct frag_device *dev)
{
	if (!dev)
		return;
	dev->ops->close(dev->priv);
	frag_host_free(box_of(dev));
}

uint64_t frag_dev_leaks(const struct frag_device *dev)
{
	static const enum frag_call pairs[][2] = {
		{ FRAG_CALL_MALLOC, FRAG_CALL_FREE },
		{ FRAG_CALL_RESERVE, FRAG_CALL_UNRESERVE },
		{ FRAG_CALL_CREATE, FRAG_CALL_RELEASE },
		{ FRAG_CALL_POOL_CREATE, FRAG_CALL_POOL_DESTROY },
		{ FRAG_CALL_ASYNC_MALLOC, FRAG_CALL_ASYNC_FREE },
		{ FRAG_CALL_MANAGED, FRAG_CALL_MANAGED_FREE },
	};
	uint64_t out = 0;

	/* a mapping cannot leak alone, because its range could not have been freed */
	for (size_t i = 0; i < FRAG_ARRAY_LEN(pairs); i++)
		out += dev->stat[pairs[i][0]].count - dev->stat[pairs[i][1]].count;
	return out;
}

/* ---- the calls -------------------------------------------------------------- */

/* Body of one call: count, call the back end, record. where_: its address, or NULL. */
#define CALL_AT(kind_, bytes_, where_, ...) \
	struct call c; \
	int rc_ = enter(&c, dev, FRAG_CALL_##kind_, (bytes_), err); \
	c.where = (where_); \
	return rc_ ? rc_ : leave(&c, (__VA_ARGS__))
#define CALL(kind_, bytes_, ...) CALL_AT(kind_, bytes_, NULL, __VA_ARGS__)

/* The same for calls that return memory: does nothing if the device is about to be closed. */
#define GIVE(kind_, bytes_, where_, ...) \
	if (FRAG_UNLIKELY(dev->abandoned)) \
		return 0; \
	CALL_AT(kind_, bytes_, where_, __VA_ARGS__)

/* Returns the result of a call, and reports its address to the listener. */
static inline int tell(struct frag_device *dev, enum frag_call call, uint64_t bytes,
		       const frag_addr_t *addr, int result)
{
	if (FRAG_UNLIKELY(dev->placed != NULL) && !result)
		dev->placed(dev->placed_ctx, call, bytes, *addr);
	return result;
}

int frag_dev_alloc(struct frag_device *dev, uint64_t bytes, frag_addr_t *out, struct frag_err *err)
{
	CALL_AT(MALLOC, bytes, out,
		tell(dev, FRAG_CALL_MALLOC, bytes, out,
		     dev->ops->alloc(dev->priv, bytes, out, &c.ns, err)));
}

int frag_dev_free(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, struct frag_err *err)
{
	GIVE(FREE, bytes, &addr, dev->ops->free(dev->priv, addr, &c.ns, err));
}

int frag_dev_reserve(struct frag_device *dev, uint64_t bytes, frag_addr_t hint, frag_addr_t *out,
		     struct frag_err *err)
{
	CALL_AT(RESERVE, bytes, out,
		tell(dev, FRAG_CALL_RESERVE, bytes, out,
		     dev->ops->reserve(dev->priv, bytes, hint, out, &c.ns, err)));
}

int frag_dev_unreserve(struct frag_device *dev, frag_addr_t addr, uint64_t bytes,
		       struct frag_err *err)
{
	GIVE(UNRESERVE, bytes, &addr, dev->ops->unreserve(dev->priv, addr, bytes, &c.ns, err));
}

int frag_dev_create(struct frag_device *dev, uint64_t bytes, uint64_t *handle, struct frag_err *err)
{
	CALL(CREATE, bytes, dev->ops->create(dev->priv, bytes, handle, &c.ns, err));
}

int frag_dev_release(struct frag_device *dev, uint64_t handle, uint64_t bytes, struct frag_err *err)
{
	GIVE(RELEASE, bytes, NULL, dev->ops->release(dev->priv, handle, &c.ns, err));
}

int frag_dev_map(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, uint64_t handle,
		 struct frag_err *err)
{
	CALL_AT(MAP, bytes, &addr, dev->ops->map(dev->priv, addr, handle, &c.ns, err));
}

int frag_dev_set_access(struct frag_device *dev, frag_addr_t addr, uint64_t bytes,
			struct frag_err *err)
{
	CALL_AT(SET_ACCESS, bytes, &addr, dev->ops->set_access(dev->priv, addr, bytes, &c.ns, err));
}

int frag_dev_unmap(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, struct frag_err *err)
{
	GIVE(UNMAP, bytes, &addr, dev->ops->unmap(dev->priv, addr, bytes, &c.ns, err));
}

int frag_dev_mempool_create(struct frag_device *dev, const struct frag_mempool_attr *attr,
			    uint64_t *pool, struct frag_err *err)
{
	CALL(POOL_CREATE, 0, dev->ops->mempool_create(dev->priv, attr, pool, &c.ns, err));
}

int frag_dev_mempool_destroy(struct frag_device *dev, uint64_t pool, struct frag_err *err)
{
	GIVE(POOL_DESTROY, 0, NULL, dev->ops->mempool_destroy(dev->priv, pool, &c.ns, err));
}

int frag_dev_mempool_alloc(struct frag_device *dev, uint64_t pool, uint64_t bytes, uint32_t stream,
			   frag_addr_t *out, struct frag_err *err)
{
	CALL_AT(ASYNC_MALLOC, bytes, out,
		dev->ops->mempool_alloc(dev->priv, pool, bytes, stream, out, &c.ns, err));
}

int frag_dev_mempool_free(struct frag_device *dev, uint64_t pool, frag_addr_t addr, uint64_t bytes,
			  uint32_t stream, struct frag_err *err)
{
	GIVE(ASYNC_FREE, bytes, &addr,
	     dev->ops->mempool_free(dev->priv, pool, addr, stream, &c.ns, err));
}

int frag_dev_mempool_trim(struct frag_device *dev, uint64_t pool, uint64_t keep_bytes,
			  struct frag_err *err)
{
	CALL(POOL_TRIM, 0, dev->ops->mempool_trim(dev->priv, pool, keep_bytes, &c.ns, err));
}

void frag_dev_mempool_usage(struct frag_device *dev, uint64_t pool, struct frag_mempool_usage *out)
{
	memset(out, 0, sizeof(*out));
	if (box_of(dev)->can & FRAG_CAN_ASYNC)
		dev->ops->mempool_usage(dev->priv, pool, out);
}

int frag_dev_managed_alloc(struct frag_device *dev, uint64_t bytes, frag_addr_t *out,
			   struct frag_err *err)
{
	CALL_AT(MANAGED, bytes, out, dev->ops->managed_alloc(dev->priv, bytes, out, &c.ns, err));
}

int frag_dev_managed_free(struct frag_device *dev, frag_addr_t addr, uint64_t bytes,
			  struct frag_err *err)
{
	GIVE(MANAGED_FREE, bytes, &addr, dev->ops->managed_free(dev->priv, addr, &c.ns, err));
}

int frag_dev_managed_touch(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, bool prefetch,
			   struct frag_err *err)
{
	CALL_AT(PREFETCH, bytes, &addr,
		dev->ops->managed_touch(dev->priv, addr, bytes, prefetch, &c.ns, err));
}

void frag_dev_managed_usage(struct frag_device *dev, struct frag_managed_usage *out)
{
	memset(out, 0, sizeof(*out));
	if (box_of(dev)->can & FRAG_CAN_MANAGED)
		dev->ops->managed_usage(dev->priv, out);
}

int frag_dev_fence_record(struct frag_device *dev, uint32_t stream, uint64_t *fence,
			  struct frag_err *err)
{
	CALL(FENCE, 0, dev->ops->fence_record(dev->priv, stream, fence, &c.ns, err));
}

int frag_dev_fence_done(struct frag_device *dev, uint64_t fence, uint64_t lag_ns, bool *done,
			struct frag_err *err)
{
	CALL(QUERY, 0, dev->ops->fence_done(dev->priv, fence, lag_ns, done, &c.ns, err));
}

int frag_dev_sync(struct frag_device *dev, uint32_t stream, struct frag_err *err)
{
	CALL(SYNC, 0, dev->ops->sync(dev->priv, stream, false, &c.ns, err));
}

int frag_dev_sync_all(struct frag_device *dev, struct frag_err *err)
{
	CALL(DEVICE_SYNC, 0, dev->ops->sync(dev->priv, 0, true, &c.ns, err));
}

int frag_dev_mem_info(struct frag_device *dev, uint64_t *free_bytes, uint64_t *total_bytes,
		      struct frag_err *err)
{
	CALL(MEM_INFO, 0, dev->ops->mem_info(dev->priv, free_bytes, total_bytes, &c.ns, err));
}

/* ---- not driver calls: contents, and counts from other sources ------------------------- */

bool frag_dev_has_content(const struct frag_device *dev)
{
	return dev->ops->content != NULL;
}

int frag_dev_content(struct frag_device *dev, enum frag_content_op op,
		     const struct frag_content *block, struct frag_err *err)
{
	if (!dev->ops->content)
		return frag_fail(err, FRAG_ENOTSUP,
				 "device '%s' has no memory behind its addresses, so contents "
				 "cannot be filled or verified; use --device cuda",
				 dev->ops->name);
	return dev->ops->content(dev->priv, op, block, err);
}

int frag_dev_content_fault(struct frag_device *dev, bool wait, struct frag_content_fault *out,
			   struct frag_err *err)
{
	out->count = 0;
	return dev->ops->content_fault ? dev->ops->content_fault(dev->priv, wait, out, err) : 0;
}

int frag_dev_make_ready(struct frag_device *dev, uint64_t given_back_bytes, struct frag_err *err)
{
	return dev->ops->make_ready ? dev->ops->make_ready(dev->priv, given_back_bytes, err) : 0;
}

bool frag_dev_observed(struct frag_device *dev, struct frag_dev_observed *out)
{
	*out = (struct frag_dev_observed){ 0 };
	if (dev->ops->observed)
		dev->ops->observed(dev->priv, out);
	return dev->ops->observed != NULL;
}

uint64_t frag_dev_host_pair(const struct frag_dev_observed *seen)
{
	if (!seen->pair_ns || !seen->pair_after_ns)
		return FRAG_MAX(seen->pair_ns, seen->pair_after_ns);
	return seen->pair_ns / 2 + seen->pair_after_ns / 2;
}
