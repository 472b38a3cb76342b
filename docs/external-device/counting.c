/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of one's own, and a replay on it, with nothing but the installed headers and library:
 *
 *	cc counting.c $(pkg-config --cflags --libs cufrag) -o counting && ./counting trace.cft
 *
 * It can cudaMalloc and nothing else: addresses that only grow, sizes remembered until the free.
 */
#include <stdio.h>
#include <stdlib.h>

#include <frag/device.h>
#include <frag/replay.h>
#include <frag/trace.h>

#define SLOTS 65536u /* segments at a time */

struct counting {
	frag_addr_t next, addr[SLOTS];
	uint64_t bytes[SLOTS], reserved;
};

static void done(void *priv)
{
	free(priv);
}

static void info(void *priv, struct frag_device_info *out)
{
	(void)priv;
	snprintf(out->name, sizeof(out->name), "counting");
	out->total_bytes = 1ull << 46;
	out->granule_bytes = 512;
	out->can = FRAG_CAN_MALLOC;
	out->modelled = true; /* times are what we say: none */
}

static int take(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	struct counting *c = priv;

	(void)err;
	*ns = 0;
	for (unsigned i = 0; i < SLOTS; i++) {
		if (c->bytes[i])
			continue;
		*out = c->addr[i] = c->next += 1ull << 21;
		c->next += bytes;
		c->bytes[i] = bytes;
		c->reserved += bytes;
		return 0;
	}
	return FRAG_OOM;
}

static int give(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct counting *c = priv;

	*ns = 0;
	for (unsigned i = 0; i < SLOTS; i++) {
		if (c->bytes[i] && c->addr[i] == addr) {
			c->reserved -= c->bytes[i];
			c->bytes[i] = 0;
			return 0;
		}
	}
	return frag_fail(err, FRAG_EDEVICE, "nothing was given out there");
}

static int synced(void *priv, uint32_t stream, bool whole, uint64_t *ns, struct frag_err *err)
{
	(void)priv, (void)stream, (void)whole, (void)err;
	*ns = 0;
	return 0;
}

static int mem_info(void *priv, uint64_t *left, uint64_t *total, uint64_t *ns, struct frag_err *err)
{
	const struct counting *c = priv;

	(void)err;
	*ns = 0;
	*total = 1ull << 46;
	*left = *total - c->reserved;
	return 0;
}

static uint64_t reserved(void *priv)
{
	return ((const struct counting *)priv)->reserved;
}

static const struct frag_device_ops ops = {
	.name = "counting",
	.summary = "counts cudaMalloc and cudaFree",
	.close = done,
	.info = info,
	.alloc = take,
	.free = give,
	.sync = synced,
	.mem_info = mem_info,
	.reserved = reserved,
};

/* The first device of the trace through PyTorch's allocator. */
static int replay(const struct frag_trace *trace, struct frag_device *dev, struct frag_result *r,
		  struct frag_err *err)
{
	struct frag_policy_spec *spec;
	struct frag_run_options opt;
	struct frag_run *run;
	int rc;

	rc = frag_policy_spec_parse("pytorch", &spec, err);
	if (rc)
		return rc;
	frag_run_options_defaults(&opt);
	rc = frag_run_create(spec, dev, &trace->devs[0], &opt, &run, err);
	if (!rc) {
		rc = frag_run_feed(run, trace->devs[0].events, trace->devs[0].events_count, err);
		if (!rc)
			rc = frag_run_finish(run, r, err);
		frag_run_destroy(run);
	}
	frag_policy_spec_destroy(spec);
	return rc;
}

int main(int argc, char **argv)
{
	struct counting *priv = calloc(1, sizeof(*priv));
	struct frag_result r = { 0 };
	struct frag_trace *trace = NULL;
	struct frag_device *dev = NULL;
	struct frag_err err = { 0 };
	int rc = argc == 2 && priv ? 0 : FRAG_EUSAGE;

	if (!rc)
		rc = frag_trace_read(argv[1], NULL, &trace, &err);
	if (!rc)
		rc = frag_dev_open(&ops, priv, &dev, &err);
	if (!rc)
		rc = replay(trace, dev, &r, &err);
	if (rc)
		fprintf(stderr, "counting: %s\n", *err.msg ? err.msg : "usage: counting TRACE");
	else
		printf("cudaMalloc %llu\ncudaFree %llu\npeak reserved %llu\n",
		       (unsigned long long)r.calls[FRAG_CALL_MALLOC].count,
		       (unsigned long long)r.calls[FRAG_CALL_FREE].count,
		       (unsigned long long)r.m.peak_reserved_bytes);
	frag_result_release(&r);
	if (dev)
		frag_dev_close(dev);
	else
		free(priv);
	frag_trace_destroy(trace);
	return rc ? 1 : 0;
}
