/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest, and its workloads made ready; see suite.h. Both are untrusted files. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <frag/opt.h>

#include "base/args.h"
#include "base/outfile.h"
#include "base/share.h"
#include "plan/probe.h"
#include "trace/gen/gen_known.h"

#define NAME "suite.json"
#define FILE_MAX (64 * FRAG_MIB) /* of a manifest or result */

int frag_suite_json_open(const char *path, json_t **out, struct frag_err *err)
{
	json_error_t e;
	struct stat st;

	if (stat(path, &st))
		return FRAG_INPUT(err, "cannot open '%.200s': %m", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MAX)
		return FRAG_INPUT(err, "'%.200s' is not a file of at most 64 MiB", path);
	*out = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (!*out)
		return frag_fail_at(err, FRAG_EINPUT, (uint64_t)FRAG_MAX(e.position, 0),
				    "'%.200s' is not JSON: byte %d: %.80s", path, e.position,
				    e.text);
	return 0;
}

/* ---- reading ------------------------------------------------------------------------- */

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789.-"

static bool proper(const char *s, const char *chars, size_t least, size_t most)
{
	size_t n = strlen(s);

	return n >= least && n <= most && strspn(s, chars) == n;
}

/* Below the manifest's folder. */
static bool inside(const char *file)
{
	return *file && *file != '/' && !strstr(file, "..");
}

/* SIZE_MAX: there is none. */
static size_t find_class(const struct frag_suite_manifest *m, const char *name)
{
	for (size_t i = 0; i < m->classes_count; i++)
		if (!strcmp(m->classes[i], name))
			return i;
	return SIZE_MAX;
}

static bool read_class(struct frag_suite_manifest *m, json_t *from)
{
	const char *name, *about;

	if (json_unpack_ex(from, NULL, JSON_STRICT, "{s:s, s:s}", "name", &name, "about", &about) ||
	    !proper(name, NAME_CHARS, 1, 64) || find_class(m, name) != SIZE_MAX)
		return false;
	m->abouts[m->classes_count] = about;
	m->classes[m->classes_count++] = name;
	return true;
}

static bool read_workload(struct frag_suite_manifest *m, json_t *from)
{
	struct frag_suite_workload w = { 0 };

	if (json_unpack_ex(from, NULL, JSON_STRICT, "{s:s, s:s, s:s, s?s, s?s, s?s, s?b, s?b}",
			   "name", &w.name, "class", &w.class, "about", &w.about, "file", &w.file,
			   "gen", &w.gen, "sha256", &w.sha256, "quick", &w.quick, "card",
			   &w.card) ||
	    !w.file == !w.gen || !w.file == !!w.sha256 || find_class(m, w.class) == SIZE_MAX ||
	    !proper(w.name, NAME_CHARS, 1, 64) ||
	    (w.file && (!inside(w.file) || !proper(w.sha256, "0123456789abcdef", 64, 64))))
		return false;
	for (size_t i = 0; i < m->workloads_count; i++)
		if (!strcmp(m->workloads[i].name, w.name))
			return false;
	m->workloads[m->workloads_count++] = w;
	return true;
}

static int read_manifest(struct frag_suite_manifest *m, struct frag_err *err)
{
	json_t *classes, *workloads, *one;
	json_int_t events;
	const char *suite;
	json_error_t e;
	size_t i;

	if (json_unpack_ex(m->doc, &e, JSON_STRICT, "{s:s, s:s, s:I, s:o, s:o}", "suite", &suite,
			   "version", &m->version, "events_max", &events, "classes", &classes,
			   "workloads", &workloads) ||
	    strcmp(suite, "cufrag") != 0)
		return FRAG_INPUT(err, "not a manifest of the suite%s%.100s", *e.text ? ": " : "",
				  e.text);
	if (strtoul(m->version, NULL, 10) != FRAG_SUITE_MAJOR)
		return FRAG_INPUT(err, "version '%.20s' is not known here, only %d.x.y", m->version,
				  FRAG_SUITE_MAJOR);
	if (events < 1000 || events > 1000000000)
		return FRAG_INPUT(err, "events_max is not from 1000 to 1000000000");
	m->events_max = (uint64_t)events;
	FRAG_TRY_CALLOC(m->classes, json_array_size(classes) + 1, "manifest", err);
	FRAG_TRY_CALLOC(m->abouts, json_array_size(classes) + 1, "manifest", err);
	FRAG_TRY_CALLOC(m->workloads, json_array_size(workloads) + 1, "manifest", err);
	json_array_foreach(classes, i, one) if (!read_class(m, one)) return frag_fail_at(
		err, FRAG_EINPUT, i,
		"class %zu has not a new name of a-z, 0-9, '.' and '-' with what it is about, and "
		"nothing else",
		i + 1);
	json_array_foreach(workloads, i, one) if (!read_workload(m, one)) return frag_fail_at(
		err, FRAG_EINPUT, i,
		"workload %zu has not a new name, a class of the list, what it is about, and a "
		"file below the manifest with its sha256 or words for gen (docs/suite.md)",
		i + 1);
	return 0;
}

int frag_suite_manifest_open(struct frag_suite_manifest *m, const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE char *folder = path ? NULL : frag_share_find("traces", "traces", NAME);
	FRAG_AUTO_FREE char *found = folder ? frag_path_join(folder, NAME) : NULL;
	const char *slash;
	int rc;

	*m = (struct frag_suite_manifest){ 0 };
	if (!path && !found)
		return FRAG_INPUT(err, "the workloads that come with cufrag are not beside the "
				       "program; name a --manifest");
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
	FRAG_FREE(m->dir, m->classes, m->abouts, m->workloads);
	*m = (struct frag_suite_manifest){ 0 };
}

