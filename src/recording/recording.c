/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and settling recordings; see recording.h. */
#include "recording.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ending.h"
#include "estimate.h"
#include "trace/source.h"

/* ---- words ----------------------------------------------------------------------- */

/* An error about a file names it. */
static int named(const char *called, int rc, struct frag_err *err)
{
	if (rc == FRAG_EINPUT && err && !strstr(err->msg, called))
		frag_err_prefix(err, "'%.200s'", called);
	return rc;
}

static void tell(const struct frag_target *t, enum frag_recording_stage stage, const char *path,
		 const struct frag_trace *trace)
{
	if (t->tell)
		t->tell(t->tell_ctx, stage, path, trace);
}

/* ---- settling -------------------------------------------------------------------- */

/* The target may be a what-if: its card can be that of the recording only if the recording fits. */
static bool fits(const struct frag_trace *trace, const struct frag_sim_config *card)
{
	for (uint32_t d = 0; d < trace->devs_count; d++)
		if (frag_recorded_peak(&trace->devs[d]) > card->total_bytes - card->context_bytes)
			return false;
	return true;
}

/* called: the name that errors use. */
static int settle(struct frag_trace *trace, const char *called, const struct frag_target *t,
		  unsigned how, struct frag_err *err)
{
	bool as_recorded = how & FRAG_OPEN_AS_RECORDED;
	struct frag_sim_config own = t->card;
	const struct frag_sim_config *card = as_recorded || fits(trace, &t->card) ? &t->card : NULL;
	int rc;

	if (!(as_recorded && t->card_given) && frag_estimate_card(trace, &own))
		card = &own;

	/* a what-if release is about the replay, but better than none if the file does not tell */
	if (t->torch && (as_recorded || !trace->settings.torch_last))
		frag_trace_set_torch(trace, t->torch, t->torch);
	tell(t, FRAG_RECORDING_SETTLING, NULL, trace);
	rc = frag_settle(trace, card, frag_target_limit(t), as_recorded && t->limit.text, err);
	tell(t, rc ? FRAG_RECORDING_FAILED : FRAG_RECORDING_SETTLED, NULL, trace);
	return named(called, rc, err); /* what was recorded may be impossible */
}

int frag_trace_settle(struct frag_trace *trace, const struct frag_target *t, unsigned how,
		      struct frag_err *err)
{
	return settle(trace, trace->name, t, how, err);
}

static bool in_memory(const struct frag_recording *r)
{
	return !r->source || (r->trace->devs_count && r->trace->devs[0].events);
}

int frag_recording_settle(struct frag_recording *r, const struct frag_target *t, unsigned how,
			  struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *whole = NULL;
	int rc;

	if (in_memory(r))
		return settle(r->trace, r->path ? r->path : r->trace->name, t, how, err);
	if (r->pipe || frag_trace_events_count(r->trace) >= FRAG_RECORDING_LONG)
		return 0;
	tell(t, FRAG_RECORDING_READING, r->path, NULL);
	rc = frag_recording_read(r->path, t->conf, &whole, err);
	if (rc)
		tell(t, FRAG_RECORDING_FAILED, r->path, NULL);
	else
		rc = settle(whole, r->path, t, how, err);
	for (uint32_t d = 0; !rc && d < FRAG_MIN(r->trace->devs_count, whole->devs_count); d++)
		r->trace->devs[d].settled = whole->devs[d].settled;
	return rc;
}

/* ---- opening --------------------------------------------------------------------- */

int frag_recording_read(const char *path, const char *conf, struct frag_trace **out,
			struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	FRAG_AUTO_FREE char *option = NULL;

	if (conf && asprintf(&option, "conf=%s", conf) < 0)
		return frag_fail_nomem(err, "options");
	FRAG_TRY(frag_trace_read(path, option, &trace, err));
	if (conf)
		FRAG_TRY(frag_settings_use(trace, conf, err));
	*out = FRAG_GIVE(trace);
	return 0;
}

/* The source of a .cft if the caller wants only its head. */
static int open_head(struct frag_recording *r, unsigned how, struct frag_err *err)
{
	FRAG_TRY(named(r->path, frag_source_open_cft(r->path, &r->source, err), err));
	if (!r->source)
		return how & FRAG_OPEN_HEAD
			       ? FRAG_USAGE(err,
					    "'%.200s' is not a .cft file, and only those can be "
					    "streamed; convert it first (cufrag import)",
					    r->path)
			       : 0;
	if (how & FRAG_OPEN_HEAD ||
	    frag_trace_events_count(frag_source_head(r->source)) >= FRAG_RECORDING_LONG)
		return 0;
	frag_source_close(r->source);
	r->source = NULL;
	return 0;
}

static int open_events(struct frag_recording *r, const struct frag_target *t, unsigned how,
		       struct frag_err *err)
{
	int rc;

	if (how & FRAG_OPEN_SOURCE)
		FRAG_TRY(frag_source_open(r->path, &r->source, err));
	else if (how & FRAG_OPEN_HEAD || (how & FRAG_OPEN_LONG_HEAD && !r->pipe))
		FRAG_TRY(open_head(r, how, err));
	if (r->source) {
		/* only settling changes it */
		r->trace = (struct frag_trace *)frag_source_head(r->source);
		tell(t, FRAG_RECORDING_READ, r->path, r->trace);
		return 0;
	}
	tell(t, FRAG_RECORDING_READING, r->path, NULL);
	rc = frag_recording_read(r->path, t->conf, &r->trace, err);
	tell(t, rc ? FRAG_RECORDING_FAILED : FRAG_RECORDING_READ, r->path, r->trace);
	return rc;
}

