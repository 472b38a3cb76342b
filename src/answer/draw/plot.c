/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot as a child process: finding the scripts, running several at a time. */
#include "answer/draw/plot.h"

#include "base/scratch.h"
#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/parallel.h"
#include "base/share.h"

#include <frag/base.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXEC_FAILED 127
#define LIMIT_S 60u /* of one picture */

int frag_plot_scripts(char **dir, struct frag_err *err)
{
	*dir = frag_share_find("plot", "scripts/plot", "style.gp");
	if (*dir)
		return 0;
	return FRAG_OUTPUT(err, "the plot scripts are not found near the program; set FRAG_SHARE "
				"to the folder that holds plot/style.gp");
}

int frag_plot_aside(const char *dir, char **folder, struct frag_err *err)
{
	/* "./": whatever the folder is called, gnuplot takes the path for one */
	char *safe = !dir ? NULL : *dir == '/' ? frag_host_strdup(dir) : frag_path_join(".", dir);
	int reason = safe || !dir ? frag_scratch_folder(safe, folder) : ENOMEM;

	frag_host_free(safe);
	if (reason == ENOMEM)
		return frag_fail_nomem(err, "report");
	return reason ? FRAG_OUTPUT(err, "cannot write into '%s': %s", dir ? dir : "$TMPDIR",
				    strerror(reason))
		      : 0;
}

struct drawing {
	const char *dir;
	const struct frag_plot *plots;
	/* the first that failed; no further one begins then */
	volatile sig_atomic_t failed;
	struct frag_err err;
	int rc;
};

/* In the child: only calls that are allowed between fork and exec. */
static void become_gnuplot(const char *log_path, pid_t parent, char *const *argv)
{
	int in = open("/dev/null", O_RDONLY), none = open("/dev/null", O_WRONLY);
	int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	/* a group of its own: Ctrl-C on the terminal lets a picture that was begun be finished;
	 * but it ends with us, however we end */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	if (in >= 0 && none >= 0 && log >= 0 && getppid() == parent && dup2(in, 0) == 0 &&
	    dup2(none, 1) == 1 && dup2(log, 2) == 2)
		execvp(argv[0], argv);
	_exit(EXEC_FAILED);
}

static int run(const struct frag_plot *p, char *script, const char *log, struct frag_err *err)
{
	/* -d: no init file of the user's may change the picture */
	char *argv[] = { (char *)"gnuplot",
			 (char *)"-d",
			 (char *)"-c",
			 script,
			 (char *)p->csv,
			 (char *)p->output,
			 (char *)p->format,
			 (char *)p->title,
			 (char *)p->subtitle,
			 (char *)p->extra,
			 NULL };
	FRAG_AUTO_FILE FILE *said = NULL;
	char line[300], mistake[300] = "";
	int status = -1;
	pid_t self = getpid(), pid = fork();

	if (!pid)
		become_gnuplot(log, self, argv);
	if (pid < 0)
		return FRAG_OUTPUT(err, "cannot start gnuplot: %s", strerror(errno));
	for (useconds_t pause_us = 500; !waitpid(pid, &status, WNOHANG);
	     pause_us = FRAG_MIN(2 * pause_us, 20000)) {
		if (frag_interrupted_twice())
			kill(-pid, SIGKILL);
		usleep(pause_us);
	}
	if (frag_interrupted_twice())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXEC_FAILED)
		return FRAG_OUTPUT(err, "cannot run gnuplot for the charts; install it (package "
					"gnuplot-nox), or use --csv and --json");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return FRAG_OUTPUT(err, "gnuplot took longer than %u s to draw '%s' and was ended",
				   LIMIT_S, p->script);
	if (!status && !access(p->output, R_OK))
		return 0;
	/* the first line gnuplot said that names a mistake, else a word about its status */
	said = fopen(log, "r");
	while (said && fgets(line, sizeof(line), said)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (*line && (strstr(line, "line ") || !*mistake))
			memcpy(mistake, line, sizeof(line));
	}
	return FRAG_OUTPUT(err, "gnuplot failed to draw '%s' (status %d): %.200s", p->script,
			   WIFEXITED(status) ? WEXITSTATUS(status) : -1,
			   *mistake ? mistake : "it said nothing");
}

