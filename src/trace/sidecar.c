/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace is told besides its file; see whole.h. NAME.meta.json: small, of known members only,
 * and every number in its range. */
#include "whole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include <frag/base.h>
#include <frag/torch.h>

#include "base/clean.h"

#define BYTES_MAX 65536u
#define CARD_MAX (1ull << 50)

struct sidecar {
	const char *name;
	struct frag_err *err;
};

static int bad(const struct sidecar *s, const char *what)
{
	return frag_fail(s->err, FRAG_EINPUT, "'%.200s': %s", s->name, what);
}

/* A whole number up to `most`; *out is unchanged if the key is absent. */
static int take_bytes(const struct sidecar *s, const json_t *o, const char *key, uint64_t most,
		      uint64_t *out)
{
	const json_t *v = json_object_get(o, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > most)
		return frag_fail(s->err, FRAG_EINPUT,
				 "'%.200s': \"%s\" must be a whole number from 0 to %" PRIu64,
				 s->name, key, most);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

static int take_fraction(const struct sidecar *s, const json_t *o, double *out)
{
	const json_t *v = json_object_get(o, "limit_fraction");

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_number(v) || !(json_number_value(v) >= 0 && json_number_value(v) <= 1))
		return bad(s, "\"limit_fraction\" must be a number from 0 to 1");
	*out = json_number_value(v);
	return 0;
}

static int take_name(const struct sidecar *s, const json_t *o, char *out, size_t size)
{
	const json_t *v = json_object_get(o, "name");

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return bad(s, "\"name\" is not a text");
	snprintf(out, size, "%s", json_string_value(v));
	frag_clean_text(out, strlen(out));
	return 0;
}

/* One device; *limit: the memory limit of the process, UINT64_MAX = none, 0 = not known. */
static int take_device(const struct sidecar *s, const json_t *o, struct frag_recorded_card *card,
		       uint64_t *limit)
{
	*limit = json_is_number(json_object_get(o, "limit_fraction")) ? UINT64_MAX : 0;
	card->limit_fraction = 1;
	FRAG_TRY(take_name(s, o, card->name, sizeof(card->name)));
	FRAG_TRY(take_bytes(s, o, "total_bytes", CARD_MAX, &card->total_bytes));
	FRAG_TRY(take_bytes(s, o, "context_bytes", card->total_bytes, &card->context_bytes));
	FRAG_TRY(take_bytes(s, o, "beside_bytes", card->total_bytes, &card->beside_bytes));
	FRAG_TRY(take_fraction(s, o, &card->limit_fraction));
	/* as in PyTorch: rounded down, and 1 means no limit */
	if (card->limit_fraction < 1 && card->total_bytes)
		*limit = (uint64_t)(card->limit_fraction * (double)card->total_bytes);
	return take_bytes(s, o, "limit_bytes", CARD_MAX, limit);
}

static int take_devices(const struct sidecar *s, const json_t *list, struct frag_trace *trace)
{
	uint64_t common = UINT64_MAX;
	bool first = true, agree = true;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		struct frag_recorded_card card = { 0 };
		uint64_t ordinal = UINT64_MAX, limit;

		if (!json_is_object(o))
			return bad(s, "an entry of \"devices\" is not an object");
		FRAG_TRY(take_bytes(s, o, "ordinal", UINT16_MAX, &ordinal));
		if (ordinal == UINT64_MAX)
			return bad(s, "a device without \"ordinal\"");
		FRAG_TRY(take_device(s, o, &card, &limit));
		for (uint32_t d = 0; d < trace->devs_count; d++) {
			if (trace->devs[d].ordinal != ordinal)
				continue;
			trace->devs[d].card = card;
			agree = agree && (first || limit == common);
			common = limit;
			first = false;
		}
	}
	/* a trace has room for one limit for all devices; others are found by replaying */
	if (!first && agree && common) {
		trace->settings.limit_bytes = common;
		trace->settings.limit_known = true;
	}
	return 0;
}