static int make_units(struct frag_recording *r, struct frag_err *err)
{
	const struct frag_trace *trace = r->trace;
	const char *name = trace->name ? trace->name : "";
	size_t room = strlen(name) + 32;

	FRAG_TRY_CALLOC(r->units, trace->devs_count, "devices", err);
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		struct frag_unit *u = &r->units[d];

		*u = (struct frag_unit){ .trace = trace,
					 .dev = &trace->devs[d],
					 .events = { trace, d, in_memory(r) ? NULL : r->path },
					 .label = frag_host_alloc(room) };
		FRAG_CHECK_ALLOC(u->label, "devices", err);
		if (trace->devs_count == 1)
			snprintf(u->label, room, "%s", name);
		else
			snprintf(u->label, room, "%s device %u", name, u->dev->ordinal);
	}
	return 0;
}

static int scan(void *ctx, const struct frag_event *events, size_t count, uint64_t first,
		struct frag_err *err)
{
	(void)first;
	(void)err;
	frag_ending_add(ctx, events, count);
	return 0;
}

/* How each device ended; unknown for a pipe whose events are still to come. */
static int find_endings(struct frag_recording *r, struct frag_err *err)
{
	for (uint32_t d = 0; (in_memory(r) || !r->pipe) && d < r->trace->devs_count; d++) {
		struct frag_ending_scan s = { 0 };

		FRAG_TRY(frag_events_each(&r->units[d].events, scan, &s, err));
		FRAG_TRY(frag_ending_set(&s, r->trace, d, err));
	}
	return 0;
}

/* What is left to do once the events, or the head, are read. */
static int complete(struct frag_recording *r, const struct frag_target *t, unsigned how,
		    struct frag_err *err)
{
	uint32_t states = 0;

	if (how & FRAG_OPEN_SOURCE)
		return r->trace->devs_count ? make_units(r, err) : 0;
	if (!r->trace->devs_count)
		return FRAG_INPUT(err, "'%.200s' holds no events",
				  r->path ? r->path : r->trace->name);
	for (uint32_t d = 0; d < r->trace->devs_count; d++)
		states += frag_is_state(r->trace, &r->trace->devs[d]);
	if (how & FRAG_OPEN_HISTORY && states == r->trace->devs_count)
		return FRAG_INPUT(err,
				  "'%.200s' is a state without a history: 'cufrag explain' tells "
				  "who holds its memory; the peak, and what another setting or "
				  "card would need, it cannot tell (record with %s)",
				  r->path ? r->path : r->trace->name, frag_history_hint(r->trace));
	FRAG_TRY(frag_recording_settle(r, t, how, err));
	FRAG_TRY(make_units(r, err));
	return find_endings(r, err);
}

int frag_recording_open(struct frag_recording *r, const char *path, const struct frag_target *t,
			unsigned how, struct frag_err *err)
{
	struct stat st;
	int rc;

	*r = (struct frag_recording){ .path = path };
	r->pipe = !strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode);
	rc = open_events(r, t, how, err) ?: complete(r, t, how, err);
	if (rc)
		frag_recording_release(r);
	return rc;
}

int frag_recording_take(struct frag_recording *r, struct frag_trace *trace,
			const struct frag_target *t, unsigned how, struct frag_err *err)
{
	int rc;

	*r = (struct frag_recording){ .trace = trace };
	rc = complete(r, t, how, err);
	if (rc)
		frag_recording_release(r);
	return rc;
}

void frag_recording_release(struct frag_recording *r)
{
	for (uint32_t d = 0; r->units && d < r->trace->devs_count; d++)
		frag_host_free(r->units[d].label);
	frag_host_free(r->units);
	if (r->source)
		frag_source_close(r->source);
	else
		frag_trace_destroy(r->trace);
	*r = (struct frag_recording){ 0 };
}

/* ---- several --------------------------------------------------------------------- */

static int gather_units(struct frag_recordings *all, struct frag_err *err)
{
	size_t count = 0;

	for (size_t i = 0; i < all->count; i++)
		count += all->list[i].trace->devs_count;
	FRAG_TRY_CALLOC(all->units, count, "recordings", err);
	for (size_t i = 0; i < all->count; i++)
		for (uint32_t d = 0; d < all->list[i].trace->devs_count; d++)
			all->units[all->units_count++] = all->list[i].units[d];
	return 0;
}

int frag_recordings_open(struct frag_recordings *all, char *const *paths, size_t count,
			 const struct frag_target *t, unsigned how, struct frag_err *err)
{
	int rc = 0;

	*all = (struct frag_recordings){ 0 };
	FRAG_TRY_CALLOC(all->list, count, "recordings", err);
	for (; !rc && all->count < count; all->count += !rc)
		rc = frag_recording_open(&all->list[all->count], paths[all->count], t, how, err);
	if (!rc)
		rc = gather_units(all, err);
	if (rc)
		frag_recordings_release(all);
	return rc;
}

void frag_recordings_release(struct frag_recordings *all)
{
	for (size_t i = 0; i < all->count; i++)
		frag_recording_release(&all->list[i]);
	FRAG_FREE(all->list, all->units);
	*all = (struct frag_recordings){ 0 };
}
