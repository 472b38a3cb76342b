/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record --again: how much hangs on values that no kernel computed. The program runs a second
 * time with other values; what it needs then stands in the note beside what it needed:
 *
 *	again VALUES PEAK PEAK2 REQUESTS REQUESTS2
 *
 * with the largest peak of live bytes of all devices, and the requests of all. One other run is no bound:
 * it shows that something hangs on values, or that nothing did this time.
 */
#include "record.h"

#include <inttypes.h>
#include <string.h>

#include "cli/info/info_scan.h"

struct need {
	uint64_t peak_bytes, requests;
};

static int measure(const struct frag_trace *trace, struct need *out, struct frag_err *err)
{
	*out = (struct need){ 0 };
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];
		struct frag_info info;
		int rc;

		frag_info_init(&info, dev);
		rc = frag_info_add(&info, dev->events, dev->events_count, err);
		out->peak_bytes = FRAG_MAX(out->peak_bytes, info.peak.bytes);
		out->requests += info.kinds[FRAG_EV_ALLOC];
		frag_info_release(&info);
		FRAG_TRY(rc);
	}
	return 0;
}

static int add_line(struct frag_trace *trace, const char *values, const struct need *first,
		    const struct need *second, struct frag_err *err)
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

int frag_nogpu_record_again(const struct frag_cli *cli, const struct frag_record_options *o,
			    char **program, struct frag_trace *trace, struct frag_err *err)
{
	struct frag_record_options other = *o;
	struct frag_cli other_cli = *cli;
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *second = NULL;
	struct need a, b;
	int status;

	other.again = false;
	other.values = "random";
	other_cli.target.seed++;
	FRAG_TRY(frag_nogpu_record(&other_cli, &other, program, true, &second, &status, err));
	if (status)
		frag_cli_note(cli, "with other values the program ended with status %d", status);
	FRAG_TRY(measure(trace, &a, err));
	FRAG_TRY(measure(second, &b, err));
	return add_line(trace, other.values, &a, &b, err);
}
