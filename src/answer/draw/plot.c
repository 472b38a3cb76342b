/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot as a child process: finding the scripts, running several at a time. */
#include "answer/draw/plot.h"

#include "base/scratch.h"
#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/share.h"

#include <frag/base.h>
#include <frag/clock.h>

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
#define LIMIT_NS 60000000000ull /* of one picture */

int frag_plot_scripts(char **dir, struct frag_err *err)
{
	*dir = frag_share_find("plot", "scripts/plot", "style.gp");
	if (*dir)
		return 0;
	return frag_fail(err, FRAG_EOUTPUT,
			 "the plot scripts are not found near the program; set FRAG_SHARE to the "
			 "folder that holds plot/style.gp");
}

int frag_plot_aside(const char *dir, char **folder, struct frag_err *err)
{
	/* "./": whatever the folder is called, gnuplot takes the path for one */
	char *safe = !dir ? NULL : *dir == '/' ? frag_host_strdup(dir) : frag_path_join(".", dir);
	int reason = safe || !dir ? frag_scratch_folder(safe, folder) : ENOMEM;

	frag_host_free(safe);
	if (reason == ENOMEM)
		return frag_fail_nomem(err, "report");
	return reason ? frag_fail(err, FRAG_EOUTPUT, "cannot write into '%s': %s",
				  dir ? dir : "$TMPDIR", strerror(reason))
		      : 0;
}

/* A running child; `log` takes what it says. */
struct child {
	pid_t pid;
	uint64_t begin_ns;
	const struct frag_plot *plot;
	char *script, *log;
};

static void forget(struct child *c)
{
	if (c->log)
		unlink(c->log);
	FRAG_FREE(c->log, c->script);
	*c = (struct child){ 0 };
}

/* In the child: only calls that are allowed between fork and exec. */
static void become_gnuplot(const struct child *c, pid_t parent, char *const *argv)
{
	int in = open("/dev/null", O_RDONLY), none = open("/dev/null", O_WRONLY);
	int log = open(c->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	/* a group of its own: Ctrl-C on the terminal lets a picture that was begun be finished;
	 * but it ends with us, however we end */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (in >= 0 && none >= 0 && log >= 0 && getppid() == parent && dup2(in, 0) == 0 &&
	    dup2(none, 1) == 1 && dup2(log, 2) == 2)
		execvp(argv[0], argv);
	_exit(EXEC_FAILED);
}

static int spawn(struct child *c, struct frag_err *err)
{
	const struct frag_plot *p = c->plot;
	pid_t self = getpid();
	/* -d: no init file of the user's may change the picture */
	char *argv[] = { (char *)"gnuplot",
			 (char *)"-d",
			 (char *)"-c",
			 c->script,
			 (char *)p->csv,
			 (char *)p->output,
			 (char *)p->format,
			 (char *)p->title,
			 (char *)p->subtitle,
			 (char *)p->extra,
			 NULL };

	c->pid = fork();
	if (!c->pid)
		become_gnuplot(c, self, argv);
	if (c->pid < 0) {
		c->pid = 0;
		return frag_fail(err, FRAG_EOUTPUT, "cannot start gnuplot: %s", strerror(errno));
	}
	c->begin_ns = frag_clock_ns();
	return 0;
}

static int start(const char *dir, const struct frag_plot *plot, struct child *c,
		 struct frag_err *err)
{
	bool whole = strchr(plot->script, '/') != NULL;
	int ret;

	c->plot = plot;
	if (asprintf(&c->script, "%s%s%s%s", whole ? "" : dir, whole ? "" : "/", plot->script,
		     whole ? "" : ".gp") < 0)
		c->script = NULL;
	if (asprintf(&c->log, "%s.log", plot->output) < 0)
		c->log = NULL;
	ret = c->script && c->log ? spawn(c, err) : frag_fail_nomem(err, "gnuplot");
	if (ret)
		forget(c);
	return ret;
}

/* The first line gnuplot said that names a mistake, else a word about its status. */
static int complain(const struct child *c, int status, struct frag_err *err)
{
	char line[300], said[300] = "";
	FILE *log = fopen(c->log, "r");

	while (log && fgets(line, sizeof(line), log)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (*line && (strstr(line, "line ") || !*said))
			memcpy(said, line, sizeof(said));
	}
	if (log)
		fclose(log);
	return frag_fail(err, FRAG_EOUTPUT, "gnuplot failed to draw '%s' (status %d): %.200s",
			 c->plot->script, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
			 *said ? said : "it said nothing");
}

/* Its end, for which it has a minute; a second interruption ends it at once. */
static int wait_for(struct child *c, int *status, struct frag_err *err)
{
	for (useconds_t pause_us = 500;; pause_us = FRAG_MIN(2 * pause_us, 20000)) {
		pid_t got = waitpid(c->pid, status, WNOHANG);
		bool late = frag_clock_ns() - c->begin_ns > LIMIT_NS;

		if (got == c->pid || (got < 0 && errno != EINTR))
			return 0;
		if (late || frag_interrupted_twice()) {
			kill(-c->pid, SIGKILL);
			kill(c->pid, SIGKILL);
			while (waitpid(c->pid, status, 0) < 0 && errno == EINTR)
				;
			return late ? frag_fail(err, FRAG_EOUTPUT,
						"gnuplot took more than a minute to draw '%s' and "
						"was ended",
						c->plot->script)
				    : frag_fail(err, FRAG_EINTR, "interrupted");
		}
		usleep(pause_us);
	}
}

static int finish(struct child *c, struct frag_err *err)
{
	int status = -1, ret = wait_for(c, &status, err);

	if (!ret && WIFEXITED(status) && WEXITSTATUS(status) == EXEC_FAILED)
		ret = frag_fail(err, FRAG_EOUTPUT,
				"cannot run gnuplot for the charts; install it (package "
				"gnuplot-nox), or use --csv and --json");
	else if (!ret && (status != 0 || access(c->plot->output, R_OK)))
		ret = complain(c, status, err);
	forget(c);
	return ret;
}

#define CHILDREN_MAX 16u

int frag_plot_run(const struct frag_plot *plots, size_t count, unsigned threads,
		  struct frag_err *err)
{
	struct child children[CHILDREN_MAX] = { 0 };
	size_t slots = FRAG_MIN(FRAG_MAX(threads, 1u), CHILDREN_MAX);
	FRAG_AUTO_FREE char *dir = NULL;
	int ret;

	FRAG_TRY(frag_plot_scripts(&dir, err));
	ret = 0;
#ifdef __GLIBC__
	malloc_trim(0); /* each child begins as a copy of what we hold */
#endif
	frag_interrupt_catch();
	frag_interrupt_hold(true);
	/* A ring: the oldest child is waited for before its place is used again. */
	for (size_t i = 0; i < count && !ret; i++) {
		struct child *c = &children[i % slots];

		if (c->pid)
			ret = finish(c, err);
		if (!ret)
			ret = start(dir, &plots[i], c, err);
	}
	for (size_t i = 0; i < slots; i++) {
		if (children[i].pid) {
			int last = finish(&children[i], ret ? NULL : err);

			ret = ret ? ret : last;
		}
	}
	frag_interrupt_hold(false);
	return ret;
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
