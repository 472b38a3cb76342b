/* SPDX-License-Identifier: Apache-2.0 */
/* Traces into files; see write_trace.h. */
#include "write_trace.h"

#include <inttypes.h>
#include <string.h>

#include "base/outfile.h"

/* ---- MiniMalloc's CSV ---- */

int frag_minimalloc_write(const struct frag_trace_dev *dev, const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE size_t *upper = frag_host_calloc(dev->events_count + 1, sizeof(*upper));
	FRAG_AUTO_FREE size_t *born = frag_host_calloc((size_t)dev->slots_count + 1, sizeof(*born));
	struct frag_outfile out;
	size_t n = 0;

	FRAG_CHECK_ALLOC(upper && born, "buffers", err);
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		upper[i] = dev->events_count;
		if (e->kind == FRAG_EV_ALLOC)
			born[e->slot] = i;
		else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			upper[born[e->slot]] = i;
	}
	FRAG_TRY(frag_outfile_open(&out, path, err));
	fputs("id,lower,upper,size\n", out.to);
	for (size_t i = 0; i < dev->events_count; i++)
		if (dev->events[i].kind == FRAG_EV_ALLOC)
			fprintf(out.to, "%zu,%zu,%zu,%" PRIu64 "\n", n++, i, upper[i],
				(uint64_t)dev->events[i].bytes);
	return frag_outfile_commit(&out, err);
}

/* ---- by the name of the file ---- */

int frag_trace_write(const struct frag_trace *trace, const char *path, struct frag_err *err)
{
	size_t n = strlen(path);

	if (n < 4 || strcmp(path + n - 4, ".csv") != 0)
		return frag_trace_write_cft(trace, path, err);
	if (trace->devs_count != 1)
		return frag_fail(err, FRAG_EUSAGE,
				 "a .csv holds one device, the trace has %u; "
				 "choose one with --device",
				 trace->devs_count);
	return frag_minimalloc_write(&trace->devs[0], path, err);
}

void frag_trace_drop_evidence(struct frag_trace *trace)
{
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		struct frag_trace_dev *dev = &trace->devs[d];

		FRAG_FREE(dev->addrs, dev->seen, dev->final_segments, dev->final_blocks,
			  dev->initial_segments, dev->initial_blocks);
		dev->addrs = NULL;
		dev->seen = NULL;
		dev->final_segments = NULL;
		dev->final_blocks = NULL;
		dev->initial_segments = NULL;
		dev->initial_blocks = NULL;
		dev->seen_count = dev->final_segments_count = dev->final_blocks_count = 0;
		dev->initial = (struct frag_initial_state){ 0 };
		dev->has_evidence = false;
	}
}
