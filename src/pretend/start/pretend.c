/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program on the pretended card. All that it needs is in the environment: Python finds
 * sitecustomize.py first, which does the rest (src/pretend/python). Recordings come back in a
 * folder, which is removed at the end.
 */
#include "pretend_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/outfile.h"

static int check_card(const struct frag_launch *l, struct frag_err *err)
{
	const struct frag_gpu *gpu = frag_pretend_gpu(l);

	if (gpu && !frag_gpu_chip_find(gpu->name))
		return frag_fail(err, FRAG_EUSAGE,
				 "'%s' does not run CUDA programs, so it cannot be pretended "
				 "(cufrag list gpus)",
				 gpu->name);
	return 0;
}

static bool is_name(const char *text)
{
	return *text && !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012"
					   "3456789_")];
}

/*
 * What many processes wrote, each line once: "hook TEXT", one that is missing; "note TEXT"; a name
 * of a call that got an error; "card N", one that the program chose and that is not there. Returns
 * how many hooks and calls are missing.
 */
unsigned frag_pretend_note_hooks(const struct frag_launch *l, const char *folder)
{
	char line[400], said[8000] = "\n", calls[1000] = "";
	FRAG_AUTO_FREE char *path = frag_path_join(folder, "calls");
	FRAG_AUTO_FILE FILE *f = path ? fopen(path, "r") : NULL;
	unsigned missing = 0, count = 0, card, last = 0;

	while (f && fgets(line, sizeof(line), f)) {
		size_t len = strlen(said);

		if (len + strlen(line) + 1 > sizeof(said) || strstr(said, line))
			continue;
		memcpy(said + len, line, strlen(line) + 1);
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "hook ", 5))
			frag_launch_note(l,
					 "the program went on %s (a release that this cufrag does "
					 "not know)",
					 line + 5);
		else if (!strncmp(line, "note ", 5))
			frag_launch_note(l, "%s", line + 5);
		else if (sscanf(line, "card %u", &card) == 1)
			last = FRAG_MAX(last, card);
		else if (is_name(line) && ++count &&
			 strlen(calls) + strlen(line) + 3 < sizeof(calls))
			sprintf(calls + strlen(calls), "%s%s", *calls ? ", " : "", line);
		missing += !strncmp(line, "hook ", 5);
	}
	if (count)
		frag_launch_note(l, "%u CUDA %s missing from the pretended card, and failed: %s",
				 count, count == 1 ? "call is" : "calls are", calls);
	if (last)
		frag_launch_note(l,
				 "the program chose card %u, which is not there; --gpus %u "
				 "pretends it",
				 last, last + 1);
	if (strstr(calls, "cuGetExportTable"))
		frag_launch_note(l, "a stripped library of the program links the CUDA runtime "
				    "statically; its CUDA calls fail (built with nvcc --cudart "
				    "shared, or not stripped, it works)");
	return missing + count;
}

/* What was said above, and a run that did not come to its end, belong to one run only. */
static void keep(struct pretend_job *j, int status)
{
	const char *const own[] = { j->folder, j->files.root, j->files.folder, NULL };
	char list[sizeof(j->folder) + 16];

	snprintf(list, sizeof(list), "%s/read", j->folder);
	if (!frag_launch_interrupted())
		frag_kept_read(&j->kept, list, status, own);
}

/* Number of valid devices in a CUDA_VISIBLE_DEVICES list; like CUDA, stops at the first invalid
 * one. */
static unsigned cards_shown(const char *list, unsigned cards)
{
	unsigned n = 0;
	char *end;

	while (isdigit((unsigned char)*list) && strtoul(list, &end, 10) < cards) {
		n++;
		list = end + (*end == ',');
	}
	return n;
}

/* Explains why a folder has no recording. */
static int explain_nothing(const struct pretend_job *j, int status, struct frag_err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted before anything was recorded");
	if (visible && cards_shown(visible, j->o->gpus) < j->o->gpus)
		frag_launch_note(j->l,
				 "of %u pretended cards, CUDA_VISIBLE_DEVICES shows the program "
				 "only '%.200s'",
				 j->o->gpus, visible);
	if (status)
		frag_err_prefix(err, "the program ended with status %d", status);
	return FRAG_EINPUT;
}

static int run_all(struct pretend_job *j, char **program, struct frag_trace **out, int *status,
		   struct frag_err *err)
{
	unsigned missing;
	int rc;

