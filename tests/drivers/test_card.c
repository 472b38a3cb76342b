/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated card, driven by tests/unit/device/card.py: a call a line. The answer is "=", the
 * result and what came of it: an address, a number, or a message. "look", "used" and "resident"
 * give numbers.
 */
#include "test.h"

#include <time.h>

#include "device/sim/cost.h"
#include "device/sim/uvm_resident.h"
#include "lines.h"

#define PLACES 16
#define N(i) line_number(i)

static struct frag_device *d;
/* What the hook for places is told, and who asked for how much. */
static struct {
	int result;
	frag_addr_t addr;
	enum frag_call kind;
	uint64_t bytes;
} places[PLACES];
static unsigned places_set, places_asked;

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	unsigned i = places_asked;

	if (i == places_set)
		return -1;
	places_asked++;
	places[i].kind = kind;
	places[i].bytes = bytes;
	if (kind != FRAG_CALL_CREATE && (!places[i].result || places[i].result == FRAG_PLACE_WISH))
		*addr = places[i].addr;
	return places[i].result;
}

/* RESULT ADDR */
static int set_place(void)
{
	assert_true(places_set < PLACES);
	places[places_set].addr = N(2);
	places[places_set++].result = atoi(line_words[1]);
	return 0;
}

/* ---- other devices: that of no memory, and one of our own ------------------------------------ */

static void fake_info(void *priv, struct frag_device_info *out)
{
	*out = (struct frag_device_info){ .can = *(uint32_t *)priv };
}

/* Takes two milliseconds and does not say so. */
static int fake_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		      struct frag_err *err)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	*out = 1;
	return 0;
}

/* Knows what it took. */
static int fake_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	*ns = 7;
	return 0;
}

static uint64_t fake_reserved(void *priv)
{
	return 42;
}

static void fake_close(void *priv)
{
	*(uint32_t *)priv = 0;
}

/* 0: null; 1: can cudaMalloc; 2: can nothing */
static int open_other(struct frag_err *err)
{
	static const struct frag_device_ops fake = { .name = "fake",
						     .close = fake_close,
						     .info = fake_info,
						     .alloc = fake_alloc,
						     .free = fake_free,
						     .reserved = fake_reserved };
	static uint32_t can;

	frag_dev_close(d);
	d = NULL;
	assert_int_equal(can, 0);
	can = N(1) == 1 ? FRAG_CAN_MALLOC : 0;
	return N(1) ? frag_dev_open(&fake, &can, &d, err) : frag_null_open(&d, err);
}

/* TOTAL CONTEXT LAG IDLE; TOTAL 0: that of an H200 */
static int open_card(struct frag_err *err)
{
	struct frag_sim_config cfg = { .total_bytes = N(1),
				       .context_bytes = N(2),
				       .work_lag_ns = N(3),
				       .work_idle = N(4),
				       .place = place };

	frag_dev_close(d);
	d = NULL;
	places_set = places_asked = 0;
	return frag_sim_open(&cfg, &d, err);
}

/* THRESHOLD OPPORTUNISTIC WAIT */
static int make_pool(uint64_t *value, struct frag_err *err)
{
	struct frag_mempool_attr attr = { .release_threshold = N(1),
					  .reuse_allow_opportunistic = N(2),
					  .reuse_allow_internal_dependencies = N(3) };

	return frag_dev_mempool_create(d, &attr, value, err);
}

static int fail_later(void)
{
	d->fail_call = N(1) ? d->driver_calls + N(1) : 0;
	d->fail_all_after = N(2);
	return 0;
}

static int is_done(uint64_t *value, struct frag_err *err)
{
	bool done = false;
	int rc = frag_dev_fence_done(d, N(1), N(2), &done, err);

	*value = done;
	return rc;
}

