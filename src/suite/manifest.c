/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest, and its workloads made ready; see suite.h. Both come from others: nothing in them is taken for granted. */
#include "suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/opt.h>

#include "base/args.h"
#include "base/outfile.h"
#include "base/scratch.h"
#include "base/share.h"
#include "plan/probe.h"

#define NAME "suite.json"
#define FILE_MAX (64 * FRAG_MIB) /* of a manifest or result */
#define WORDS_MAX 32u

int frag_suite_json_open(const char *path, json_t **out, struct frag_err *err)
{
	json_error_t e;
	struct stat st;

	if (stat(path, &st))
		return frag_fail(err, FRAG_EINPUT, "cannot open '%.200s': %m", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MAX)
		return frag_fail(err, FRAG_EINPUT, "'%.200s' is not a file of at most 64 MiB",
				 path);
	*out = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (!*out)
		return frag_fail_at(err, FRAG_EINPUT, (uint64_t)FRAG_MAX(e.position, 0),
				    "'%.200s' is not JSON: byte %d: %.80s", path, e.position,
				    e.text);
	return 0;
}

/* ---- reading ------------------------------------------------------------------------- */

static bool proper(const char *s)
{
	return *s && strlen(s) < 64 && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-")];
}

/* Below the manifest's folder. */
static bool inside(const char *file)
{
	return *file && *file != '/' && !strstr(file, "..") && strlen(file) < 1024;
}

static bool hex(const char *s)
{
	return strlen(s) == FRAG_SHA256_TEXT - 1 &&
	       strspn(s, "0123456789abcdef") == FRAG_SHA256_TEXT - 1;
}

static bool is_class(const struct frag_suite_manifest *m, const char *name)
{
	for (size_t i = 0; i < m->classes_count; i++)
		if (!strcmp(m->classes[i].name, name))
			return true;
	return false;
}

static bool is_workload(const struct frag_suite_manifest *m, const char *name)
{
	for (size_t i = 0; i < m->workloads_count; i++)
		if (!strcmp(m->workloads[i].name, name))
			return true;
	return false;
}

static int read_class(struct frag_suite_manifest *m, json_t *from, const char **why)
{
	struct frag_suite_class *c = &m->classes[m->classes_count];
	json_error_t e;

	*why = "a class has a name and what it is about, and nothing else";
	if (json_unpack_ex(from, &e, JSON_STRICT, "{s:s, s:s}", "name", &c->name, "about",
			   &c->about))
		return -1;
	*why = "its name is not new, or not made of a-z, 0-9, '.' and '-'";
	if (!proper(c->name) || is_class(m, c->name))
		return -1;
	m->classes_count++;
	return 0;
}

static int read_workload(struct frag_suite_manifest *m, json_t *from, const char **why)
{
	struct frag_suite_workload *w = &m->workloads[m->workloads_count];
	json_error_t e;

	*why = "a workload has name, class, about, file with sha256 or gen, and where wanted quick "
	       "and card";
	if (json_unpack_ex(from, &e, JSON_STRICT, "{s:s, s:s, s:s, s?s, s?s, s?s, s?b, s?b}",
			   "name", &w->name, "class", &w->class, "about", &w->about, "file",
			   &w->file, "gen", &w->gen, "sha256", &w->sha256, "quick", &w->quick,
			   "card", &w->card) ||
	    !w->file == !w->gen)
		return -1;
	*why = "its name is not new, or not made of a-z, 0-9, '.' and '-'";
	if (!proper(w->name) || is_workload(m, w->name))
		return -1;
	*why = "its class is not among the classes";
	if (!is_class(m, w->class))
		return -1;
	*why = "its file is not below the manifest, or has no sha256 of 64 digits";
	if (w->file && (!inside(w->file) || !w->sha256 || !hex(w->sha256)))
		return -1;
	m->workloads_count++;
	return 0;
}

static int each(struct frag_suite_manifest *m, json_t *list, const char *what,
		int (*read)(struct frag_suite_manifest *m, json_t *from, const char **why),
		struct frag_err *err)
{
	const char *why;

	for (size_t i = 0; i < json_array_size(list); i++)
		if (read(m, json_array_get(list, i), &why))
			return frag_fail_at(err, FRAG_EINPUT, i, "%s %zu: %s", what, i + 1, why);
	return json_array_size(list) ? 0 : frag_fail(err, FRAG_EINPUT, "it has no %s", what);
}

