/* SPDX-License-Identifier: Apache-2.0 */
/* Traces into files; see write_trace.h. */
#include "write_trace.h"

#include <inttypes.h>
#include <string.h>

#include "base/outfile.h"

/* ---- MiniMalloc's CSV ---- */

struct line {
	uint64_t lower, upper, bytes;
};

static size_t collect(const struct frag_trace_dev *dev, struct line *lines, size_t *owner)
{
	size_t n = 0;

	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC) {
			owner[e->slot] = n;
			lines[n++] = (struct line){ i, dev->events_count, e->bytes };
		} else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED) {
			lines[owner[e->slot]].upper = i;
		}
	}
	return n;
}

static int put_lines(const struct line *lines, size_t n, const char *path, struct frag_err *err)
{
	struct frag_outfile out;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	fputs("id,lower,upper,size\n", out.to);
	for (size_t i = 0; i < n; i++)
		fprintf(out.to, "%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, lines[i].lower,
			lines[i].upper, lines[i].bytes);
	return frag_outfile_commit(&out, err);
}

int frag_minimalloc_write(const struct frag_trace_dev *dev, const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE struct line *lines = frag_host_calloc(dev->events_count + 1, sizeof(*lines));
	FRAG_AUTO_FREE size_t *owner =
		frag_host_calloc((size_t)dev->slots_count + 1, sizeof(*owner));

	FRAG_CHECK_ALLOC(lines && owner, "buffers", err);
	return put_lines(lines, collect(dev, lines, owner), path, err);
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
