/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch calls. Every entry first checks that this is the process that started the library: a
 * forked child frees inherited tensors, and must not touch the card.
 */
#include <frag/clock.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/live_page.h"
#include "base/locked.h"

#include "live_core.h"
#include "protocol_list.inc"

/* ---- the page that `cufrag monitor` reads, and the thread that writes it, and the recording -- */

#define PERIOD_NS 500000000

static struct frag_live_page *page;

/* Only what a policy counts anyhow: a walk would hold requests up. */
static void look_at(struct frag_live_dev *d, struct frag_live_device *out)
{
	const struct frag_live_stats *st = &d->stats;
	struct frag_usage u = { .non_releasable_bytes = UINT64_MAX };

	frag_live_lock(d);
	if (d->main.ops->usage)
		d->main.ops->usage(d->main.self, &u);
	*out = (struct frag_live_device){
		.device = (uint64_t)d->ordinal,
		.requested_bytes = (uint64_t)st->requested_bytes[FRAG_LIVE_ALL].current,
		.allocated_bytes = (uint64_t)st->allocated_bytes[FRAG_LIVE_ALL].current,
		.reserved_bytes = d->dev->reserved_bytes,
		.nonreleasable_bytes = u.non_releasable_bytes,
		.largest_hole_bytes = u.largest_free_bytes ? u.largest_free_bytes : UINT64_MAX,
		.allocs_count = d->requests,
		.refused_count = d->refusals,
	};
	frag_live_unlock(d);
}

static void write_page(void)
{
	struct frag_live_device devices[FRAG_LIVE_DEVICES];
	uint32_t count = 0;

	/* devices do not go while this is held */
	FRAG_LOCKED(&frag_live.opening);
	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX && count < FRAG_LIVE_DEVICES; i++)
		if (frag_live.devs[i])
			look_at(frag_live.devs[i], &devices[count++]);
	if (page && count)
		frag_live_page_write(page, devices, count);
}

static void *beat(void *unused)
{
	for (;;) {
		struct timespec pause = { .tv_nsec = PERIOD_NS };

		nanosleep(&pause, NULL);
		frag_live_flush();
		write_page();
	}
	return NULL;
}

static int start_thread(const char *by, struct frag_err *err)
{
	static bool started;
	pthread_t thread;
	int rc;

	if (started)
		return 0;
	page = frag_live_page_create(by);
	rc = pthread_create(&thread, NULL, beat, NULL);
	if (rc)
		return frag_fail(err, FRAG_EDEVICE, "cannot start a thread: %s", strerror(rc));
	pthread_detach(thread);
	started = true;
	return 0;
}

static void end_page(void)
{
	frag_live_page_remove(page);
	page = NULL;
}

static void in_child(void)
{
	frag_live.is_child = true;
	frag_live_log_on = false;
}

/* ---- starting --------------------------------------------------------------------------- */

uint32_t frag_live_abi(void)
{
	return FRAG_LIVE_ABI;
}

const char *frag_live_policy(void)
{
	return frag_live.spec ? frag_policy_spec_echo(frag_live.spec) : "";
}

static int check_policy(const struct frag_policy_spec *spec, struct frag_err *err)
{
	const struct frag_policy_ops *core = frag_policy_spec_core(spec);

	if (core->flags & FRAG_POLICY_STACK)
		return frag_fail(err, FRAG_EUSAGE,
				 "policy '%s' needs frees in reverse order of requests, which a "
				 "running program does not promise",
				 core->name);
	if (core->flags & FRAG_POLICY_NO_MEMORY)
		return frag_fail(err, FRAG_EUSAGE, "policy '%s' holds no memory", core->name);
	return 0;
}

