/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks a whole .cft. A truncated or damaged file gives nothing. */
#include <frag/trace.h>

#include "trace/build/build.h"
#include "trace/cft/cft.h"
#include "trace/whole.h"

static int probe(const unsigned char *bytes, size_t len)
{
	return frag_cft_is_magic(bytes, len) ? 100 : 0;
}

static int read_events(struct frag_cft_parser *p, struct frag_err *err)
{
	struct frag_trace_dev *dev = &p->trace->devs[p->dev];
	bool has_addrs = p->declared[p->dev].has_addrs;
	uint64_t declared = dev->events_count;
	size_t cap = 0, addrs_cap = 0, n;

	if (has_addrs && !declared) /* recorded, but of nothing: so that it is written again */
		FRAG_TRY_CALLOC(dev->addrs, 1, "trace", err);
	for (uint64_t have = 0; have < declared; have += n) {
		n = FRAG_MIN(declared - have, (uint64_t)FRAG_CFT_BATCH);
		FRAG_TRY(frag_cft_grow(&dev->events, &cap, have + n, declared, sizeof(*dev->events),
				       err));
		if (has_addrs)
			FRAG_TRY(frag_cft_grow(&dev->addrs, &addrs_cap, have + n, declared,
					       sizeof(*dev->addrs), err));
		FRAG_TRY(frag_cft_parser_events(p, dev->events + have,
						has_addrs ? dev->addrs + have : NULL, &n, err));
		FRAG_TRY(frag_cft_parser_charge(
			p, n * (sizeof(*dev->events) + (has_addrs ? sizeof(*dev->addrs) : 0)),
			err));
	}
	return 0;
}

static int read_all(struct frag_cft_parser *p, struct frag_err *err)
{
	while (p->dev < p->trace->devs_count)
		FRAG_TRY(read_events(p, err) ?: frag_cft_parser_leave(p, true, err));
	return 0;
}

/* Leaves only the device of that ordinal. */
static int keep_device(struct frag_trace *t, int64_t only, struct frag_err *err)
{
	uint32_t kept = 0;

	for (uint32_t d = 0; d < t->devs_count; d++) {
		if (t->devs[d].ordinal == only && !kept)
			t->devs[kept++] = t->devs[d];
		else
			frag_trace_dev_release(&t->devs[d]);
	}
	t->devs_count = kept;
	if (!kept)
		return FRAG_INPUT(err, "the trace has no device %lld", (long long)only);
	return 0;
}

static int read_trace(struct frag_input *in, const char *options, struct frag_trace **out,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_cft_parser_release) struct frag_cft_parser p = { 0 };
	struct frag_trace_options o;

	FRAG_TRY(frag_trace_options_parse(options, &o, err));
	FRAG_TRY(frag_cft_parser_open(&p, in, err));
	FRAG_TRY(read_all(&p, err));
	if (o.device >= 0)
		FRAG_TRY(keep_device(p.trace, o.device, err));
	FRAG_TRY(frag_trace_take_conf(p.trace, o.conf, err));
	*out = p.trace;
	p.trace = NULL;
	return 0;
}

const struct frag_reader_ops frag_reader_cft = {
	.name = "cft",
	.summary = "cufrag's own format: compressed, checksummed blocks",
	.probe = probe,
	.read = read_trace,
};
