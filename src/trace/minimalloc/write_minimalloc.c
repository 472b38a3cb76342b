/* SPDX-License-Identifier: Apache-2.0 */
/* A device's allocations as MiniMalloc's CSV; see minimalloc.h. */
#include "minimalloc.h"

#include <inttypes.h>

#include "base/outfile.h"

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
