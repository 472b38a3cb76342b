/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording says about itself, and targets; see recording.h and target.h. */
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

#include "base/args.h"
#include "verify/follow.h"

static const struct frag_own_allocator allocators[] = {
	{ "rmm", "rmm_pool", NULL },
	{ "rmm", "rmm_arena", "rmm.mr.ArenaMemoryResource" },
	{ "rmm", "rmm_binning", "rmm.mr.BinningMemoryResource" },
	{ "rmm", "async", "rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())" },
	{ "umpire", "quickpool", NULL },
	{ "umpire", "dynamicpool", "umpire::strategy::DynamicPoolList" },
	{ "umpire-dynamicpool", "dynamicpool", NULL },
	{ "umpire-dynamicpool", "quickpool", "umpire::strategy::QuickPool" },
	{ "umpire-resource", "native", NULL },
	{ "umpire-resource", "quickpool", "umpire::strategy::QuickPool" },
	{ "cupy", "cupy", NULL },
	{ "cupy", "async", "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)" },
	{ "bfc", "bfc", NULL },
	{ "bfc", "async",
	  "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async, TF_GPU_ALLOCATOR=cuda_malloc_async" },
	{ "pprof", "native", NULL },
	{ "stream-ordered", "async", NULL },
	{ "driver", "native", NULL },
	{ "driver", "async", "cudaMallocAsync in place of cudaMalloc" },
	{ "nsys", "native", NULL },
	{ "nsys", "async", "cudaMallocAsync in place of cudaMalloc" },
};

const struct frag_own_allocator *frag_own_allocators(const char *format, size_t *count)
{
	const struct frag_own_allocator *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(allocators) && format; i++) {
		size_t word = strcspn(format, " ");

		if (word != strlen(allocators[i].format) ||
		    strncmp(format, allocators[i].format, word) != 0)
			continue;
		first = first ? first : &allocators[i];
		n++;
	}
	if (count)
		*count = n;
	return first;
}

const char *frag_stacks_hint(const struct frag_trace *trace)
{
	const char *format = trace->format ? trace->format : "";
	const struct frag_own_allocator *own = frag_own_allocators(format, NULL);

	/* of a pool, a recording would show what the pool asks of the driver */
	if (own && strcmp(own->policy, "native") && strcmp(own->policy, "async"))
		return NULL;
	if (trace->estimate)
		return "cufrag record --no-gpu --frames";
	if (!strncmp(format, "torch", 5) || !strncmp(format, "kineto", 6) ||
	    trace->settings.present)
		return "torch.cuda.memory._record_memory_history(stacks=\"python\")";
	return own ? "cufrag record --frames" : NULL;
}

bool frag_is_state(const struct frag_trace *trace, const struct frag_trace_dev *dev)
{
	return (dev->has_evidence && !dev->recorded_count) ||
	       (trace->format && !strncmp(trace->format, "pprof", 5));
}

const char *frag_history_hint(const struct frag_trace *trace)
{
	return trace->format && !strncmp(trace->format, "pprof", 5)
		       ? "TF_CPP_VMODULE=bfc_allocator=4"
		       : "torch.cuda.memory._record_memory_history()";
}

bool frag_policy_is_recorded(const char *text)
{
	return !text || !strcmp(text, "recorded");
}

int frag_recorded_spec(const struct frag_trace *trace, struct frag_policy_spec **out,
		       struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *raw = NULL;
	FRAG_AUTO_FREE char *text = NULL;
	const struct frag_own_allocator *own = frag_own_allocators(trace->format, NULL);

	*out = NULL;
	if (own && !trace->settings.present)
		return frag_policy_spec_parse(own->policy, out, err);
	/* settings of an allocator that is not known here are as good as none */
	if (!trace->settings.present || follow_spec(trace, NULL, &raw, NULL))
		return 0;
	text = frag_host_strdup(frag_policy_spec_text(raw));
	FRAG_CHECK_ALLOC(text, "recorded settings", err);
	for (size_t n = strlen(text); n && strchr(":,", text[n - 1]); n--)
		text[n - 1] = '\0';
	return frag_policy_spec_parse(text, out, err);
}

int frag_recorded_invalid(const struct frag_trace *trace, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	int rc = trace->settings.present ? follow_spec(trace, NULL, &spec, err) : 0;

	return rc ? frag_err_prefix(err, "'%.200s'", trace->name) : 0;
}

int frag_recording_spec(const struct frag_trace *trace, const char *text,
			struct frag_policy_spec **out, struct frag_err *err)
{
	*out = NULL;
	if (frag_policy_is_recorded(text))
		return frag_recorded_spec(trace, out, err);
	return frag_policy_spec_parse(text, out, err);
}

int frag_recording_unit(const struct frag_recording *r, uint64_t ordinal,
			const struct frag_unit **out, struct frag_err *err)
{
	for (uint32_t d = 0; d < r->trace->devs_count; d++) {
		*out = &r->units[d];
		if ((*out)->dev->ordinal == ordinal)
			return 0;
	}
	return FRAG_USAGE(err, "'%.200s' has no device %llu", r->path, (unsigned long long)ordinal);
}

