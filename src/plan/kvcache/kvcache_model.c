/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model keeps for each token, from its config.json (as transformers 4.57 and 5 write it) or
 * from models.csv, in groups of layers as vLLM 0.22 makes them: layers of one kind in groups of as
 * many as the rarest kind has, all with blocks of as many bytes.
 */
#include "kvcache.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define LAYERS_MOST 4096u
#define CARDS_MOST 1024u
#define FIELD_MOST (1 << 20)

enum kind { FULL, WINDOW, STATE, BOTH, NONE, UNKNOWN, KINDS = BOTH }; /* BOTH: full and state */

static const struct {
	const char *word;
	enum kind kind;
} words[] = {
	{ "full_attention", FULL },
	{ "attention", FULL },
	{ "*", FULL },
	{ "sliding_attention", WINDOW },
	{ "mamba", STATE },
	{ "M", STATE },
	{ "chunked_attention", WINDOW },
	{ "mamba2", STATE },
	{ "hybrid", BOTH },
	{ "linear_attention", STATE },
	{ "recurrent", STATE },
	{ "conv", STATE },
	{ "moe", NONE },
	{ "mlp", NONE },
	{ "-", NONE },
	{ "E", NONE },
};

/* Fields that say that more or less is kept than what is read here. */
static const char *const beyond[] = { "index_topk",	      "compress_ratios",
				      "block_configs",	      "cross_attention_layers",
				      "hybrid_layer_pattern", "attn_type_list",
				      "max_window_layers" };

struct model {
	json_t *config;
	uint64_t layers, cards, element; /* element: bytes */
};

static uint64_t number(const struct model *m, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(m->config, name));

	return n > 0 && n <= FIELD_MOST ? (uint64_t)n : 0;
}

static bool lists(const json_t *list, uint64_t n)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_integer_value(json_array_get(list, i)) == (json_int_t)n)
			return true;
	return false;
}

static enum kind kind_of_word(const char *word, size_t len)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(words); i++)
		if (strlen(words[i].word) == len && !memcmp(word, words[i].word, len))
			return words[i].kind;
	return UNKNOWN;
}

/* Of layer i. *field: what says so. */
static enum kind kind_of(const struct model *m, uint64_t i, const char **field)
{
	static const char *const named[] = { "layer_types", "layers_block_type", NULL };
	const char *type = json_string_value(json_object_get(m->config, "model_type")) ?: "", *word;
	const json_t *list;
	uint64_t n;

	if (i >= m->layers - FRAG_MIN(m->layers, number(m, "num_kv_shared_layers")))
		return NONE;
	for (const char *const *name = named; *name; name++)
		if (json_is_array(json_object_get(m->config, *field = *name))) {
			list = json_object_get(m->config, *name);
			word = json_string_value(json_array_get(list, i)) ?: "";
			return kind_of_word(word, strlen(word));
		}
	word = json_string_value(json_object_get(m->config, *field = "hybrid_override_pattern"));
	if (word)
		return i < strlen(word) ? kind_of_word(word + i, 1) : UNKNOWN;
	if (json_is_array(list = json_object_get(m->config, "attn_layer_indices")))
		return lists(list, i) ? FULL : STATE;
	list = json_object_get(json_object_get(m->config, "linear_attn_config"), "full_attn_"
										 "layers");
	if (list)
		return lists(list, i + 1) ? FULL : STATE;
	if ((n = number(m, "attn_layer_period")))
		return i % n == number(m, "attn_layer_offset") ? FULL : STATE;
	if ((n = number(m, "full_attention_interval")))
		return (i + 1) % n ? STATE : FULL;
	if (!strcmp(type, "falcon_h1"))
		return BOTH;
	if (number(m, "attention_chunk_size") && strncmp(type, "llama4", 6) == 0)
		return (i + 1) % (number(m, "no_rope_layer_interval") ?: 4) ? WINDOW : FULL;
	if (!number(m, "sliding_window") || json_is_false(json_object_get(m->config, "use_sliding_"
										     "window")))
		return FULL;
	n = number(m, "sliding_window_pattern");
	if (!n)
		n = !strncmp(type, "gemma3", 6) ? 6 : !strcmp(type, "gemma2") ? 2 : 0;
	return !n || (i + 1) % n ? WINDOW : FULL;
}

/* Of a token in a layer, on one card. */
static uint64_t bytes_of(const struct model *m, enum kind kind)
{
	bool global = kind == FULL, swa = kind == WINDOW;
	uint64_t all = number(m, "num_attention_heads"),
		 heads = number(m, "num_key_value_heads") ?: all, head = number(m, "head_dim"),
		 value = number(m, "v_head_dim");

	if (number(m, "kv_lora_rank")) /* MLA: the same on each card */
		return (number(m, "kv_lora_rank") + number(m, "qk_rope_head_dim")) * m->element;
	head = head ?: number(m, "hidden_size") / FRAG_MAX(all, 1ull);
	if (global && number(m, "global_head_dim"))
		head = number(m, "global_head_dim");
	if (global && number(m, "num_global_key_value_heads"))
		heads = number(m, "num_global_key_value_heads");
	if (swa && number(m, "swa_num_key_value_heads"))
		heads = number(m, "swa_num_key_value_heads");
	return FRAG_MAX(heads / m->cards, 1ull) * (head + (value ?: head)) * m->element;
}

