/* SPDX-License-Identifier: Apache-2.0 */
/* A recording and its policy; see opened.h. */
#include "opened.h"

#include <string.h>
#include <sys/stat.h>

#include "estimate.h"
#include "planning.h"
#include "settle.h"
#include "trace/source.h"

/* From so many events on a .cft is not taken into memory. */
#define EVENTS_MAX 8000000u

static int open_long(struct frag_opened *o, const char *path, struct frag_err *err)
{
	const struct frag_trace *head;
	uint64_t events = 0;
	struct stat st;

	if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	FRAG_TRY(frag_source_open_cft(path, &o->source, err));
	if (!o->source)
		return 0;
	head = frag_source_head(o->source);
	for (uint32_t d = 0; d < head->devs_count; d++)
		events += head->devs[d].events_count;
	if (events >= EVENTS_MAX) {
		o->trace = (struct frag_trace *)head; /* not changed */
		return 0;
	}
	frag_source_close(o->source);
	o->source = NULL;
	return 0;
}

int frag_opened_read(struct frag_opened *o, const struct frag_cli *cli, const char *path,
		     struct frag_err *err)
{
	int rc;

	*o = (struct frag_opened){ .path = path };
	rc = open_long(o, path, err);
	if (!rc && !o->source) {
		rc = frag_cli_read(path, NULL, &o->trace, err);
		if (!rc)
			rc = frag_cli_settle(cli, frag_cli_limit(cli, cli->card.total_bytes),
					     o->trace, err);
	}
	if (!rc && !o->trace->devs_count)
		rc = frag_fail(err, FRAG_EINPUT, "'%.200s' holds no events", path);
	if (rc)
		frag_opened_release(o);
	else
		frag_cli_note_estimate(cli, o->trace);
	return rc;
}

void frag_opened_release(struct frag_opened *o)
{
	if (o->source)
		frag_source_close(o->source);
	else
		frag_trace_destroy(o->trace);
	*o = (struct frag_opened){ 0 };
}

struct frag_events frag_opened_events(const struct frag_opened *o, uint32_t dev)
{
	return (struct frag_events){ o->trace, dev, o->source ? o->path : NULL };
}

char *frag_opened_label(const struct frag_opened *o, uint32_t dev)
{
	const char *name = o->trace->name ? o->trace->name : "";
	size_t room = strlen(name) + 32;
	char *label = frag_host_alloc(room);

	if (label && o->trace->devs_count == 1)
		snprintf(label, room, "%s", name);
	else if (label)
		snprintf(label, room, "%s device %u", name, o->trace->devs[dev].ordinal);
	return label;
}

int frag_opened_spec(const struct frag_opened *o, const struct frag_cli *cli, const char *text,
		     struct frag_policy_spec **out, struct frag_err *err)
{
	struct frag_unit unit = { .trace = o->trace, .dev = o->trace->devs };

	FRAG_TRY(frag_unit_spec(&unit, text ? text : "recorded", out, err));
	if (*out)
		return 0;
	frag_cli_note(cli, "'%.100s' does not say what it was recorded with; taken is pytorch",
		      o->trace->name);
	return frag_policy_spec_parse("pytorch", out, err);
}

int frag_opened_device(const struct frag_opened *o, uint64_t ordinal, uint32_t *dev,
		       struct frag_err *err)
{
	for (uint32_t d = 0; d < o->trace->devs_count; d++) {
		if (o->trace->devs[d].ordinal == ordinal) {
			*dev = d;
			return 0;
		}
	}
	return frag_fail(err, FRAG_EUSAGE, "'%.200s' has nothing of device %llu", o->path,
			 (unsigned long long)ordinal);
}