	if (j->o->reuse)
		frag_kept_init(&j->kept, j->l, j->o, program, &j->files);
	if (!j->o->trial && frag_kept_get(&j->kept, j->l, out, status))
		return 0;
	FRAG_TRY(frag_launch_folder(j->folder, sizeof(j->folder), err));
	rc = frag_pretend_run_ranks(j, program, status, err);
	missing = frag_pretend_note_hooks(j->l, j->folder);
	FRAG_TRY(rc);
	rc = frag_pretend_collect(j->l, j->folder, *status, out, err);
	if (!rc && !*status && j->roles && !j->roles_known && j->o->known_roles)
		frag_roles_pass_on(j->folder, (*out)->estimate, j->o->known_roles);
	if (!rc && !missing)
		keep(j, *status);
	return rc == FRAG_EINPUT ? explain_nothing(j, *status, err) : rc;
}

/*
 * --again: how much depends on values that no kernel computed. The program runs a second time with other values; what it needed
 * then stands in the note beside what it needed first:
 *
 *	again VALUES PEAK PEAK2 REQUESTS REQUESTS2
 *
 * PEAK is the largest peak of live bytes of any device, REQUESTS the requests of all. One other run
 * is no bound: it shows that something depends on values, or that nothing did this time.
 */
static int add_line(struct frag_trace *trace, const char *values,
		    const struct frag_pretend_need *first, const struct frag_pretend_need *second,
		    struct frag_err *err)
{
	size_t room = strlen(trace->estimate) + 160;
	char *note = frag_host_calloc(1, room);

	FRAG_CHECK_ALLOC(note, "recordings", err);
	snprintf(note, room, "%sagain %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		 trace->estimate, values, first->peak_bytes, second->peak_bytes, first->requests,
		 second->requests);
	frag_host_free(trace->estimate);
	trace->estimate = note;
	return 0;
}

/* The second run; an interruption leaves the first. */
static int run_again(const struct frag_launch *l, const struct frag_pretend *o, char **program,
		     struct frag_trace *trace, struct frag_err *err)
{
	struct frag_pretend other = *o;
	struct frag_launch other_launch = *l;
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *second = NULL;
	struct frag_pretend_need a, b;
	int status;

	other.again = false;
	/* a router decides more than random values would */
	other.values = strstr(trace->estimate, " router ") ? "worst" : "random";
	other_launch.target.seed++;
	other_launch.stdout_to_stderr = true;
	FRAG_TRY(frag_pretend_record(&other_launch, &other, program, &second, &status, err));
	if (status)
		frag_launch_note(l, "with other values the program ended with status %d", status);
	a = frag_pretend_measure(trace);
	b = frag_pretend_measure(second);
	return add_line(trace, other.values, &a, &b, err);
}

static void job_destroy(struct pretend_job **at)
{
	struct pretend_job *j = *at;

	if (!j)
		return;
	frag_inject_files_release(&j->files);
	frag_kept_release(&j->kept);
	frag_host_free(j);
}

/* All that can be said before anything runs. */
static int open_job(struct pretend_job **out, const struct frag_launch *l,
		    const struct frag_pretend *o, int *status, struct frag_err *err)
{
	struct pretend_job *j;

	FRAG_TRY_CALLOC(j, 1, "recording", err);
	*out = j;
	j->l = l;
	j->o = o;
	*status = 0;
	FRAG_TRY(check_card(l, err));
	FRAG_TRY(frag_pretend_check_values(o->values, err));
	FRAG_TRY(frag_pretend_parse_ranks(j, err));
	return frag_inject_files_open(&j->files, err);
}

int frag_pretend_run_into(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			  const char *folder, int *status, struct frag_err *err)
{
	FRAG_AUTO(job_destroy) struct pretend_job *j = NULL;

	FRAG_TRY(open_job(&j, l, o, status, err));
	snprintf(j->folder, sizeof(j->folder), "%s", folder);
	return frag_pretend_run_ranks(j, program, status, err);
}

int frag_pretend_record(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			struct frag_trace **out, int *status, struct frag_err *err)
{
	FRAG_AUTO(job_destroy) struct pretend_job *j = NULL;
	int rc;

	FRAG_TRY(open_job(&j, l, o, status, err));
	rc = run_all(j, program, out, status, err);
	frag_launch_folder_remove(j->folder);
	FRAG_TRY(rc);
	if (o->again && *j->folder && !frag_launch_interrupted()) {
		rc = run_again(l, o, program, *out, err);
		if (rc && !frag_launch_interrupted()) {
			frag_trace_destroy(FRAG_GIVE(*out));
			return rc;
		}
	}
	if (!o->trial && !frag_launch_interrupted())
		frag_kept_put(&j->kept, *out);
	return 0;
}
