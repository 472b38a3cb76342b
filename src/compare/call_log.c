/* SPDX-License-Identifier: Apache-2.0 */
/* Replays with every driver call written down. */
#include "call_log.h"
#include "lib/grow.h"

#include <frag/base.h>
#include <frag/clock.h>

void frag_call_log_release(struct call_log *t)
{
	frag_host_free(t->calls);
	address_log_release(&t->addresses);
	frag_result_release(&t->result);
	*t = (struct call_log){ 0 };
}

/* Since the call before the one that took `ns` and just came back. */
static uint64_t pause_of(struct call_log *t, uint64_t ns)
{
	uint64_t now = frag_clock_ns(), since = t->returned_ns;

	t->returned_ns = now;
	return since && now - since > ns ? now - since - ns : 0;
}

static void on_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	struct call_log *t = ctx;

	if (FRAG_GROW(t->calls, t->count, t->cap, "calls", NULL)) {
		t->short_of_memory = true;
		return;
	}
	t->calls[t->count++] = (struct logged_call){ .kind = (uint8_t)call,
						     .result = (int8_t)(result < 0 ? -1 : result),
						     .bytes = bytes,
						     .ns = t->dev->driver_ns - t->ns,
						     .reserved_bytes = t->dev->reserved_bytes };
	if (frag_dev_has_content(t->dev))
		t->calls[t->count - 1].pause_ns = pause_of(t, t->dev->driver_ns - t->ns);
	t->ns = t->dev->driver_ns;
}

uint64_t frag_call_log_pause(void *ctx, enum frag_call call)
{
	const struct call_log *t = ctx, *real = t->real;

	if (t->count >= real->count || real->calls[t->count].kind != call)
		return 0;
	return real->calls[t->count].pause_ns;
}

int frag_call_log_record(struct frag_session *s, struct frag_session_task *task,
			 struct frag_device *dev, struct call_log *t)
{
	struct frag_run_options opt = s->run;
	struct frag_run *run = NULL;
	int rc;

	frag_dev_info(dev, &t->card);
	t->dev = dev;
	t->ns = dev->driver_ns;
	dev->log = on_call;
	dev->log_ctx = t;
	address_log_record(&t->addresses, dev);
	if (!frag_dev_has_content(dev)) {
		opt.fill = FRAG_FILL_NONE;
		opt.work_ns = 0;
		opt.paced = false;
	}
	rc = frag_run_create(task->spec, dev, task->dev, &opt, &run, &task->err);
	/* making a policy can take so long that the card falls asleep again */
	if (!rc && opt.fill == FRAG_FILL_NONE)
		rc = frag_dev_make_ready(dev, 0, &task->err);
	if (rc) {
		frag_run_destroy(run);
	} else {
		rc = frag_run_feed(run, task->dev->events, task->dev->events_count, &task->err);
		frag_dev_observed(dev, &t->observed);
		t->replayed = t->count;
		if (!rc)
			rc = frag_run_finish(run, &t->result, &task->err);
		frag_run_destroy(run);
	}
	frag_session_gave_back(s, dev);
	address_log_stop(&t->addresses);
	frag_dev_close(dev);
	t->dev = NULL;
	if (!rc && (t->short_of_memory || t->addresses.short_of_memory))
		rc = frag_fail_nomem(&task->err, "log of driver calls");
	return rc;
}

size_t frag_call_log_difference(const struct call_log *a, const struct call_log *b)
{
	size_t n = FRAG_MIN(a->replayed, b->replayed);

	for (size_t i = 0; i < n; i++) {
		if (a->calls[i].kind != b->calls[i].kind ||
		    a->calls[i].bytes != b->calls[i].bytes ||
		    a->calls[i].result != b->calls[i].result)
			return i;
	}
	return a->replayed == b->replayed ? SIZE_MAX : n;
}
