/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that are replayed while they are read; see session_stream.h. */
#include "session_stream.h"

#include <string.h>
#include <sys/stat.h>

#include "replay/stream.h"
#include "trace/source.h"
#include "cli/settle.h"
#include "session.h"

/* From so many events on a trace is streamed: in memory they would take 192 MB. */
#define EVENTS_MIN 8000000u

static uint64_t events_of(const struct frag_trace *head)
{
	uint64_t n = 0;

	for (uint32_t d = 0; d < head->devs_count; d++)
		n += head->devs[d].events_count;
	return n;
}

/* A pipe gives everything once and in order: one run, and nothing that stands behind its events. */
static int check_pipe(const struct frag_session *s, const struct frag_trace *head,
		      struct frag_err *err)
{
	if (head->devs_count > 1 || s->policies.count > 1 || s->policies.all)
		return frag_fail(err, FRAG_EUSAGE,
				 "a pipe can be streamed for one policy and one device; name a "
				 "file, or leave out --stream");
	if (head->devs_count && head->devs[0].has_evidence)
		return frag_fail(err, FRAG_EUSAGE,
				 "recorded addresses stand behind the events of a .cft, too late "
				 "for "
				 "a pipe; name a file, or leave them out (cufrag import "
				 "--no-evidence)");
	return 0;
}

static int check_card(const struct frag_session *s, struct frag_err *err)
{
	if (s->cli->device == FRAG_CLI_DEVICE_SIM && !s->against_sim && !s->calls)
		return 0;
	return frag_fail(err, FRAG_EUSAGE,
			 "--stream is for replays on the simulated card; leave it out, or read the "
			 "trace into memory");
}

static bool is_file(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && !stat(path, &st) && S_ISREG(st.st_mode);
}

int frag_session_open_file(const struct frag_session *s, const char *path,
			   struct frag_session_file *out, struct frag_err *err)
{
	bool always = s->stream == FRAG_STREAM_ALWAYS, wanted = always;
	const struct frag_trace *head;
	int rc = 0;

	*out = (struct frag_session_file){ .path = path, .pipe = !is_file(path) };
	if (always)
		FRAG_TRY(check_card(s, err));
	else if (out->pipe)
		return 0;
	FRAG_TRY(frag_source_open_cft(path, &out->source, err));
	if (!out->source)
		return always ? frag_fail(err, FRAG_EUSAGE,
					  "'%.200s' is no .cft, and only those can be streamed; "
					  "make one of it (cufrag import)",
					  path)
			      : 0;
	head = frag_source_head(out->source);
	if (always && out->pipe)
		rc = check_pipe(s, head, err);
	if (s->stream == FRAG_STREAM_AUTO)
		wanted = events_of(head) >= EVENTS_MIN && !check_card(s, NULL);
	if (rc || !wanted) {
		frag_source_close(out->source);
		out->source = NULL;
	}
	return rc;
}

int frag_session_settle_streamed(const struct frag_session *s, const struct frag_session_file *file,
				 struct frag_trace *head, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *whole = NULL;

	if (file->pipe || events_of(head) >= EVENTS_MIN)
		return 0;
	FRAG_TRY(frag_cli_read(file->path, NULL, &whole, err));
	FRAG_TRY(frag_cli_settle(s->cli, s->run.limit_bytes, whole, err));
	for (uint32_t d = 0; d < FRAG_MIN(head->devs_count, whole->devs_count); d++)
		head->devs[d].settled = whole->devs[d].settled;
	return 0;
}

int frag_session_stream(const struct frag_session *s, struct frag_session_task *task,
			const struct frag_run_options *opt)
{
	struct frag_stream stream = { .path = task->file->path,
				      .source = task->file->pipe ? task->file->source : NULL,
				      .hdr = task->dev,
				      .dev = task->dev_index,
				      .ahead = task->file->ahead };
	int rc = frag_replay_stream(task->spec, &s->cli->card, &stream, opt, &task->result,
				    &task->err);

	task->last_us = stream.last_us;
	return rc;
}

int frag_session_not_streamed(struct frag_session_task *task)
{
	if (!task->spec) {
		snprintf(task->optimum.note, sizeof(task->optimum.note),
			 "the trace was streamed, and a placement needs all of it "
			 "(--stream=never)");
		return 0;
	}
	task->left_out = true;
	return frag_fail(&task->err, FRAG_ENOTSUP,
			 "the trace is streamed, and a plan needs all of it (--stream=never)");
}