/* Prices of calls, and of parts of calls, as the built-in profile has them. */
static int prices(void)
{
	static const struct {
		const char *name;
		unsigned item, pages;
	} rows[] = { { "CREATE", FRAG_CALL_CREATE, 1 },
		     { "MAP", FRAG_CALL_MAP, 1 },
		     { "ACCESS", FRAG_CALL_SET_ACCESS, 1 },
		     { "ACCESS_NEXT", FRAG_COST_SET_ACCESS_NEXT, 1 },
		     { "UNMAP", FRAG_CALL_UNMAP, 1 },
		     { "UNMAP_NEXT", FRAG_COST_UNMAP_NEXT, 1 },
		     { "RELEASE", FRAG_CALL_RELEASE, 1 },
		     { "RELEASE_MAPPED", FRAG_COST_RELEASE_MAPPED, 1 },
		     /* pages of pools have 32 MiB */
		     { "TAKE", FRAG_CALL_ASYNC_MALLOC, 0 },
		     { "REMAP_2", FRAG_COST_ASYNC_REMAP, 32 },
		     { "REMAP_14", FRAG_COST_ASYNC_REMAP, 224 },
		     { "NEW_18", FRAG_COST_ASYNC_NEW, 288 } };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		printf("%s\t%llu\n", rows[i].name,
		       (ull)frag_cost_ns(frag_cost_builtin(), rows[i].item,
					 (uint64_t)rows[i].pages * FRAG_PAGE));
	return 0;
}

static int info(struct frag_err *err)
{
	uint64_t free_bytes, total;
	int rc = frag_dev_mem_info(d, &free_bytes, &total, err);

	printf("free\t%llu\ntotal\t%llu\n", (ull)free_bytes, (ull)total);
	return rc;
}

static int look(void)
{
	struct frag_managed_usage m;

	frag_dev_managed_usage(d, &m);
	printf("reserved\t%llu\npeak\t%llu\nleaks\t%llu\n", (ull)d->reserved_bytes,
	       (ull)d->reserved_peak_bytes, (ull)frag_dev_leaks(d));
	printf("resident\t%llu\nresident peak\t%llu\nfaults\t%llu\nin\t%llu\nout\t%llu\n",
	       (ull)m.resident_bytes, (ull)m.resident_peak_bytes, (ull)m.faults,
	       (ull)m.moved_in_bytes, (ull)m.moved_out_bytes);
	printf("evictions\t%llu\nmoving\t%llu\n", (ull)m.evictions, (ull)m.moved_ns);
	for (unsigned i = 0; i < places_asked; i++)
		printf("asked\t%s %lluM\n", frag_call_name(places[i].kind),
		       (ull)places[i].bytes / MIB);
	return 0;
}

static int used(void)
{
	struct frag_mempool_usage u;

	frag_dev_mempool_usage(d, N(1), &u);
	printf("used\t%llu\nused peak\t%llu\nreserved\t%llu\nreserved peak\t%llu\n",
	       (ull)u.used_bytes, (ull)u.used_peak_bytes, (ull)u.reserved_bytes,
	       (ull)u.reserved_peak_bytes);
	return 0;
}

/* ---- what of a real card's managed memory is resident --------------------------------------- */

static struct uvm_resident uvm;

static int uvm_begin(void)
{
	frag_uvm_resident_release(&uvm);
	frag_uvm_resident_init(&uvm);
	return 0;
}

/* ADDR BYTES; ADDR BYTES PREFETCH */
static int uvm_add(bool touch)
{
	assert_true(frag_uvm_resident_reserve(&uvm));
	if (touch)
		frag_uvm_resident_touch(&uvm, N(1), N(2), N(3));
	else
		frag_uvm_resident_add(&uvm, N(1), N(2));
	return 0;
}

static int uvm_look(void)
{
	const struct uvm_piece *a = N(1) ? frag_uvm_resident_find(&uvm, N(1)) : NULL;

	printf("resident\t%llu\nthere\t%d\nshares\t%d\n", (ull)uvm.resident_bytes, a != NULL,
	       a && a->shares);
	return 0;
}

#define ON_CALL(word, call) \
	if (!strcmp(line_words[0], word)) \
		return call;

#define NONE (UINT64_MAX - 12345) /* a value that no call gives */

