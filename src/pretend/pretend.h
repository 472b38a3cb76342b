/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pretended card: programs run without a GPU. This header is all that the rest of cufrag may
 * include of src/pretend.
 *
 *	struct frag_program p = { .words = words, .pretend = &options, .target = target };
 *	frag_program_record(&p, &trace, &status, err);
 *
 * A command takes the options by a struct whose first field is a struct frag_pretend, and one of
 * the tables of rows below. A build with PRETEND=0 (pretend_absent.c) has no rows, and each
 * function that would run a program fails with FRAG_EUSAGE.
 *
 * Ownership: structs are plain values that borrow their pointers; traces given out are the
 * caller's. Errors: FRAG_EUSAGE for what the user asked, FRAG_EINPUT if nothing was recorded,
 * FRAG_EINTR, FRAG_EOUTPUT.
 */
#ifndef FRAG_PRETEND_PRETEND_H
#define FRAG_PRETEND_PRETEND_H

#include "base/args.h"
#include "inject/launch/inject_files.h"
#include "inject/launch/launch.h"
#include "plan/fit/fit_cards.h"

/* ---- what is asked of a run ----------------------------------------------------------- */

/* What a program writes is held back from its user's files (start/held_runs.h). */
struct frag_hold {
	const char *keep;    /* NULL: all is held; "": nothing; else nothing below this folder */
	uint64_t most_bytes; /* that may be held */
	const char *own;     /* a file that the policy of `run` writes for the user, or NULL */
};

struct frag_pretend {
	bool no_gpu;	   /* first: the flag of a way to record (inject/launch/way.h) */
	unsigned gpus;	   /* 0 = as many as the ranks need, else 1 */
	const char *ranks; /* "0,7", "0-3" or "roles", NULL = no job of several */
	unsigned world;	   /* 0 = that of the ranks */
	const char *values;
	uint64_t memory_bytes; /* of the host, for all ranks that run at a time; 0 = any */
	struct frag_hold hold;
	bool again;	  /* a second time with other values */
	bool warm_caches; /* torch.compile's are kept from one run to the next */
	bool reuse;	  /* a recording of an earlier call will do (start/kept.c) */
	bool trial;	  /* with reuse: neither taken from there nor put there */
	/* a file in which the roles of such a job are, or will be once checked; NULL = none */
	const char *known_roles;

	/* of the commands that record a program in place of reading a trace */
	const char *vary; /* "{NAME}=…" */
	bool fresh;	  /* fit: no recording of an earlier call */
};

/* For every command that records; `run`; what fit and scale have beside the first; and --no-gpu for
 * commands that imply it. */
extern const struct frag_arg frag_pretend_rows[], frag_pretend_run_rows[], frag_pretend_fit_rows[],
	frag_pretend_scale_rows[], frag_pretend_implied[];

/* Before a command: what it held back is said once, also if processes that it forks record. */
void frag_held_watch(void);
/* Notes what was held back since then. */
void frag_held_say(void (*note)(const void *ctx, const char *text), const void *ctx);

/* For frag_launch_policy.cards, with a struct frag_pretend as its options; for frag_launch.collect. */
extern const struct frag_launch_cards frag_pretend_cards;
int frag_pretend_collect(const struct frag_launch *l, const char *folder, int status,
			 struct frag_trace **out, struct frag_err *err);

/* ---- a program in place of a recording ---------------------------------------------- */

struct frag_program {
	char **words; /* as execvp(3) takes them */
	const struct frag_pretend *pretend;
	struct frag_target target; /* the card, the limit, the seed */
	const char *gpu;	   /* name of the card; NULL: h200 */
	/* What is no failure; may be NULL. */
	void (*note)(const void *ctx, const char *text);
	void *ctx;
};

/* Records it, named as the program; its output goes to standard error. *status: of the program. */
int frag_program_record(const struct frag_program *p, struct frag_trace **out, int *status,
			struct frag_err *err);

#define FRAG_VARY_NAME 64u

/* Takes "{NAME}=" off the front of an option's text and returns what follows it; NULL if it does
 * not begin so. name[FRAG_VARY_NAME]: with its braces. */
const char *frag_vary_name(const char *text, char *name);
/* Records the program with n in place of the name, which is in its command line. *refused: requests
 * that the card had no memory for, also those that the program caught. *status: of the program; not
 * 0 only where memory was refused. Errors: FRAG_EINPUT if it failed for another reason. */
int frag_program_vary(const struct frag_program *p, const char *name, uint64_t n,
		      struct frag_trace **out, int *status, uint64_t *refused,
		      struct frag_err *err);

/*
 * `fit -- PROGRAM`: the program is recorded once for each compute capability among the cards, because it chooses its
 * kernels, and so its memory, by that; and at the end on the very card that is about to be advised.
 *
 *	struct frag_fit_classes c = { .program = program, … .first = &first };		first: searched, of the first recording
 *	frag_fit_classes_record(&c, &best, err) ?: frag_fit_cards_answer(best, …); frag_fit_classes_release(&c);
 */
#define FRAG_FIT_CLASSES 24u /* recordings at most */

struct frag_fit_classes {
	struct frag_program program;
	const struct frag_policy_texts *policies;
	struct frag_headroom headroom;
	unsigned threads;
	struct frag_fit_cards *first;
	/* made, by recording: its search, the card, its memory */
	struct frag_fit_cards list[FRAG_FIT_CLASSES];
	const struct frag_gpu *gpus[FRAG_FIT_CLASSES];
	uint64_t capacities[FRAG_FIT_CLASSES];
	size_t count;
	const struct frag_fit_cards *judges[FRAG_CARDS_MAX];
	char *folder;
};

/* *out: what to answer from. An interruption leaves cards to the first recording. */
int frag_fit_classes_record(struct frag_fit_classes *c, struct frag_fit_cards **out,
			    struct frag_err *err);
void frag_fit_classes_release(struct frag_fit_classes *c);

#endif