/* Marks the classes of a list with commas. */
static int choose_classes(const struct frag_suite_manifest *m, const char *list, bool *chosen,
			  struct frag_err *err)
{
	FRAG_AUTO_FREE char *copy = frag_host_strdup(list);
	char *rest = copy, *one;

	FRAG_CHECK_ALLOC(copy, "classes", err);
	while ((one = strsep(&rest, ",")) != NULL) {
		size_t i = find_class(m, one);

		if (i == SIZE_MAX)
			return frag_fail_unknown(err, "unknown class", one, m->classes,
						 " (cufrag suite list)");
		chosen[i] = true;
	}
	return 0;
}

/* Is the file there, and that of the manifest? */
static int check_file(const struct frag_suite_manifest *m, const struct frag_suite_workload *w,
		      struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_path_join(m->dir, w->file);
	char sha256[FRAG_SHA256_TEXT];

	FRAG_CHECK_ALLOC(path, "workload", err);
	if (frag_sha256_file(path, sha256, err))
		return frag_err_prefix(err, "workload %s, from cufrag's repository", w->name);
	return !strcmp(w->sha256, sha256) ? 0
					  : FRAG_INPUT(err,
						       "workload %s: '%.200s' is not the file of "
						       "the manifest: its SHA-256 is another",
						       w->name, path);
}

int frag_suite_manifest_choose(struct frag_suite_manifest *m, const char *classes, bool quick,
			       bool card, struct frag_err *err)
{
	FRAG_AUTO_FREE bool *chosen = NULL, *left = NULL;
	size_t n = 0, kinds = 0;

	FRAG_TRY_CALLOC(chosen, m->classes_count + 1, "classes", err);
	FRAG_TRY_CALLOC(left, m->classes_count + 1, "classes", err);
	if (classes)
		FRAG_TRY(choose_classes(m, classes, chosen, err));
	for (size_t i = 0; i < m->workloads_count; i++) {
		struct frag_suite_workload w = m->workloads[i];
		size_t class = find_class(m, w.class);

		if ((classes && !chosen[class]) || (quick && !w.quick) || (card && !w.card))
			continue;
		if (w.file)
			FRAG_TRY(check_file(m, &w, err));
		left[class] = true;
		m->workloads[n++] = w;
	}
	m->workloads_count = n;
	for (size_t i = 0; i < m->classes_count; i++)
		if (left[i]) {
			m->abouts[kinds] = m->abouts[i];
			m->classes[kinds++] = m->classes[i];
		}
	m->classes_count = kinds;
	if (quick || card)
		m->events_max = FRAG_MIN(m->events_max, FRAG_SUITE_SHORT_EVENTS);
	return n ? 0 : FRAG_USAGE(err, "no workload of the suite is all of what was asked for");
}

/* ---- a workload ------------------------------------------------------------------------ */

/* In memory, as `cufrag gen` makes it: KIND, then --seed and --scale where they are not as usual. */
static int generate(const char *words, struct frag_trace **out, struct frag_err *err)
{
	unsigned long long value[] = { 0, 1 };
	size_t len = strcspn(words, " ");
	const char *rest = words + len;
	uint64_t online;
	unsigned kind = 0;
	int n = 0;

	while (frag_known_kinds[kind] && (strlen(frag_known_kinds[kind]) != len ||
					  strncmp(frag_known_kinds[kind], words, len)))
		kind++;
	if (!frag_known_kinds[kind] || !frag_known_kinds[kind + 1])
		return FRAG_INPUT(err, "gen makes no '%.60s' from a seed", words);
	for (; *rest; rest += n, n = 0)
		if ((sscanf(rest, " --seed %llu%n", &value[0], &n) != 1 &&
		     sscanf(rest, " --scale %llu%n", &value[1], &n) != 1) ||
		    !value[1] || value[1] > 1000)
			return FRAG_INPUT(err, "'%.60s' is not --seed N or --scale 1 to 1000",
					  rest);
	return frag_known_make(kind, value[0], value[1], &online, out, err);
}

static int make_ready(const struct frag_suite_manifest *m, struct frag_suite_trace *t,
		      struct frag_err *err)
{
	t->dev = &t->recording.trace->devs[0];
	t->dev->events_count = FRAG_MIN(t->dev->events_count, m->events_max);
	for (size_t i = 0; i < t->dev->events_count; i++)
		t->requests += t->dev->events[i].kind == FRAG_EV_ALLOC;
	t->live_peak_bytes = frag_probe_peak_live(t->dev, 512);
	return t->requests ? 0 : FRAG_INPUT(err, "it has no allocations");
}

int frag_suite_trace_open(const struct frag_suite_manifest *m, const struct frag_suite_workload *w,
			  const struct frag_target *target, struct frag_suite_trace *out,
			  struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = w->file ? frag_path_join(m->dir, w->file) : NULL;
	struct frag_trace *made = NULL;
	int rc;

	*out = (struct frag_suite_trace){ 0 };
	if (w->gen)
		rc = generate(w->gen, &made, err)
			     ?: frag_recording_take(&out->recording, made, target,
						    FRAG_OPEN_HISTORY, err);
	else
		rc = path ? frag_recording_open(&out->recording, path, target, FRAG_OPEN_HISTORY,
						err)
			  : frag_fail_nomem(err, "workload");
	rc = rc ?: make_ready(m, out, err);
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