bool frag_target_keeps_limit(const struct frag_target *t, const struct frag_trace_dev *dev)
{
	return !t->limit.text && dev->settled.identical && dev->settled.limit_bytes != UINT64_MAX;
}

uint64_t frag_target_limit_for(const struct frag_target *t, const struct frag_trace_dev *dev)
{
	return frag_target_keeps_limit(t, dev) ? dev->settled.limit_bytes : frag_target_limit(t);
}

uint64_t frag_target_recorded_peak(const struct frag_target *t, const struct frag_trace_dev *dev)
{
	uint64_t peak = frag_recorded_peak(dev);
	bool room = !t->card_given || peak <= t->card.total_bytes - t->card.context_bytes;

	return t->limit.text || (t->torch && t->torch != dev->source_release) || !room ? 0 : peak;
}

/* A line of the note of an estimate, "key NAME", as a known card; NULL = none. */
static const struct frag_gpu *noted_card(const char *note, const char *key)
{
	const char *line = note ? strstr(note, key) : NULL;
	char name[64];

	if (!line || (line != note && line[-1] != '\n'))
		return NULL;
	line += strlen(key);
	snprintf(name, sizeof(name), "%.*s", (int)FRAG_MIN(strcspn(line, "\n"), 63u), line);
	return frag_gpu_find(name);
}

const struct frag_gpu_chip *frag_recorded_chip(const struct frag_trace *trace,
					       const struct frag_trace_dev *dev)
{
	const struct frag_gpu *gpu = *dev->card.name ? frag_gpu_find(dev->card.name) : NULL;

	gpu = gpu ?: noted_card(trace->estimate, "chip ") ?: noted_card(trace->estimate, "card ");
	return gpu ? frag_gpu_chip_find(gpu->name) : NULL;
}

bool frag_same_kernels(const struct frag_gpu_chip *a, const struct frag_gpu_chip *b)
{
	return a && b && a->major == b->major && a->minor == b->minor;
}

bool frag_other_kernels(const struct frag_gpu_chip *recorded, const struct frag_gpu *card)
{
	const struct frag_gpu *known = card ? frag_gpu_find(card->name) : NULL;
	const struct frag_gpu_chip *chip = known ? frag_gpu_chip_find(known->name) : NULL;

	return recorded && chip && !frag_same_kernels(recorded, chip);
}

uint64_t frag_recorded_outside_bytes(const struct frag_trace_dev *dev)
{
	uint64_t context = dev->card.context_bytes;
	size_t n;
	const struct frag_gpu *gpus = frag_gpu_list(&n);

	while (!context && n--) {
		const struct frag_gpu_chip *chip = frag_gpu_chip_find(gpus[n].name);

		if (chip && !strcmp(chip->shown, dev->card.name))
			context = gpus[n].context_bytes;
	}
	/* for an unknown card, the context's size is unknown */
	return context && dev->card.beside_bytes > context ? dev->card.beside_bytes - context : 0;
}

/* ---- limits and targets ---- */

int frag_limit_parse(const char *text, struct frag_limit *out, struct frag_err *err)
{
	char *end;
	double fraction = strtod(text, &end);

	*out = (struct frag_limit){ .text = text };
	out->is_fraction =
		strchr(text, '.') && !text[strspn(text, "0123456789.")] && end != text && !*end;
	if (!out->is_fraction)
		return frag_parse_memory(text, &out->bytes, err);
	if (fraction > 1.0)
		return FRAG_USAGE(err,
				  "limit '%.40s' is more than the whole card; give a fraction up "
				  "to 1.0, or a size with its unit, as %.40sG",
				  text, text);
	out->fraction = fraction;
	return 0;
}

uint64_t frag_limit_bytes(const struct frag_limit *limit, uint64_t total_bytes)
{
	if (!limit->text)
		return UINT64_MAX;
	if (!limit->is_fraction)
		return limit->bytes;
	return limit->fraction < 1.0 ? (uint64_t)(limit->fraction * (double)total_bytes)
				     : UINT64_MAX;
}

uint64_t frag_target_limit(const struct frag_target *t)
{
	return frag_limit_bytes(&t->limit, t->card.total_bytes);
}

void frag_target_run_options(const struct frag_target *t, struct frag_run_options *out)
{
	frag_run_options_defaults(out);
	out->source_release = t->torch;
	out->seed = t->seed;
	out->limit_bytes = frag_target_limit(t);
}

void frag_headroom_text(const struct frag_headroom *h, struct frag_text *out)
{
	size_t start = out->len;

	if (h->outside_bytes) {
		frag_text_addf(out, "%s for what was held outside of the allocator",
			       FRAG_BYTES(h->outside_bytes));
	}
	if (h->ratio > 0 || h->bytes) {
		frag_text_add(out, out->len > start ? " and " : "");
		if (h->ratio > 0)
			frag_text_addf(out, "%g %% of the card", 100 * h->ratio);
		else
			frag_text_add(out, FRAG_BYTES(h->bytes));
		frag_text_add(out, " for libraries and for inputs longer than those recorded");
	}
}
