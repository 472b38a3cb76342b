/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of libcufrag_torch.so. Twice a second it writes the recording to its file, and what
 * each device holds to the page that `cufrag monitor` reads (base/live_page.h).
 */
#include "live_thread.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/live_page.h"
#include "base/locked.h"
#include "live_core.h"

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

int frag_live_thread_start(const char *by, struct frag_err *err)
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

void frag_live_thread_end(void)
{
	frag_live_page_remove(page);
	page = NULL;
}
