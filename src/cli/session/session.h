/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compare and replay share: policies by their texts, traces one after the
 * other, runs over threads, and the outputs.
 *
 * A session keeps the results of all traces; a trace itself is dropped when its
 * runs and its report are done, so memory is bounded by the largest one.
 */
#ifndef FRAG_CLI_SESSION_H
#define FRAG_CLI_SESSION_H

#include <frag/replay.h>
#include <frag/trace.h>

#include "report/report.h"
#include "cli/common.h"
#include "recording/policy_texts.h"
#include "cli/recordings.h"

/* What compare shows of the best possible. AUTO: a placement where it is quickly made. */
enum frag_optimum_want {
	FRAG_OPTIMUM_AUTO,
	FRAG_OPTIMUM_OFF,
	FRAG_OPTIMUM_BOUND,
	FRAG_OPTIMUM_PLACE,
};

/* AUTO: long ones. */
enum frag_stream_want { FRAG_STREAM_AUTO, FRAG_STREAM_ALWAYS, FRAG_STREAM_NEVER };

struct frag_session {
	const struct frag_cli *cli;
	struct frag_target
		target; /* that of the command line; its limit is one of the device, in bytes */
	char *command_line;
	struct frag_policy_texts policies;
	struct frag_run_options run;
	unsigned formats;		   /* FRAG_FORMAT_… */
	bool pdf;			   /* all charts in one file, too */
	const char *title, *author, *date; /* of the report; NULL = not given */
	char *date_text;		   /* of the clock, or NULL */
	bool omit_host, fail_on_oom;
	enum frag_optimum_want optimum;
	bool place_too;		     /* offline placements beside the policies */
	bool plan_ahead;	     /* `planned` is given a plan */
	bool planned_asked_for;	     /* by the user, not by the list of defaults */
	const char *calls;	     /* file for every driver call of a replay, or NULL */
	struct frag_text calls_text; /* its rows */
	const char *against_sim;     /* file, NULL = not asked for */
	struct frag_text against;    /* its rows */
	const char *against_calls;   /* file for every single call, or NULL */
	struct frag_text against_calls_text;
	unsigned repeats;	   /* on the device, for --against-sim */
	uint64_t given_back_bytes; /* by the last replay on a real card: see frag_dev_make_ready */
	enum frag_stream_want stream; /* which traces are replayed while they are read */
	struct frag_catalog catalog;  /* cards that advice may name */
	/* results */
	struct frag_section *sections;
	size_t sections_count;
	struct frag_report report;
	struct frag_text missing; /* traces that were not begun when Ctrl-C came */
};

/* Options that both commands have. */
extern const struct frag_arg frag_session_args[];
/* frag_cmd.init and .release of both commands. */
void frag_session_init(void *session);
void frag_session_release(void *session);
/* The rest of the beginning, once the command line is read. Errors: FRAG_ENOMEM. */
int frag_session_begin(struct frag_session *s, const struct frag_cli *cli, struct frag_err *err);

/* Replays all traces of the command line and writes --out. */
int frag_session_run(struct frag_session *s, struct frag_err *err);
/* Writes --json and --csv, and the text (compare's table, or replay's detail) to stdout unless
 * one of them goes there. */
int frag_session_print(struct frag_session *s, bool detail, struct frag_err *err);
/* After Ctrl-C: FRAG_EINTR, naming what is missing; else 0. What is there is complete. */
int frag_session_interrupted(const struct frag_session *s, struct frag_err *err);
/* FRAG_EXIT_DONE, or _CONDITION if --fail-on-oom found one. */
int frag_session_status(const struct frag_session *s);

/* Title, author and date of the report (session_page.c). */
void frag_session_date(struct frag_session *s);
/* Says in `sec` how far the recording is what was settled; nothing where it has no evidence. */
int frag_session_verdict(struct frag_section *sec, struct frag_err *err);

/* ---- the runs of one trace, over threads (session_tasks.c) ---- */

struct frag_session_task {
	const struct frag_policy_spec *spec;
	const struct frag_policy_spec *asked_for; /* without the plan that `spec` may have got */
	const struct frag_trace_dev *dev;
	uint32_t dev_index;		       /* of `dev` in its trace */
	const char *trace;		       /* its name */
	const struct frag_recording *streamed; /* has the events, which are not in dev; or NULL */
	bool ahead;			       /* there are threads to spare: unpack in one */
	uint64_t limit_bytes;		       /* that holds for the replay; UINT64_MAX = none */
	bool restore;	  /* begin with what was there when the recording began */
	uint64_t last_us; /* of them */
	struct frag_result result;
	struct frag_optimum optimum; /* spec NULL: the task is to place offline */
	bool left_out;		     /* not possible here; err says why */
	struct frag_err err;
	int rc; /* FRAG_EINTR: not begun, or not finished */
};
/* Replays a task on the device of the session, then on the simulated card; adds a row of what
 * differs to s->against (session_against.c). One thread at a time. */
int frag_session_against(struct frag_session *s, struct frag_session_task *task);
/* Opens the device of a task, made ready (session_tasks.c); after its replay tell what was given back. */
int frag_session_open(struct frag_session *s, struct frag_session_task *task,
		      struct frag_device **out);
void frag_session_gave_back(struct frag_session *s, const struct frag_device *dev);
/* Replays a task, event by event, and adds a row for every driver call to s->calls_text. */
int frag_session_list_calls(struct frag_session *s, struct frag_session_task *task);
int frag_session_write_calls(const struct frag_session *s, struct frag_err *err);
/* Writes the rows, with their header. */
int frag_session_write_against(const struct frag_session *s, struct frag_err *err);

/* Runs every task on a card of its own. Results do not depend on the number of threads. The
 * first Ctrl-C lets no further task begin. */
int frag_session_run_tasks(struct frag_session *s, struct frag_session_task *tasks, size_t count,
			   const char *label, struct frag_err *err);

#endif