/* A policy from a shared object finds here what it calls: Python loaded the library locally. */
static void open_to_policies(void)
{
	Dl_info self;

	if (dladdr(&frag_live, &self) && self.dli_fname)
		/* cppcheck-suppress leakReturnValNotUsed ; it stays for as long as the process */
		dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

static int start(const struct frag_live_options *o, struct frag_err *err)
{
	struct frag_policy_spec *spec = NULL;
	const char *every = getenv(CUFRAG_FAIL_EVERY);
	int rc;

	if (frag_live.pid)
		return frag_fail(err, FRAG_EUSAGE, "a policy is in use already: %s",
				 frag_live_policy());
	if (!frag_cu_open(err))
		return FRAG_EDEVICE;
	open_to_policies();
	FRAG_TRY(frag_policy_spec_parse(o->policy, &spec, err));
	rc = check_policy(spec, err) ?: frag_policy_spec_parse("pytorch", &frag_live.aside, err);
	if (!rc && o->record && *o->record)
		rc = frag_live_log_open(o->record, err);
	if (!rc)
		rc = start_thread(frag_policy_spec_echo(spec), err);
	if (rc) {
		frag_policy_spec_destroy(spec);
		frag_policy_spec_destroy(frag_live.aside);
		frag_live.aside = NULL;
		return rc;
	}
	frag_live.spec = spec;
	frag_live.limit_bytes = o->limit_bytes ? o->limit_bytes : UINT64_MAX;
	frag_live.seed = o->seed;
	frag_live.release = o->torch_release;
	frag_live.fail_every = every ? strtoull(every, NULL, 10) : 0;
	frag_live.start_ns = frag_clock_ns();
	pthread_atfork(NULL, NULL, in_child);
	frag_live_throw_ready();
	frag_live.pid = getpid();
	return 0;
}

int frag_live_start(const struct frag_live_options *options, char *msg, size_t cap)
{
	struct frag_live_options o = { 0 };
	struct frag_err err = { 0 };
	int rc;

	memcpy(&o, options, FRAG_MIN(options->size, sizeof(o)));
	rc = start(&o, &err);
	if (rc && cap)
		snprintf(msg, cap, "%s", err.msg);
	return rc;
}

/* The library goes, after every tensor: policies finish (log); the driver is not called. */
__attribute__((destructor)) static void stop(void)
{
	if (!frag_live_is_on())
		return;
	frag_live_flush();
	pthread_mutex_lock(&frag_live.opening);
	end_page();
	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX; i++) {
		struct frag_live_dev *d = frag_live.devs[i];

		/* a thread that is inside keeps its device */
		if (!d || pthread_mutex_trylock(&d->mutex))
			continue;
		d->card->dead = true;
		frag_live.devs[i] = NULL;
		frag_policy_destroy(&d->main);
		pthread_mutex_unlock(&d->mutex);
	}
	frag_live.pid = 0;
	pthread_mutex_unlock(&frag_live.opening);
}

/* ---- out of memory ------------------------------------------------------------------------- */

void frag_live_on_oom(void (*fn)(int device, uint64_t requested_bytes, uint64_t total_bytes,
				 uint64_t free_bytes))
{
	frag_live.on_oom = fn;
}

/* What would help, by the bytes alone: is there room that this policy cannot use? */
static void hint(const struct frag_live_stats *st, uint64_t bytes, char *text, size_t cap)
{
	uint64_t live = (uint64_t)st->active_bytes[FRAG_LIVE_ALL].current;
	uint64_t reserved = (uint64_t)st->reserved_bytes[FRAG_LIVE_ALL].current;
	uint64_t most = (uint64_t)st->free_bytes + reserved;
	const char *name = frag_policy_spec_core(frag_live.spec)->name;
	char short_of[32];

	if (st->limit_bytes)
		most = FRAG_MIN(most, (uint64_t)st->limit_bytes);
	if (live + bytes > most) {
		frag_format_bytes(live + bytes - most, short_of, sizeof(short_of));
		snprintf(text, cap,
			 "No policy can serve this: live memory and the request exceed "
			 "the card by %s.",
			 short_of);
	} else if (strcmp(name, "vmm") != 0) {
		snprintf(text, cap,
			 "The free memory is in holes that are too small; policy vmm "
			 "can use them (cufrag run --policy vmm).");
	} else {
		snprintf(text, cap, "The rest is free inside of pages that live blocks share.");
	}
}

