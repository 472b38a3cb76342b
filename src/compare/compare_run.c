/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in, sections out, and their reports. */
#include "session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <frag/base.h>

#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/term.h"
#include "optimum.h"
#include "lanes.h"

#define DRAWN_MAX 500u /* policies in one chart */

/* ---- the card -------------------------------------------------------------------- */

/* What the report says of the card; the simulator calls its card by its size. */
static int describe_card(struct frag_session *s, struct frag_err *err)
{
	const struct frag_gpu *gpu =
		s->target.card.name ? frag_gpu_find(s->target.card.name) : NULL;
	struct frag_report *r = &s->report;
	struct frag_device_info *card = &r->card;
	const char *name;
	struct frag_device *dev;

	FRAG_TRY(s->host.open(s->host.ctx, 0, &dev, err));
	frag_dev_info(dev, card);
	frag_dev_close(dev);
	if (s->host.simulated && gpu)
		snprintf(card->name, sizeof(card->name), "%s", gpu->label);
	else if (s->host.simulated)
		snprintf(card->name, sizeof(card->name), "card of %s",
			 FRAG_BYTES(card->total_bytes));
	if (!s->host.simulated)
		return 0;
	/* the profile that driver times are modelled from: a given one, the card's, another's */
	name = s->host.own_costs     ? "the card of --cost"
	       : gpu && gpu->profile ? gpu->profile
				     : "h200";
	snprintf(r->cost_profile, sizeof(r->cost_profile), "%s", name);
	r->cost_borrowed = !gpu || s->host.own_costs || strcmp(gpu->name, name) != 0;
	return 0;
}

static int describe(struct frag_session *s, struct frag_err *err)
{
	struct frag_report *r = &s->report;

	FRAG_TRY(describe_card(s, err));
	/* a fraction is one of the device, which may be a real one */
	s->target.limit = (struct frag_limit){ .text = s->target.limit.text,
					       .bytes = frag_limit_bytes(&s->target.limit,
									 r->card.total_bytes) };
	s->run.source_release = s->target.torch;
	s->run.limit_bytes = s->target.limit.bytes;
	s->run.seed = s->target.seed;
	r->device = s->host.device;
	r->limit_bytes = s->run.limit_bytes;
	r->seed = s->run.seed;
	r->skip_oom = s->run.skip_oom;
	r->free_at_request = s->run.free_at_request;
	r->omit_host = s->omit_host;
	r->command = s->command;
	r->command_line = s->command_line;
	r->date = s->date_text;
	r->title = s->title;
	r->author = s->author;
	return 0;
}

/* ---- one trace ------------------------------------------------------------------- */

struct trace_runs {
	struct frag_recording recording;
	const struct frag_trace *trace; /* its */
	struct frag_policy_spec **specs;
	size_t specs_count, recorded;
	struct frag_session_task *tasks; /* device by device */
	size_t tasks_count;
};

static void runs_release(struct trace_runs *t)
{
	for (size_t i = 0; i < t->tasks_count; i++)
		frag_result_release(&t->tasks[i].result);
	for (size_t i = 0; i < t->specs_count; i++)
		frag_policy_spec_destroy(t->specs[i]);
	FRAG_FREE(t->tasks, t->specs);
	frag_recording_release(&t->recording);
}

/* The first error in the order of the tasks; with "all" an unfit policy is only noted. What
 * Ctrl-C kept from running is found by its absence. */
static int check_tasks(const struct frag_session *s, struct trace_runs *t, struct frag_err *err)
{
	size_t good = 0;

	for (size_t i = 0; i < t->tasks_count; i++) {
		struct frag_session_task *task = &t->tasks[i];
		FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
		bool unfit =
			task->left_out ||
			(s->policies.all && (task->rc == FRAG_ENOTSUP || task->rc == FRAG_EPOLICY));

		good += !task->rc && task->spec;
		if (!task->rc || task->rc == FRAG_EINTR)
			continue;
		if (!unfit) {
			*err = task->err;
			return task->rc;
		}
		frag_text_addf(&text, "policy '%s' is left out: %s",
			       frag_policy_spec_text(task->spec), task->err.msg);
		FRAG_TRY(frag_text_check(&text, err));
		if (s->host.note)
			s->host.note(s->host.ctx, frag_text_str(&text));
	}
	if (!good && !frag_interrupted())
		return frag_fail(err, FRAG_EPOLICY, "no policy could be replayed on '%s'",
				 t->trace->name);
	return 0;
}

