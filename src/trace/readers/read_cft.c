/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks a whole .cft. A truncated or damaged file gives nothing. */
#include <frag/trace.h>

#include "trace/build/build.h"
#include "trace/cft/cft_parse.h"
#include "trace/trace_options.h"

static int probe(const unsigned char *bytes, size_t len)
{
	return frag_cft_is_magic(bytes, len) ? 100 : 0;
}

/* Events and their addresses lie block by block one after the other. */
static int read_events(struct frag_cft_parser *p, uint32_t index, struct frag_cft_model *model,
		       struct frag_err *err)
{
	struct frag_trace_dev *dev = &p->trace->devs[index];
	uint64_t declared = dev->events_count, n;
	size_t cap = 0, addrs_cap = 0;

	for (uint64_t have = 0; have < declared; have += n) {
		FRAG_TRY(frag_cft_parser_next(p, FRAG_CFT_EVENTS, index, declared - have, err));
		n = p->block.count;
		FRAG_TRY(frag_cft_grow(&dev->events, &cap, have + n, declared, sizeof(*dev->events),
				       err));
		FRAG_TRY(frag_cft_parser_events(p, model, dev->events + have, err));
		if (!p->declared[index].has_addrs)
			continue;
		FRAG_TRY(frag_cft_parser_next(p, FRAG_CFT_ADDRS, index, n, err));
		FRAG_TRY(frag_cft_grow(&dev->addrs, &addrs_cap, have + n, declared,
				       sizeof(*dev->addrs), err));
		if (p->block.count != n)
			return frag_cft_bad(err, p->offset, "%u addresses for %llu events",
					    p->block.count, (unsigned long long)n);
		FRAG_TRY(frag_cft_unpack_addrs(p->coder, &p->unpacker, dev->events + have, n,
					       dev->addrs + have, err));
		FRAG_TRY(frag_cft_unpack_end(&p->unpacker, err));
	}
	if (model->events < dev->initial.blocks_count)
		return frag_cft_bad(err, p->offset, "fewer events than initial blocks");
	return 0;
}

/* What the recorder saw, and the final snapshot. */
static int read_evidence(struct frag_cft_parser *p, uint32_t index, struct frag_err *err)
{
	const struct frag_trace_dev *declared = &p->declared[index].dev;
	struct frag_trace_dev *dev = &p->trace->devs[index];
	const char *wrong;

	FRAG_TRY(frag_cft_parser_array(p, &frag_cft_seen, index, declared->seen_count, &dev->seen,
				       err));
	FRAG_TRY(frag_cft_parser_array(p, &frag_cft_final_segments, index,
				       declared->final_segments_count, &dev->final_segments, err));
	FRAG_TRY(frag_cft_parser_array(p, &frag_cft_final_blocks, index,
				       declared->final_blocks_count, &dev->final_blocks, err));
	dev->seen_count = declared->seen_count;
	dev->final_segments_count = declared->final_segments_count;
	dev->final_blocks_count = declared->final_blocks_count;
	wrong = frag_cft_check_evidence(dev);
	return wrong ? frag_cft_bad(err, p->offset, "device %u: %s", dev->ordinal, wrong) : 0;
}

static int read_all(struct frag_cft_parser *p, struct frag_err *err)
{
	for (uint32_t d = 0; d < p->trace->devs_count; d++) {
		struct frag_cft_model model;
		int rc = frag_cft_model_init(&model, p->trace, &p->trace->devs[d], err);

		if (!rc)
			rc = read_events(p, d, &model, err);
		frag_cft_model_release(&model);
		FRAG_TRY(rc);
		FRAG_TRY(read_evidence(p, d, err));
	}
	return frag_cft_parser_end(p, err);
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
		return frag_fail(err, FRAG_EINPUT, "the trace has no device %lld", (long long)only);
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