static void describe(int device, uint64_t bytes, const struct frag_live_stats *st, char *text,
		     size_t cap)
{
	const int64_t values[] = { (int64_t)bytes,
				   st->active_bytes[FRAG_LIVE_ALL].current,
				   st->reserved_bytes[FRAG_LIVE_ALL].current,
				   st->free_bytes,
				   st->total_bytes,
				   st->largest_free_bytes,
				   st->limit_bytes };
	char words[FRAG_ARRAY_LEN(values)][32], help[256], limit[64] = "";

	for (size_t i = 0; i < FRAG_ARRAY_LEN(values); i++)
		frag_format_bytes((uint64_t)values[i], words[i], sizeof(words[i]));
	if (st->limit_bytes)
		snprintf(limit, sizeof(limit), ", limit %s", words[6]);
	hint(st, bytes, help, sizeof(help));
	snprintf(text, cap,
		 "CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of "
		 "which %s is free. Policy %.100s of cufrag: live %s, reserved %s, largest hole "
		 "%s%s. %s",
		 words[0], device, words[4], words[3], frag_live_policy(), words[1], words[2],
		 words[5], limit, help);
}

static void __attribute__((noreturn)) refuse(int device, uint64_t bytes)
{
	struct frag_live_stats st = { .size = sizeof(st) };
	char text[1024];

	frag_live_stats(device, &st);
	if (frag_live.on_oom)
		frag_live.on_oom(device, bytes, (uint64_t)st.total_bytes, (uint64_t)st.free_bytes);
	describe(device, bytes, &st, text, sizeof(text));
	frag_live_throw_oom(text);
}

/* ---- requests and frees ----------------------------------------------------------------- */

void *frag_live_alloc(ptrdiff_t bytes, int device, frag_live_stream stream)
{
	struct frag_live_dev *d = frag_live_known(device);
	struct frag_err err;
	frag_addr_t addr = 0;
	uint32_t context;
	int rc = 0;

	if (bytes <= 0 || !frag_live_is_on())
		return NULL;
	/* not all of it: clearing the text would take a twentieth of a request */
	err.code = err.cuda_code = 0;
	err.offset = 0;
	err.msg[0] = '\0';
	context = frag_live_context(false);
	if (FRAG_UNLIKELY(!d))
		rc = frag_live_dev_get(device, &d, &err);
	if (FRAG_LIKELY(!rc)) {
		frag_live_lock(d);
		d->context = context;
		rc = frag_live_take(d, (uint64_t)bytes, stream, &addr, &err);
		frag_live_unlock(d);
	}
	if (FRAG_LIKELY(!rc))
		return (void *)(uintptr_t)addr;
	if (rc == FRAG_OOM)
		refuse(device, (uint64_t)bytes);
	frag_err_prefix(&err, "cufrag, policy %.100s", frag_live_policy());
	frag_live_throw_error(err.msg);
}

void frag_live_free(void *p, ptrdiff_t bytes, int device, frag_live_stream stream)
{
	struct frag_live_dev *d = p ? frag_live_known(device) : NULL;
	uint32_t context;

	if (!d)
		return;
	context = frag_live_context(true);
	frag_live_lock(d);
	d->context = context;
	frag_live_give(d, (uintptr_t)p);
	frag_live_unlock(d);
}

void frag_live_record_stream(void *p, frag_live_stream stream)
{
	for (int i = 0; p && i < FRAG_LIVE_DEVICES_MAX; i++)
		FRAG_LIVE_WITH (d, frag_live_known(i)) {
			frag_live_use(d, (uintptr_t)p, stream);
		}
}

/* ---- the rest --------------------------------------------------------------------------- */

void frag_live_reset(void)
{
	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX; i++)
		FRAG_LIVE_WITH (d, frag_live_known(i)) {
			/* what could not go back stays, and is tried again */
			frag_live_trim(d, true, &d->problem);
		}
}

void frag_live_fraction(double fraction, int device)
{
	if (device < 0 || device >= FRAG_LIVE_DEVICES_MAX)
		return;
	frag_live.fractions[device] = fraction;
	FRAG_LIVE_WITH (d, frag_live_known(device)) {
		d->fraction = fraction;
		d->limit_bytes = FRAG_MIN(frag_live.limit_bytes,
					  (uint64_t)(fraction * (double)d->card->total_bytes));
	}
}