/* Was the baseline to be what was recorded (of unknown settings: PyTorch's defaults), and is not? */
static void find_unreproduced(const struct frag_session *s, const struct trace_runs *t,
			      struct frag_section *sec, const struct frag_trace_dev *dev)
{
	const struct frag_result *base = &sec->results[sec->baseline];
	uint64_t peak = s->host.simulated ? frag_target_recorded_peak(&s->target, dev) : 0;
	bool asked = false;

	for (size_t i = 0; i < s->policies.count; i++)
		asked |= frag_policy_is_recorded(s->policies.text[i]);
	if (t->recorded == SIZE_MAX)
		asked &= !t->trace->settings.present && !strcmp(base->policy, "pytorch");
	if (asked && base->completed && peak != base->m.peak_reserved_bytes)
		sec->not_reproduced_bytes = peak;
}

/* Moves the results of device d into a section. */
static int take_section(struct frag_session *s, struct trace_runs *t, uint32_t d,
			struct frag_err *err)
{
	struct frag_section *sec = &s->sections[s->sections_count];
	struct frag_text missing = { 0 };

	FRAG_TRY(frag_section_init(sec, t->trace, d, err));
	s->sections_count++;
	sec->first_of_trace = d == 0;
	sec->catalog = &s->catalog;
	sec->headroom = s->headroom;
	sec->headroom.outside_bytes = frag_recorded_outside_bytes(&t->trace->devs[d]);
	if (t->recording.source)
		sec->events = NULL;
	/* the offline placement is the last task of a device */
	if (t->trace->devs_count * t->specs_count + d < t->tasks_count)
		sec->optimum = t->tasks[t->trace->devs_count * t->specs_count + d].optimum;
	sec->optimum.hidden = s->optimum == FRAG_OPTIMUM_OFF;
	/* what an interruption left out of a device: "tlsf, buddy" */
	for (size_t k = 0; k < t->specs_count; k++)
		if (t->tasks[d * t->specs_count + k].rc == FRAG_EINTR)
			frag_text_addf(&missing, "%s%s", missing.len ? ", " : "",
				       frag_policy_spec_text(t->specs[k]));
	FRAG_TRY(frag_text_check(&missing, err));
	sec->missing = missing.s;
	FRAG_TRY_CALLOC(sec->results, t->specs_count, "results", err);
	for (size_t k = 0; k < t->specs_count; k++) {
		struct frag_session_task *task = &t->tasks[d * t->specs_count + k];

		if (task->rc)
			continue;
		if (k == t->recorded) {
			sec->baseline = sec->count;
			/* the word "recorded" is for what is identical with the recording, and for
			 * nothing else */
			sec->baseline_recorded =
				!s->target.limit.text && sec->settled.identical &&
				task->result.m.peak_reserved_bytes == sec->settled.peak_bytes;
			sec->baseline_simulated = !sec->baseline_recorded;
		}
		sec->duration_us = FRAG_MAX(sec->duration_us, task->last_us);
		sec->limit_bytes = task->limit_bytes;
		task->result.trace = frag_host_strdup(sec->trace);
		task->result.restored = task->restore;
		sec->results[sec->count++] = task->result;
		task->result = (struct frag_result){ 0 };
	}
	if (sec->count)
		find_unreproduced(s, t, sec, &t->trace->devs[d]);
	return 0;
}

/* Names from the command line that have no row of their own. Rows are in the order of the names. */
static int note_shared_rows(const struct frag_session *s, const struct trace_runs *t,
			    struct frag_err *err)
{
	FRAG_AUTO_FREE const char **firsts = NULL; /* the first name of each row */
	size_t rows = 0;

