/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay --calls: every driver call of a replay with the event that caused it, so that a policy can
 * be held against its source without reading ours.
 */
#include "session.h"

#include "answer/row.h"

#include <inttypes.h>

#define COLUMNS(X, s) \
	X(s, TEXT, trace, l->task->trace) \
	X(s, COUNT, device, l->task->dev->ordinal) \
	X(s, COUNT, event, l->event) \
	X(s, TEXT, call, frag_call_name(call)) \
	X(s, TEXT, address, address) \
	X(s, BYTES, bytes, bytes) \
	X(s, TEXT, result, !result ? "done" : result == FRAG_OOM ? "no memory" : "failed")
FRAG_CSV_ROW(listed_call, COLUMNS)

struct lister {
	struct frag_session *session;
	const struct frag_session_task *task;
	const struct frag_device *dev;
	size_t event; /* that is being replayed; the number of events: behind the last one */
};

static void on_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	const struct lister *l = ctx;
	char address[24];
	struct listed_call row = FRAG_CSV_VALUES(listed_call, COLUMNS);

	snprintf(address, sizeof(address), "0x%" PRIx64, l->dev->logged_addr);
	frag_shape_csv_row(&listed_call_shape, &row, &l->session->calls_text);
}

int frag_session_list_calls(struct frag_session *s, struct frag_session_task *task)
{
	struct lister l = { .session = s, .task = task };
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;
	int rc;

	FRAG_TRY(frag_session_open(s, task, &dev));
	l.dev = dev;
	dev->log = on_call;
	dev->log_ctx = &l;
	rc = frag_run_create(task->spec, dev, task->dev, &s->run, &run, &task->err);
	for (; !rc && l.event < task->dev->events_count && !frag_run_stopped(run); l.event++)
		rc = frag_run_feed(run, &task->dev->events[l.event], 1, &task->err);
	if (!rc)
		rc = frag_run_finish(run, &task->result, &task->err);
	task->result.device_ordinal = task->dev->ordinal;
	frag_session_gave_back(s, dev);
	return rc;
}

int frag_session_write_calls(const struct frag_session *s, struct frag_err *err)
{
	return frag_shape_csv_put(&listed_call_shape, &s->calls_text, s->calls, err);
}