int frag_sidecar_parse(const char *name, const char *text, size_t len, struct frag_trace *trace,
		       struct frag_err *err)
{
	const struct sidecar s = { name, err };
	const json_t *devices;
	json_error_t at;
	json_auto_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);

	if (!root)
		return FRAG_INPUT(err, "'%.200s' is not JSON: %.120s, at byte %d", name, at.text,
				  at.position);
	frag_trace_take_release(trace, json_string_value(json_object_get(root, "torch")));
	devices = json_object_get(root, "devices");
	if (!json_is_object(root) || json_integer_value(json_object_get(root, "cufrag_meta")) != 1)
		return bad(&s, "it has no \"cufrag_meta\": 1, so it does not describe a recording");
	if (!json_is_array(devices))
		return bad(&s, "\"devices\" is not a list");
	return take_devices(&s, devices, trace);
}

/* The small regular file of that name, if there is one. */
static int read_at(const char *stem, size_t n, struct frag_trace *trace, bool *found,
		   struct frag_err *err)
{
	FRAG_AUTO_FREE char *text = frag_host_alloc(BYTES_MAX + 1);
	FRAG_AUTO_FILE FILE *f = NULL;
	char path[4200];
	struct stat st;
	size_t len;

	FRAG_CHECK_ALLOC(text, "card of the recording", err);
	snprintf(path, sizeof(path), "%.*s.meta.json", (int)n, stem);
	*found = !stat(path, &st);
	if (!*found && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG))
		return 0;
	if (*found && !S_ISREG(st.st_mode))
		return FRAG_INPUT(err, "'%.200s' is not a regular file", path);
	f = fopen(path, "rbe");
	len = f ? fread(text, 1, BYTES_MAX + 1, f) : 0;
	if (!f || ferror(f))
		return FRAG_INPUT(err, "cannot read '%.200s': %s", path, strerror(errno));
	if (len > BYTES_MAX)
		return frag_fail_at(err, FRAG_EINPUT, BYTES_MAX, "'%.200s' is longer than %u bytes",
				    path, BYTES_MAX);
	if (!len)
		return FRAG_INPUT(err, "'%.200s' is empty", path);
	return frag_sidecar_parse(path, text, len, trace, err);
}

int frag_sidecar_read(const char *path, struct frag_trace *trace, struct frag_err *err)
{
	static const char *const packed[] = { ".xz", ".gz", ".zst" };
	size_t n = strlen(path);
	bool found = false;

	if (!strcmp(path, "-") || n > 4096)
		return 0;
	FRAG_TRY(read_at(path, n, trace, &found, err));
	for (size_t i = 0; !found && i < FRAG_ARRAY_LEN(packed); i++) {
		size_t stem = frag_stem(path, packed[i]);

		if (stem)
			return read_at(path, stem, trace, &found, err);
	}
	return 0;
}

/* ---- options ---- */

int frag_trace_options_parse(const char *text, struct frag_trace_options *out, struct frag_err *err)
{
	const char *at = text ? text : "";
	char *end;

	*out = (struct frag_trace_options){ .device = -1 };
	if (!strncmp(at, "device=", 7) && at[7] >= '0' && at[7] <= '9') {
		out->device = strtoll(at + 7, &end, 10);
		if (out->device <= UINT32_MAX && (!*end || *end == ';'))
			at = end + (*end == ';');
	}
	if (!strncmp(at, "conf=", 5))
		out->conf = at + 5;
	else if (*at)
		return FRAG_USAGE(err, "unknown trace option '%s'; use device=N or conf=SETTINGS",
				  at);
	return 0;
}

int frag_trace_take_conf(struct frag_trace *trace, const char *conf, struct frag_err *err)
{
	struct frag_trace_settings *set = &trace->settings;
	char *copy;

	if (!conf)
		return 0;
	if (frag_torch_settings(conf, set->torch_last, set, err))
		return frag_err_prefix(err, "given settings");
	copy = frag_host_strdup(conf);
	FRAG_CHECK_ALLOC(copy, "settings", err);
	frag_host_free(set->conf);
	set->conf = copy;
	return 0;
}

void frag_trace_set_torch(struct frag_trace *trace, unsigned first, unsigned last)
{
	trace->settings.torch_first = first;
	trace->settings.torch_last = last;
	for (uint32_t d = 0; d < trace->devs_count; d++)
		trace->devs[d].source_release = last;
}

void frag_trace_take_release(struct frag_trace *trace, const char *text)
{
	const struct frag_trace_settings *set = &trace->settings;
	unsigned release;

	if (text && set->torch_last && !frag_torch_parse(text, &release, NULL) &&
	    release >= set->torch_first && release <= set->torch_last)
		frag_trace_set_torch(trace, release, release);
}