	FRAG_TRY_CALLOC(firsts, t->specs_count + 1, "rows", err);
	for (size_t i = 0; i < s->policies.count; i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
		FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
		const char *name = s->policies.text[i], *first;
		size_t k = 0;

		while (strcmp(s->policies.text[k], name) != 0)
			k++;
		if (k < i)
			continue;
		FRAG_TRY(frag_recording_spec(t->trace, name, &spec, err));
		k = 0;
		while (spec &&
		       strcmp(frag_policy_spec_echo(t->specs[k]), frag_policy_spec_echo(spec)) != 0)
			k++;
		if (spec && k == rows) {
			firsts[rows++] = name;
			continue;
		}
		first = spec ? firsts[k] : "";
		if (!spec)
			frag_text_addf(&text,
				       "'%s' has no row: the settings that '%s' was recorded with "
				       "are not known",
				       name, t->trace->name);
		else
			frag_text_addf(&text, "'%s' is '%s' in '%s': one row for both",
				       frag_policy_is_recorded(first) ? first : name,
				       frag_policy_is_recorded(first) ? name : first,
				       t->trace->name);
		FRAG_TRY(frag_text_check(&text, err));
		s->host.note(s->host.ctx, frag_text_str(&text));
	}
	return 0;
}

static int run_trace(struct frag_session *s, struct trace_runs *t, struct frag_err *err)
{
	char label[128];

	FRAG_TRY(frag_policy_texts_specs(&s->policies, t->trace, &t->specs, &t->recorded, err));
	while (t->specs[t->specs_count])
		t->specs_count++;
	if (s->host.note && !s->policies.usual)
		FRAG_TRY(note_shared_rows(s, t, err));
	FRAG_TRY_CALLOC(t->tasks, (t->specs_count + 1) * t->trace->devs_count, "results", err);
	/* The limit of the recording holds for all policies unless another is given; the recorded
	 * settings also restore the blocks from before the recording, if the card has room. */
	for (uint32_t d = 0; d < t->trace->devs_count; d++)
		for (size_t k = 0; k < t->specs_count; k++) {
			const struct frag_trace_dev *dev = &t->trace->devs[d];
			uint64_t limit = frag_target_limit_for(&s->target, dev);

			t->tasks[t->tasks_count++] = (struct frag_session_task){
				.spec = t->specs[k],
				.dev = dev,
				.dev_index = d,
				.trace = t->trace->name,
				.limit_bytes = limit,
				.restore = dev->settled.identical && !s->target.limit.text &&
					   k == t->recorded && s->host.simulated &&
					   frag_settled_restores(dev, &s->target.card, limit),
			};
		}
	for (uint32_t d = 0; s->place_too && d < t->trace->devs_count; d++)
		t->tasks[t->tasks_count++] = (struct frag_session_task){ .dev = &t->trace->devs[d],
									 .dev_index = d,
									 .trace = t->trace->name };
	for (size_t i = 0; t->recording.source && i < t->tasks_count; i++) {
		t->tasks[i].streamed = &t->recording;
		t->tasks[i].ahead = s->host.threads > t->tasks_count;
	}
	snprintf(label, sizeof(label), "replaying %.80s", t->trace->name);
	FRAG_TRY(frag_session_run_tasks(s, t->tasks, t->tasks_count, label, err));
	return check_tasks(s, t, err);
}

/* A folder name for the trace at `first`: its name, with a number where it is taken. */
static char *folder_name(const struct frag_session *s, size_t first)
{
	const char *name = s->sections[first].trace;
	size_t same = 0, n = strlen(name);
	char *folder = frag_host_alloc(n + 24);

	if (!folder)
		return NULL;
	for (size_t i = 0; i < first; i++)
		same += s->sections[i].first_of_trace && !strcmp(s->sections[i].trace, name);
	snprintf(folder, n + 24, same ? "%s-%zu" : "%s", name, same + 1);
	for (char *p = folder; *p; p++) {
		if (*p == '/' || (unsigned char)*p < 0x20 || (p == folder && *p == '.'))
			*p = '_';
	}
	return folder;
}

/* The policies that completed a replay. */
static int make_live(const struct frag_session *s, const struct trace_runs *t,
		     struct frag_answer *page, struct frag_err *err)
{
	const struct frag_lanes lanes = { &s->target, s->cards, s->vendor };
	FRAG_AUTO_FREE struct frag_policy_spec **specs = NULL;
	size_t count = 0, recorded = SIZE_MAX;

	if (!s->host.simulated)
		return 0;
	FRAG_TRY_CALLOC(specs, t->specs_count + 1, "page", err);
	for (size_t i = 0; i < t->specs_count; i++)
		if (!t->tasks[i].rc) {
			recorded = t->tasks[i].restore ? count : recorded;
			specs[count++] = t->specs[i];
		}
	return count ? frag_lanes_page(&lanes, &t->recording, specs, count, recorded, 0, NULL, page,
				       err)
		     : 0;
}