static void draw(void *ctx, size_t i)
{
	struct drawing *d = ctx;
	const struct frag_plot *p = &d->plots[i];
	bool whole = strchr(p->script, '/') != NULL;
	struct frag_err err = { 0 };
	FRAG_AUTO_FREE char *script = NULL, *log = NULL;
	int rc;

	if (asprintf(&script, "%s%s%s%s", whole ? "" : d->dir, whole ? "" : "/", p->script,
		     whole ? "" : ".gp") < 0)
		script = NULL;
	if (asprintf(&log, "%s.log", p->output) < 0)
		log = NULL;
	rc = script && log ? run(p, script, log, &err) : frag_fail_nomem(&err, "gnuplot");
	if (log)
		unlink(log);
	if (rc && !__atomic_exchange_n(&d->failed, 1, __ATOMIC_SEQ_CST)) {
		d->err = err;
		d->rc = rc;
	}
}

int frag_plot_run(const struct frag_plot *plots, size_t count, unsigned threads,
		  struct frag_err *err)
{
	FRAG_AUTO_FREE char *dir = NULL;
	struct drawing d = { .plots = plots };
	const struct frag_watch watch = { .stop = &d.failed };
	int rc;

	FRAG_TRY(frag_plot_scripts(&dir, err));
	d.dir = dir;
#ifdef __GLIBC__
	malloc_trim(0); /* each child begins as a copy of what we hold */
#endif
	frag_interrupt_catch();
	frag_interrupt_hold(true);
	rc = frag_parallel(count, threads, draw, &d, &watch, NULL, NULL, err);
	frag_interrupt_hold(false);
	if (d.rc && err)
		*err = d.err;
	return d.rc ? d.rc : rc;
}

/*
 * ---- all of them in one PDF: a program that calls the scripts one after the other. Texts go in as
 * literals in single quotes, in which gnuplot knows no escape and runs no command. ----
 */

/* 'it''s'; the break of a line is one outside of the quotes. */
static void add_literal(const char *name, const char *text, struct frag_text *out)
{
	frag_text_addf(out, "%s = '", name);
	for (const char *p = text; *p; p++) {
		if (*p == '\n')
			frag_text_add(out, "'.\"\\n\".'");
		else if ((unsigned char)*p < 0x20)
			frag_text_add(out, " ");
		else
			frag_text_addn(out, *p == '\'' ? "''" : p, *p == '\'' ? 2 : 1);
	}
	frag_text_add(out, "'\n");
}

void frag_one_pdf_script(const struct frag_plot *plots, size_t count, const char *scripts,
			 const char *output, struct frag_text *out)
{
	frag_text_add(out, "ONE_PDF = 1\nFORMAT = 'one_pdf'\nCHARTS = ''\nOUTPUT = ''\n"
			   "set term pdfcairo size 8.268in,11.693in fontscale 0.757 linewidth 1.2 "
			   "pointscale 0.757 font 'sans-serif,14' noenhanced rounded background "
			   "'#ffffff'\n");
	add_literal("CHARTS", output, out);
	frag_text_add(out, "set output CHARTS\n");
	for (size_t i = 0; i < count; i++) {
		const struct frag_plot *p = &plots[i];

		add_literal("SCRIPT", scripts, out);
		frag_text_addf(out, "SCRIPT = SCRIPT.'/%s.gp'\n", p->script);
		add_literal("CSV", p->csv, out);
		add_literal("TITLE", p->title, out);
		add_literal("SUBTITLE", p->subtitle, out);
		add_literal("EXTRA", p->extra, out);
		/* what a chart sets is not the next one's */
		frag_text_add(out, "call SCRIPT\nreset\n");
	}
	frag_text_add(out, "unset output\n");
}
