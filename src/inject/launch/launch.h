/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a program with a library of src/inject in it, and making one trace of what its processes
 * leave.
 *
 * How a program can be recorded is a plug-in: way.h. Here is what the ways, and the commands that
 * record a program before they look at it, have in common.
 *
 * Ownership: strings are borrowed for the call; traces that are given out are the caller's.
 */
#ifndef FRAG_LAUNCH_LAUNCH_H
#define FRAG_LAUNCH_LAUNCH_H

#include <stdio.h>

#include <frag/trace.h>

#include "recording/target.h"
#include "protocol_list.inc"

/* What is asked for, whichever way records, and what the caller does meanwhile. */
struct frag_launch {
	struct frag_target
		target; /* the card, the limit of each process on it, the seed; how recordings are opened */
	const char *gpu;      /* name of the card; NULL: h200 */
	bool frames;	      /* keep the stack of each allocation */
	unsigned max_entries; /* kept per device, 0 = 10 million */
	bool stdout_to_stderr; /* the program's standard output, for commands that have results of their own */

	/* A trace of what is left in `folder`: frag_pretend_collect. NULL: no pretended card. */
	int (*collect)(const struct frag_launch *l, const char *folder, int status,
		       struct frag_trace **out, struct frag_err *err);
	/* Tells the user something that is no failure. */
	void (*note)(const void *ctx, const char *text);
	void *ctx;
};

void frag_launch_note(const struct frag_launch *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- the program's process (process.c) ---------------------------------------------- */

/* Runs the program to its end; prepare: in its process, before it begins. *status: of the program,
 * 128 + n by signal n; keeps existing files. Errors: FRAG_EUSAGE if it cannot be started. */
int frag_launch_run(char **program, void (*prepare)(const void *ctx), const void *ctx, int *status,
		    struct frag_err *err);
/* In the program's process: runs it once for each of `count` ranks and ends with the status of the
 * first that failed, which ends the others. prepare: in the process of rank number i. If together
 * they have more than `memory` bytes of the host (0: any), all are ended and over_path is there. */
void frag_launch_become_ranks(char **program, unsigned count,
			      void (*prepare)(const void *ctx, unsigned i), const void *ctx,
			      uint64_t memory, const char *over_path) __attribute__((noreturn));
/* A free port of this machine; 0: none. */
unsigned frag_launch_free_port(void);
/* This process becomes the program: what a shell would start, or a Python file (train.py). Returns
 * only if it cannot; errno says why. */
void frag_launch_become(char **program);
/* A reader of our output that goes away does not end us before the recording is written. */
void frag_launch_outlive_readers(void);
/* True if a terminating signal arrived while a program ran: skip what would follow. */
bool frag_launch_interrupted(void);
/* Programs of this process are asked to end when `done` says so, a few times a second: servers,
 * which wait for ever. The status then says nothing. */
void frag_launch_end_when(bool (*done)(void *ctx), void *ctx);
bool frag_launch_was_done(void);
/* In the program's process: "a:b" for the variable's "b"; and a library is put in front of what is
 * preloaded anyway, if its path can be. */
void frag_launch_prepend(const char *variable, const char *front);
bool frag_launch_can_preload(const char *library);
void frag_launch_preload(const char *library);
void frag_launch_put_number(const char *variable, unsigned long long n);
void frag_launch_put_path(const char *variable, const char *folder, const char *name);
/* Python finds the files of cufrag. */
struct frag_inject_files;
void frag_launch_python(const struct frag_inject_files *files);

/* ---- what it leaves in a folder (recorded_files.c) ------------------------------------------ */

/* A new temporary folder; remove takes "" for none. */
int frag_launch_folder(char *folder, size_t cap, struct frag_err *err);
void frag_launch_folder_remove(const char *folder);
/* Reads a file of a process. A snapshot of PyTorch 2.1 or 2.2 does not hold its settings: they are
 * those of the environment, which the program had, too. */
int frag_launch_read(const char *path, struct frag_trace **out, struct frag_err *err);
/* All NAME.csv and NAME.cft of the folder as one trace. Errors: FRAG_EINPUT if nothing is there. */
int frag_launch_gather(const char *folder, struct frag_trace **out, struct frag_err *err);
/* Removes shared pages of killed recorded processes. True if a NAME.PID.csv or .cft has events. */
bool frag_launch_forget_pages(const char *folder);
/* Tells the user what libraries took for themselves, if a file of the folder says so. */
void frag_launch_note_left_out(const struct frag_launch *l, const char *folder);

/* ---- the trace -------------------------------------------------------------------------- */

/* Names a trace as its file, without folders and ending; or as the program. */
int frag_launch_name_as_file(struct frag_trace *trace, const char *path, struct frag_err *err);
int frag_launch_name_as_program(struct frag_trace *trace, char **program, struct frag_err *err);
/* Gives frames of programs ("main+0x1f2a" in their file) their source line, if it is known. */
int frag_launch_source_lines(struct frag_trace *trace, struct frag_err *err);

/* ---- with a policy (with_policy.c) -------------------------------------------------------- */

/* Other cards than the real one (frag_pretend_cards), with a folder of their own while the program runs. */
struct frag_launch_cards {
	int (*begin)(const void *options, const char *folder, const struct frag_inject_files *files,
		     struct frag_err *err);
	/* in the program's process */
	void (*put)(const struct frag_launch *l, const void *options, const char *folder,
		    const struct frag_inject_files *files);
	void (*end)(const void *options, const char *folder);
};

struct frag_launch_policy {
	const char *policy;		       /* as any command takes it; checked by the caller */
	const char *record;		       /* .cft to write, NULL = none */
	const struct frag_launch_cards *cards; /* NULL: the real card */
	const void *options;		       /* of the cards */
};
/* Runs the program with a policy as PyTorch's allocator. On the real card and without `record` this
 * process becomes the program, and returns only with an error. *status as of frag_launch_run. */
int frag_launch_with_policy(const struct frag_launch *l, const struct frag_launch_policy *o,
			    char **program, int *status, struct frag_err *err);

#endif