/* DIR for one trace, DIR/<name> for each of several. */
static int write_files(struct frag_session *s, const struct trace_runs *t, size_t first,
		       struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer page = { 0 };
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_report one = s->report;
	FRAG_AUTO_FREE char *dir = NULL;
	char label[128];

	snprintf(label, sizeof(label), "drawing %.100s", s->sections[first].trace);
	frag_progress_begin(&progress, label);
	FRAG_TRY(make_live(s, t, &page, err));
	one.live = page.live;
	one.live_policy = page.live_policy;
	for (size_t i = first; i < s->sections_count; i++)
		FRAG_TRY(frag_session_layouts(s, &s->sections[i], err));
	one.sections = s->sections + first;
	one.count = s->sections_count - first;
	if (s->paths_count == 1)
		return frag_report_write(&one, s->out, s->formats, s->host.threads, err);
	for (size_t i = first; i < s->sections_count; i++) {
		s->sections[i].folder = folder_name(s, first);
		FRAG_CHECK_ALLOC(s->sections[i].folder, "report", err);
	}
	dir = frag_path_join(s->out, s->sections[first].folder);
	FRAG_CHECK_ALLOC(dir, "report", err);
	return frag_report_write(&one, dir, s->formats, s->host.threads, err);
}

static int do_trace(struct frag_session *s, const char *path, struct frag_err *err)
{
	struct trace_runs t = { .recorded = SIZE_MAX };
	size_t first = s->sections_count;
	struct frag_section *sections;
	int rc;

	FRAG_TRY(frag_session_open_recording(s, path, &t.recording, err));
	t.trace = t.recording.trace;
	rc = run_trace(s, &t, err);
	sections =
		rc ? NULL
		   : frag_host_realloc(s->sections, first + t.trace->devs_count, sizeof(*sections));
	if (!rc && !sections)
		rc = frag_fail_nomem(err, "results");
	s->sections = sections ?: s->sections;
	for (uint32_t d = 0; !rc && d < t.trace->devs_count; d++) {
		struct frag_section *sec = &s->sections[s->sections_count];

		rc = take_section(s, &t, d, err);
		if (rc || sec->count)
			continue;
		/* a device of which nothing was replayed before Ctrl-C is missing as a whole */
		frag_text_add(&s->missing, s->missing.len ? ", " : "");
		frag_section_title(sec, &s->missing);
		frag_section_release(sec);
		s->sections_count--;
	}
	if (!rc && s->out && s->sections_count > first)
		rc = write_files(s, &t, first, err);
	for (size_t i = first; i < s->sections_count; i++)
		s->sections[i].events = NULL;
	runs_release(&t);
	return rc;
}

int frag_session_run(struct frag_session *s, struct frag_err *err)
{
	uint32_t flags;

	FRAG_TRY(frag_policy_texts_check(&s->policies, &flags, err));
	if (s->out && s->policies.count > DRAWN_MAX)
		return FRAG_USAGE(err,
				  "--out draws charts of at most %u policies, these are %zu; --csv "
				  "and --json take any number",
				  DRAWN_MAX, s->policies.count);
	FRAG_TRY(frag_catalog_init(&s->catalog, s->cards, s->vendor, err));
	FRAG_TRY(describe(s, err));
	/* before anything is written: are they all there? */
	for (size_t i = 0; i < s->paths_count; i++)
		if (strcmp(s->paths[i], "-") != 0 && access(s->paths[i], R_OK))
			return FRAG_INPUT(err, "cannot open '%s': %s", s->paths[i],
					  strerror(errno));
	for (size_t i = 0; i < s->paths_count; i++) {
		if (frag_interrupted())
			frag_text_addf(&s->missing, "%s%s", s->missing.len ? ", " : "",
				       s->paths[i]);
		else
			FRAG_TRY(do_trace(s, s->paths[i], err));
	}
	FRAG_TRY(frag_text_check(&s->missing, err));
	s->report.sections = s->sections;
	s->report.count = s->sections_count;
	s->report.missing = s->missing.len ? s->missing.s : NULL;
	if (!s->sections_count)
		return frag_session_interrupted(s, err);
	if (s->out && s->paths_count > 1)
		return frag_report_write_index(&s->report, s->out, s->formats, s->host.threads,
					       err);
	return 0;
}