static int read_manifest(struct frag_suite_manifest *m, struct frag_err *err)
{
	json_t *classes, *workloads;
	json_int_t events;
	const char *suite;
	json_error_t e;
	size_t digits;

	if (json_unpack_ex(m->doc, &e, JSON_STRICT, "{s:s, s:s, s:I, s:o, s:o}", "suite", &suite,
			   "version", &m->version, "events_max", &events, "classes", &classes,
			   "workloads", &workloads) ||
	    strcmp(suite, "cufrag") != 0)
		return frag_fail(err, FRAG_EINPUT, "not a manifest of the suite%s%.100s",
				 *e.text ? ": " : "", e.text);
	digits = strspn(m->version, "0123456789.");
	if (m->version[digits] || digits > 20 || strtoul(m->version, NULL, 10) != FRAG_SUITE_MAJOR)
		return frag_fail(err, FRAG_EINPUT, "version '%.20s' is not known here: %d.x.y",
				 m->version, FRAG_SUITE_MAJOR);
	if (events < 1000 || events > 1000000000)
		return frag_fail(err, FRAG_EINPUT, "events_max is not from 1000 to 1000000000");
	m->events_max = (uint64_t)events;
	FRAG_TRY_CALLOC(m->classes, json_array_size(classes) + 1, "manifest", err);
	FRAG_TRY_CALLOC(m->workloads, json_array_size(workloads) + 1, "manifest", err);
	FRAG_TRY(each(m, classes, "class", read_class, err));
	return each(m, workloads, "workload", read_workload, err);
}

int frag_suite_manifest_open(struct frag_suite_manifest *m, const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE char *folder = path ? NULL : frag_share_find("traces", "traces", NAME);
	FRAG_AUTO_FREE char *found = folder ? frag_path_join(folder, NAME) : NULL;
	const char *slash;
	int rc;

	*m = (struct frag_suite_manifest){ 0 };
	if (!path && !found)
		return frag_fail(err, FRAG_EINPUT,
				 "the workloads that come with cufrag are not beside the program; "
				 "name a --manifest");
	path = path ?: found;
	slash = strrchr(path, '/');
	m->dir = slash ? strndup(path, (size_t)(slash - path) + 1) : frag_host_strdup(".");
	FRAG_CHECK_ALLOC(m->dir, "manifest", err);
	rc = frag_suite_json_open(path, &m->doc, err) ?: frag_sha256_file(path, m->sha256, err);
	if (!rc && read_manifest(m, err))
		rc = frag_err_prefix(err, "'%.200s'", path);
	if (rc)
		frag_suite_manifest_release(m);
	return rc;
}

void frag_suite_manifest_release(struct frag_suite_manifest *m)
{
	json_decref(m->doc);
	FRAG_FREE(m->dir, m->classes, m->workloads);
	*m = (struct frag_suite_manifest){ 0 };
}

/* Is the name one of those with commas? */
static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == n && !strncmp(list, name, n))
			return true;
	return false;
}

static int check_classes(const struct frag_suite_manifest *m, const char *classes,
			 struct frag_err *err)
{
	FRAG_AUTO_FREE const char **names = NULL;
	FRAG_AUTO_FREE char *copy = frag_host_strdup(classes);
	char *rest = copy, *one;

	FRAG_CHECK_ALLOC(copy, "classes", err);
	FRAG_TRY_CALLOC(names, m->classes_count + 1, "classes", err);
	for (size_t i = 0; i < m->classes_count; i++)
		names[i] = m->classes[i].name;
	while ((one = strsep(&rest, ",")) != NULL)
		if (!is_class(m, one))
			return frag_fail_unknown(err, "unknown class", one, names,
						 " (cufrag suite list)");
	return 0;
}

int frag_suite_manifest_choose(struct frag_suite_manifest *m, const char *classes, bool quick,
			       bool card, struct frag_err *err)
{
	size_t n = 0, kinds = 0;

	if (classes)
		FRAG_TRY(check_classes(m, classes, err));
	for (size_t i = 0; i < m->workloads_count; i++) {
		const struct frag_suite_workload *w = &m->workloads[i];

		if ((!classes || listed(classes, w->class)) && (!quick || w->quick) &&
		    (!card || w->card))
			m->workloads[n++] = *w;
	}
	m->workloads_count = n;
	if (quick)
		m->events_max = FRAG_MIN(m->events_max, FRAG_SUITE_QUICK_EVENTS);
	if (card)
		m->events_max = FRAG_MIN(m->events_max, FRAG_SUITE_CARD_EVENTS);
	for (size_t i = 0; i < m->classes_count; i++)
		for (size_t k = 0; k < n; k++)
			if (!strcmp(m->workloads[k].class, m->classes[i].name)) {
				m->classes[kinds++] = m->classes[i];
				break;
			}
	m->classes_count = kinds;
	return n ? 0
		 : frag_fail(err, FRAG_EUSAGE,
			     "no workload of the suite is all of what was asked for");
}