static int count_layers(const struct model *m, uint64_t counts[KINDS], struct frag_err *err)
{
	const char *field = "";

	for (size_t i = 0; i < FRAG_ARRAY_LEN(beyond); i++) {
		json_t *x = json_object_get(m->config, beyond[i]);

		if (x && !json_is_null(x) && !json_is_false(x) &&
		    (i + 1 < FRAG_ARRAY_LEN(beyond) ||
		     json_is_true(json_object_get(m->config, "use_sliding_window"))))
			return frag_fail(err, FRAG_EINPUT, "its '%s' is not understood", beyond[i]);
	}
	if (!m->layers || m->layers > LAYERS_MOST)
		return frag_fail(err, FRAG_EINPUT, "it has no 'num_hidden_layers'");
	for (uint64_t i = 0; i < m->layers; i++) {
		enum kind kind = kind_of(m, i, &field);

		if (kind == UNKNOWN)
			return frag_fail(err, FRAG_EINPUT,
					 "its '%s' of layer %" PRIu64 " is not understood", field,
					 i);
		counts[FULL] += kind == FULL || kind == BOTH;
		counts[STATE] += kind == STATE || kind == BOTH;
		counts[WINDOW] += kind == WINDOW;
	}
	return 0;
}

static int group(struct frag_kvcache *k, const struct model *m, struct frag_err *err)
{
	uint64_t counts[KINDS] = { 0 }, bytes[KINDS] = { 0 }, least = UINT64_MAX, most = 0,
		 page = 0;

	FRAG_TRY(count_layers(m, counts, err));
	for (unsigned kind = 0; kind < KINDS; kind++)
		if (counts[kind]) {
			bytes[kind] = kind == STATE ? 0 : bytes_of(m, kind);
			page = FRAG_MAX(page, bytes[kind]);
			least = FRAG_MIN(least, counts[kind]);
			most = FRAG_MAX(most, counts[kind]);
		}
	if (!page)
		return frag_fail(err, FRAG_EINPUT, "it keeps no keys and values of tokens");
	if (most * 2 < least * 3)
		least = most;
	for (unsigned kind = 0; kind < KINDS; kind++) {
		struct frag_kvcache_group g = { .count = (counts[kind] + least - 1) / least };

		g.times = bytes[kind] ? page / bytes[kind] : 1;
		g.window = kind == FULL	   ? UINT64_MAX
			   : kind == STATE ? 0
					   : number(m, "sliding_window")
						     ?: number(m, "attention_chunk_size");
		if (g.count && (page % (bytes[kind] ?: page) || (kind == WINDOW && !g.window)))
			return frag_fail(err, FRAG_EINPUT,
					 "its layers differ in size, or have no "
					 "'sliding_window'");
		if (g.count)
			k->groups[k->groups_count++] = g;
	}
	k->token_bytes = page * least;
	return 0;
}

int frag_kvcache_model(struct frag_kvcache *k, const char *text, struct frag_err *err)
{
	static const struct {
		const char *name, *config;
	} known[] = {
#define FRAG_MODEL(name, source, config) { name, config },
#include "model_list.inc"
	};
	struct model m = { .cards = 1, .element = 2 };
	char *path = frag_host_strdup(text), *more = path ? strchr(path, ',') : NULL;
	json_auto_t *root = NULL;
	json_error_t why = { 0 };
	int rc = 0;

	FRAG_CHECK_ALLOC(path, "model", err);
	for (char *next; more; more = next) {
		*more++ = '\0';
		next = strchr(more, ',');
		if (!strncmp(more, "fp8", 3))
			m.element = 1;
		else if (sscanf(more, "tp=%" SCNu64, &m.cards) != 1 || !m.cards ||
			 m.cards > CARDS_MOST)
			rc = FRAG_EUSAGE;
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(known) && !root; i++)
		if (!strcmp(path, known[i].name))
			root = json_loads(known[i].config, 0, &why);
	if (!root)
		root = json_load_file(path, 0, &why);
	frag_host_free(path);
	if (rc)
		return frag_fail(err, rc, "unknown model '%.60s': expected NAME or FILE, tp=2, fp8",
				 text);
	if (!root)
		return frag_fail(err, FRAG_EINPUT,
				 "model '%.200s' is neither known nor a config.json: %s", text,
				 why.text);
	m.config = json_object_get(root, "text_config") ?: root;
	m.layers = number(&m, "num_hidden_layers");
	rc = group(k, &m, err);
	if (rc == FRAG_EINPUT)
		frag_err_prefix(err, "model '%.200s'", text);
	return rc;
}
