/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording a program: the ways to do it, and what fit and scale share with the command.
 *
 * A way is one file way_<name>.c with one constant  const struct frag_record_way frag_record_way_<name>,
 * found by make. Each decides by the options whether it was asked for; exactly one may be.
 */
#ifndef FRAG_CLI_RECORD_H
#define FRAG_CLI_RECORD_H

#include <frag/trace.h>

#include "cli/common.h"

struct frag_record_options {
	const char *output;
	bool frames;
	unsigned max_entries;
	bool no_gpu;
	unsigned gpus; /* 0 = as many as the ranks need, else 1 */
	const char *ranks;
	unsigned world;
	const char *values;
	bool again; /* a second time with other values */
	bool torch, no_pool, stacks;
	enum { FRAG_RECORD_AUTO, FRAG_RECORD_CUPTI, FRAG_RECORD_PRELOAD } by;
};

/* The rows of these options, for the tables of a command that has the struct at offset 0. */
extern const struct frag_arg frag_record_rows[];       /* what every way of recording takes */
extern const struct frag_arg frag_record_nogpu_rows[]; /* --no-gpu and what belongs to it */
extern const struct frag_arg frag_record_cuda_rows[];  /* on a card */

struct frag_record_way {
	const char *name, *summary;
	bool (*asked)(const struct frag_record_options *o);
	/* Runs the program and gives what it did. *status: of the program, 128 + n by signal n.
	 * Errors: FRAG_EINPUT if nothing was recorded, and what the program's start brings. */
	int (*run)(const struct frag_cli *cli, const struct frag_record_options *o, char **program,
		   struct frag_trace **out, int *status, struct frag_err *err);
};

/* ---- a run (launch.c) -------------------------------------------------------------- */

/* Runs the program to its end; prepare: in its process, before it begins. *status as in the ways; what
 * is there already stays. Errors: FRAG_EUSAGE if it cannot be started. */
int frag_record_launch(char **program, void (*prepare)(const void *ctx), const void *ctx,
		       int *status, struct frag_err *err);
/* From here on a reader of our output that goes away does not end us, before the recording is written. */
void frag_record_outlive_readers(void);
/* A signal came while a program ran, which was to end it and what would follow. */
bool frag_record_ended(void);
/* In the program's process: "a:b" for the variable's "b"; and a library is put in front of what is preloaded
 * anyway, if its path can be. */
void frag_record_put_front(const char *name, const char *front);
bool frag_record_can_preload(const char *library);
void frag_record_preload(const char *library);
/* A trace is called as its file: without folders and ending. */
int frag_record_name(struct frag_trace *trace, const char *path, struct frag_err *err);
/* A new temporary folder, made aside; remove takes "" for none. */
int frag_record_folder(char *folder, size_t cap, struct frag_err *err);
void frag_record_folder_remove(const char *folder);
/* All NAME.csv, or NAME.pickle, in the folder as one trace. Errors: FRAG_EINPUT if nothing is there. */
int frag_record_gather(const struct frag_cli *cli, const char *folder, bool pickles,
		       struct frag_trace **out, struct frag_err *err);

/* Takes away the shared pages of recorded processes that were killed. Is there a NAME.PID.csv with events? */
bool frag_record_forget(const char *folder);
/* Says what libraries took for themselves, if a file of the folder tells of that. */
void frag_record_note_apart(const struct frag_cli *cli, const char *folder);

/* Frames of programs ("main+0x1f2a" in their file) get source file and line, where those are known. */
int frag_record_symbols(struct frag_trace *trace, struct frag_err *err);

/* ---- without a GPU (nogpu_*.c) ---------------------------------------------------- */

/* The parts that go into the program's process, as files in the user's cache. Strings are the
 * caller's (frag_host_free). */
struct frag_nogpu_home {
	char *home;  /* the same for all programs of this version of cufrag */
	char *cache; /* what is made once for each PyTorch */
};
int frag_nogpu_home_open(struct frag_nogpu_home *h, struct frag_err *err);
void frag_nogpu_home_release(struct frag_nogpu_home *h);
/* In the program's process, before it begins: Python finds the files; and the pretended cards: as many as the user
 * asked for, 0 = no word about it, then as many as are needed. */
void frag_nogpu_python(const struct frag_nogpu_home *home);
void frag_nogpu_environment(const struct frag_cli *cli, const struct frag_nogpu_home *home,
			    unsigned asked, unsigned needed, const char *values);

/*
 * Runs the program once, or once for each of the ranks, and gives all recordings as one trace,
 * marked as an estimate. stdout_to_stderr: for commands with results of their own.
 */
int frag_nogpu_record(const struct frag_cli *cli, const struct frag_record_options *o,
		      char **program, bool stdout_to_stderr, struct frag_trace **out, int *status,
		      struct frag_err *err);

/* The program once more with other values; what it needs then goes into the note of `trace`. */
int frag_nogpu_record_again(const struct frag_cli *cli, const struct frag_record_options *o,
			    char **program, struct frag_trace *trace, struct frag_err *err);

/*
 * For commands that take traces, or a program to record (--no-gpu): after it the operands are
 * there in any case. Errors: FRAG_EUSAGE if both or neither were given.
 */
struct frag_record_operand {
	char *folder;	 /* made aside, NULL = none */
	char path[4096]; /* of the .cft in it */
	char *list[1];
	struct frag_cli *cli; /* NULL: its operands are its own */
	char **before;
};
int frag_record_operand(struct frag_cli *cli, const struct frag_record_options *o,
			struct frag_record_operand *out, struct frag_err *err);
void frag_record_operand_release(struct frag_record_operand *o);
/* A trace that has no file is called after the script, or the program. */
int frag_record_name_after(struct frag_trace *trace, char **program, struct frag_err *err);

/* What a recorded program left. A snapshot of PyTorch 2.1 or 2.2 does not hold its settings: they are those of the
 * environment, which the program had, too. */
int frag_record_read(const char *path, struct frag_trace **out, struct frag_err *err);

/* Everything in `folder` that processes wrote there as one trace. Errors: FRAG_EINPUT if nothing is. */
int frag_record_collect(const char *folder, const struct frag_cli *cli, struct frag_trace **out,
			struct frag_err *err);

#endif