/* ---- a workload ------------------------------------------------------------------------ */

/* cufrag gen WORDS -o path, in the folder of the manifest. */
static int generate(const struct frag_suite_manifest *m, const struct frag_suite_workload *w,
		    const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE char *words = frag_host_strdup(w->gen);
	char *argv[WORDS_MAX + 8] = { "cufrag", "gen", "--quiet" }, *rest = words, *word;
	int status = -1;
	size_t n = 3;
	pid_t pid;

	FRAG_CHECK_ALLOC(words, "generator", err);
	while ((word = strsep(&rest, " ")) != NULL && n < WORDS_MAX)
		if (*word)
			argv[n++] = word;
	argv[n++] = "-o";
	argv[n] = (char *)path;
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		if (!chdir(m->dir) && null >= 0 && dup2(null, STDOUT_FILENO) >= 0)
			execv("/proc/self/exe", argv);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status ? frag_fail(err, FRAG_EINPUT, "'cufrag gen %.200s' failed", w->gen) : 0;
}

static int make_ready(const struct frag_suite_manifest *m, struct frag_suite_trace *t,
		      struct frag_err *err)
{
	t->dev = &t->recording.trace->devs[0];
	t->dev->events_count = FRAG_MIN(t->dev->events_count, m->events_max);
	for (size_t i = 0; i < t->dev->events_count; i++)
		t->requests += t->dev->events[i].kind == FRAG_EV_ALLOC;
	t->live_peak_bytes = frag_probe_peak_live(t->dev, 512);
	return t->requests ? 0 : frag_fail(err, FRAG_EINPUT, "it has no allocations");
}

static int check_file(const struct frag_suite_workload *w, const char *path,
		      char sha256[FRAG_SHA256_TEXT], struct frag_err *err)
{
	FRAG_TRY(frag_sha256_file(path, sha256, err));
	if (!w->sha256 || !strcmp(w->sha256, sha256))
		return 0;
	return frag_fail(err, FRAG_EINPUT,
			 "'%.200s' is not the file of the manifest: its SHA-256 is another", path);
}

int frag_suite_manifest_check(const struct frag_suite_manifest *m, struct frag_err *err)
{
	char sha256[FRAG_SHA256_TEXT];

	for (size_t i = 0; i < m->workloads_count; i++) {
		const struct frag_suite_workload *w = &m->workloads[i];
		FRAG_AUTO_FREE char *path = w->file ? frag_path_join(m->dir, w->file) : NULL;

		if (path && check_file(w, path, sha256, err))
			return frag_err_prefix(err, "workload %s", w->name);
	}
	return 0;
}

static int open_file(const struct frag_suite_manifest *m, const struct frag_suite_workload *w,
		     const char *path, const struct frag_target *target, struct frag_suite_trace *t,
		     struct frag_err *err)
{
	FRAG_TRY(check_file(w, path, t->sha256, err));
	FRAG_TRY(frag_recording_open(&t->recording, path, target, FRAG_OPEN_HISTORY, err));
	return make_ready(m, t, err);
}

int frag_suite_trace_open(const struct frag_suite_manifest *m, const struct frag_suite_workload *w,
			  const struct frag_target *target, struct frag_suite_trace *out,
			  struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = NULL;
	char *folder = NULL;
	int rc = 0;

	*out = (struct frag_suite_trace){ 0 };
	if (w->gen && frag_scratch_folder(NULL, &folder))
		return frag_fail(err, FRAG_EOUTPUT, "cannot make a temporary folder: %m");
	path = w->gen ? frag_path_join(folder, "made.cft") : frag_path_join(m->dir, w->file);
	if (!path)
		rc = frag_fail_nomem(err, "workload");
	else if (w->gen)
		rc = generate(m, w, path, err);
	rc = rc ?: open_file(m, w, path, target, out, err);
	frag_scratch_remove(folder);
	if (!rc)
		return 0;
	frag_suite_trace_release(out);
	return frag_err_prefix(err, "workload %s", w->name);
}

void frag_suite_trace_release(struct frag_suite_trace *t)
{
	frag_recording_release(&t->recording);
	*t = (struct frag_suite_trace){ 0 };
}