static int makes(uint64_t *value, struct frag_err *err)
{
	ON_CALL("malloc", frag_dev_alloc(d, N(1), value, err))
	ON_CALL("reserve", frag_dev_reserve(d, N(1), N(2), value, err))
	ON_CALL("create", frag_dev_create(d, N(1), value, err))
	ON_CALL("pool", make_pool(value, err))
	ON_CALL("take", frag_dev_mempool_alloc(d, N(1), N(2), (uint32_t)N(3), value, err))
	ON_CALL("managed", frag_dev_managed_alloc(d, N(1), value, err))
	ON_CALL("host", (*value = frag_sim_host_take(d, N(1)), 0))
	ON_CALL("fence", frag_dev_fence_record(d, (uint32_t)N(1), value, err))
	ON_CALL("done", is_done(value, err))
	ON_CALL("time", (*value = d->driver_ns, 0))
	ON_CALL("card", open_card(err))
	ON_CALL("other", open_other(err))
	ON_CALL("place", set_place())
	ON_CALL("free", frag_dev_free(d, N(1), N(2) ? N(2) : 1, err))
	ON_CALL("unreserve", frag_dev_unreserve(d, N(1), N(2), err))
	ON_CALL("release", frag_dev_release(d, N(1), N(2), err))
	ON_CALL("map", frag_dev_map(d, N(1), N(2), N(3), err))
	ON_CALL("access", frag_dev_set_access(d, N(1), N(2), err))
	ON_CALL("unmap", frag_dev_unmap(d, N(1), N(2), err))
	ON_CALL("give", frag_dev_mempool_free(d, N(1), N(2), 1, (uint32_t)N(3), err))
	ON_CALL("trim", frag_dev_mempool_trim(d, N(1), N(2), err))
	ON_CALL("destroy", frag_dev_mempool_destroy(d, N(1), err))
	ON_CALL("let", frag_dev_managed_free(d, N(1), 1, err))
	ON_CALL("touch", frag_dev_managed_touch(d, N(1), N(2), false, err))
	ON_CALL("prefetch", frag_dev_managed_touch(d, N(1), N(2), true, err))
	ON_CALL("sync",
		line_words[1] ? frag_dev_sync(d, (uint32_t)N(1), err) : frag_dev_sync_all(d, err))
	ON_CALL("now", (d->now_ns = N(1) + (N(2) ? d->now_ns : 0), 0))
	ON_CALL("local", (frag_sim_local(d, N(1), N(2)), 0))
	ON_CALL("mapped", (frag_sim_hold_mapped(d, N(1)), 0))
	ON_CALL("hold", (frag_sim_hold(d, N(1)), 0))
	ON_CALL("unhost", (frag_sim_host_give(d, N(1), N(2)), 0))
	ON_CALL("ready", frag_dev_make_ready(d, N(1), err))
	ON_CALL("fail", fail_later())
	ON_CALL("uvm", uvm_begin())
	ON_CALL("uvm-add", uvm_add(false))
	ON_CALL("uvm-touch", uvm_add(true))
	ON_CALL("uvm-free", (frag_uvm_resident_free(&uvm, N(1)), 0))
	ON_CALL("uvm-look", uvm_look())
	ON_CALL("prices", prices())
	ON_CALL("look", look())
	ON_CALL("info", info(err))
	ON_CALL("used", used())
	fail_msg("unknown call '%s'", line_words[0]);
	return 0;
}

static void answer(void)
{
	struct frag_err err = { 0 };
	uint64_t value = NONE;
	int rc = makes(&value, &err);

	assert_true(rc >= 0 || rc == err.code);
	if (rc)
		printf("=\t%d\t%s\n", rc, rc < 0 ? err.msg : "oom");
	else if (value == NONE)
		puts("=\t0");
	else
		printf("=\t0\t%llu\n", (ull)value);
}

int main(void)
{
	lines_run(answer);
	frag_uvm_resident_release(&uvm);
	frag_dev_close(d);
	return 0;
}
