/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record --again: how much depends on values that no kernel computed. The program runs a second
 * time with other values; what it needed then stands in the note beside what it needed first:
 *
 *	again VALUES PEAK PEAK2 REQUESTS REQUESTS2
 *
 * PEAK is the largest peak of live bytes of any device, REQUESTS the requests of all. One other run
 * is no bound: it shows that something depends on values, or that nothing did this time.
 */
#include "start.h"

#include <inttypes.h>
#include <string.h>

struct frag_pretend_need frag_pretend_measure(const struct frag_trace *trace)
{
	struct frag_pretend_need need = { 0 };

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];
		uint64_t live = 0;

		for (size_t i = 0; i < dev->events_count; i++) {
			const struct frag_event *ev = &dev->events[i];
			uint64_t bytes = frag_round_up(ev->bytes, 512);

			if (ev->kind == FRAG_EV_ALLOC) {
				live += bytes;
				need.requests++;
			} else if (ev->kind == FRAG_EV_FREE || ev->kind == FRAG_EV_FREE_COMPLETED) {
				live -= bytes;
			}
			need.peak_bytes = FRAG_MAX(need.peak_bytes, live);
		}
	}
	return need;
}

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

int frag_pretend_again(const struct frag_launch *l, const struct frag_pretend *o, char **program,
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
