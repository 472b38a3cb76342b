/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compare and replay do: policies by their texts, each trace, runs over threads, reports.
 *
 * A session keeps the results of all traces; a trace itself is dropped when its
 * runs and its report are done, so memory is bounded by the largest one.
 */
#ifndef FRAG_SESSION_SESSION_H
#define FRAG_SESSION_SESSION_H

#include <frag/replay.h>
#include <frag/trace.h>

#include "recording/policy_texts.h"
#include "recording/recording.h"
#include "report/report.h"

/* What compare shows of the best possible. AUTO: a placement where it is quickly made. */
enum frag_optimum_want {
	FRAG_OPTIMUM_AUTO,
	FRAG_OPTIMUM_OFF,
	FRAG_OPTIMUM_BOUND,
	FRAG_OPTIMUM_PLACE,
};

/* AUTO: long ones. */
enum frag_stream_want { FRAG_STREAM_AUTO, FRAG_STREAM_ALWAYS, FRAG_STREAM_NEVER };

/* The device of a session, and what it tells while it runs. */
struct frag_session_host {
	const char *device;   /* "sim", "cuda", "null" */
	bool simulated, real; /* the first, the second of them */
	bool own_costs;	      /* driver times are modelled from a profile that was given */
	unsigned threads;
	/* Device number `dev` of a trace. */
	int (*open)(const void *ctx, uint32_t dev, struct frag_device **out, struct frag_err *err);
	/* NULL = no listener. */
	void (*note)(const void *ctx, const char *text);
	const void *ctx;
};

struct frag_session {
	/* what to do */
	const char *command;
	char *command_line;
	char *const *paths;
	size_t paths_count;
	struct frag_session_host host;
	struct frag_target target; /* its limit is one of the device, in bytes */
	struct frag_policy_texts policies;
	struct frag_run_options run;
	enum frag_stream_want stream; /* which traces are replayed while they are read */
	enum frag_optimum_want optimum;
	bool place_too;		/* offline placements beside the policies */
	bool plan_ahead;	/* `planned` is given a plan */
	bool planned_asked_for; /* by the user, not by the list of defaults */
	/* the report */
	const char *out;	    /* its folder, NULL = none */
	unsigned formats;	    /* FRAG_FORMAT_… */
	bool pdf;		    /* all charts in one file, too */
	const char *title, *author; /* NULL = not given */
	char *date_text;	    /* of the clock, or NULL */
	bool omit_host, fail_on_oom;
	enum { FRAG_ON_OOM_STOP, FRAG_ON_OOM_SKIP, FRAG_ON_OOM_FAIL } on_oom;
	const char *cards, *vendor; /* that advice may name */
	struct frag_headroom headroom;
	struct frag_catalog catalog; /* of these */
	uint64_t given_back_bytes; /* by the last replay on a real card: see frag_dev_make_ready */
	/* results */
	struct frag_section *sections;
	size_t sections_count;
	struct frag_report report;
	struct frag_text missing; /* traces that were not begun when Ctrl-C came */
};

/* Of a struct frag_session, as frag_cmd.init and .release. */
void frag_session_init(void *session);
void frag_session_release(void *session);

/* Replays all traces and writes the report. */
int frag_session_run(struct frag_session *s, struct frag_err *err);
/* After Ctrl-C: FRAG_EINTR, naming what is missing; else 0. Existing rows are complete. */
int frag_session_interrupted(const struct frag_session *s, struct frag_err *err);
/* Did a policy fail to serve a request? */
bool frag_session_ran_out(const struct frag_session *s);

/* ---- the runs of one trace, over threads (tasks.c) ---- */

struct frag_session_task {
	const struct frag_policy_spec *spec;
	const struct frag_policy_spec *asked_for; /* without the plan that `spec` may have got */
	const struct frag_trace_dev *dev;
	uint32_t dev_index;		       /* of `dev` in its trace */
	const char *trace;		       /* its name */
	const struct frag_recording *streamed; /* has the events, which are not in dev; or NULL */
	bool ahead;			       /* there are threads to spare: unpack in one */
	uint64_t limit_bytes;		       /* that holds for the replay; UINT64_MAX = none */
	bool restore;			       /* begin with the blocks from before the recording */
	uint64_t last_us;		       /* of them */
	struct frag_result result;
	struct frag_optimum optimum; /* spec NULL: the task is to place offline */
	bool left_out;		     /* not possible here; err says why */
	struct frag_err err;
	int rc; /* FRAG_EINTR: not begun, or not finished */
};
/*
 * Opens a recording, as one to be replayed while it is read (a .cft of some length) where --stream
 * or its length ask for that. Errors also: FRAG_EUSAGE if it was to be streamed and cannot be.
 */
int frag_session_open_recording(const struct frag_session *s, const char *path,
				struct frag_recording *out, struct frag_err *err);
/* Runs every task on a card of its own. Results do not depend on the number of threads. The
 * first Ctrl-C lets no further task begin. */
int frag_session_run_tasks(struct frag_session *s, struct frag_session_task *tasks, size_t count,
			   const char *label, struct frag_err *err);

#endif
