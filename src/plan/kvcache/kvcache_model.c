/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model keeps for each token, from its config.json (as transformers 4.57 and 5 write it) or
 * from models.csv, in groups of layers as vLLM 0.22 makes them: layers of one kind in groups of as
 * many as the rarest kind has, all with blocks of as many bytes.
 */
#include "kvcache.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LAYERS_MOST 4096u
#define CARDS_MOST 1024u
#define FIELD_MOST (1 << 20)
#define STATE_ALIGN 16u /* tokens: vLLM's blocks are as large as a state, in steps of these */
#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

enum kind { FULL, WINDOW, STATE, KINDS, BOTH = KINDS, NONE, UNKNOWN }; /* BOTH: full and state */

static const char *const words[] = {
	[FULL] = " full_attention attention * ",
	[WINDOW] = " sliding_attention chunked_attention ",
	[STATE] = " linear_attention mamba mamba2 recurrent conv M ",
	[BOTH] = " hybrid ",
	[NONE] = " moe mlp - E ",
};

/* Fields by which more or less is kept than what is read here. */
static const char *const beyond[] = { "index_topk",	      "compress_ratios",
				      "block_configs",	      "cross_attention_layers",
				      "hybrid_layer_pattern", "attn_type_list" };

struct model {
	json_t *config;
	uint64_t layers, cards, stages, element; /* element: bytes */
};

static const json_t *field(const struct model *m, const char *name)
{
	return json_object_get(m->config, name);
}

static uint64_t number(const struct model *m, const char *name)
{
	json_int_t n = json_integer_value(field(m, name));

	return n > 0 && n <= FIELD_MOST ? (uint64_t)n : 0;
}

static enum kind kind_of_word(const char *word, int len)
{
	enum kind kind = FULL;
	char spaced[64];

	snprintf(spaced, sizeof(spaced), " %.*s ", len, word);
	while (kind != UNKNOWN && !strstr(words[kind], spaced))
		kind++;
	return kind;
}

static enum kind full_if_in(const json_t *list, uint64_t n)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_integer_value(json_array_get(list, i)) == (json_int_t)n)
			return FULL;
	return STATE;
}

static enum kind kind_of(const struct model *m, uint64_t i)
{
	const char *type = json_string_value(field(m, "model_type")) ?: "", *word;
	const json_t *list = field(m, "layer_types") ?: field(m, "layers_block_type");
	uint64_t n;

	if (i >= m->layers - FRAG_MIN(m->layers, number(m, "num_kv_shared_layers")))
		return NONE;
	if (json_is_array(list))
		return kind_of_word(json_string_value(json_array_get(list, i)) ?: "?", 40);
	word = json_string_value(field(m, "hybrid_override_pattern"));
	if (word)
		return i < strlen(word) ? kind_of_word(word + i, 1) : UNKNOWN;
	if (json_is_array(list = field(m, "attn_layer_indices")))
		return full_if_in(list, i);
	if ((list = json_object_get(field(m, "linear_attn_config"), "full_attn_layers")))
		return full_if_in(list, i + 1);
	if ((n = number(m, "attn_layer_period")))
		return i % n == number(m, "attn_layer_offset") ? FULL : STATE;
	if ((n = number(m, "full_attention_interval")))
		return (i + 1) % n ? STATE : FULL;
	if (!strcmp(type, "falcon_h1"))
		return BOTH;
	if (!number(m, "attention_chunk_size") &&
	    (!number(m, "sliding_window") || json_is_false(field(m, "use_sliding_window"))))
		return FULL;
	n = number(m, "sliding_window_pattern");
	if (!n)
		n = !strncmp(type, "gemma3", 6)	  ? 6
		    : !strncmp(type, "llama4", 6) ? 4
						  : 2 * !strcmp(type, "gemma2");
	return !n || (i + 1) % n ? WINDOW : FULL;
}

/* Of a token in a layer, on one card. */
static uint64_t bytes_of(const struct model *m, enum kind kind)
{
	uint64_t all = number(m, "num_attention_heads"),
		 heads = number(m, "num_key_value_heads") ?: all,
		 head = number(m, "head_dim") ?: number(m, "hidden_size") / FRAG_MAX(all, 1ull);

	if (number(m, "kv_lora_rank")) /* MLA: the same on each card */
		return (number(m, "kv_lora_rank") + number(m, "qk_rope_head_dim")) * m->element;
	if (kind == FULL && number(m, "global_head_dim"))
		head = number(m, "global_head_dim");
	if (kind == FULL && number(m, "num_global_key_value_heads"))
		heads = number(m, "num_global_key_value_heads");
	return FRAG_MAX(heads / m->cards, 1ull) * m->element *
	       (head + (number(m, "v_head_dim") ?: head));
}

/* Of a request's state in a layer, on one card: of its convolution, and what it sums up. */
static uint64_t state_bytes(const struct model *m)
{
	const char *type = json_string_value(field(m, "mamba_ssm_cache_dtype"))
				   ?: field(m, "hybrid_override_pattern") ? "float32"
									  : "";
	uint64_t heads = number(m, "mamba_n_heads") ?: number(m, "mamba_num_heads"),
		 groups = number(m, "mamba_n_groups") ?: number(m, "n_groups"),
		 state = number(m, "mamba_d_state") ?: number(m, "ssm_state_size"),
		 conv = number(m, "mamba_d_conv") ?: number(m, "conv_kernel"),
		 inner = heads * (number(m, "mamba_d_head") ?: number(m, "mamba_head_dim"));

	groups = groups % m->cards ? m->cards : groups;
	if (number(m, "linear_num_value_heads")) {
		heads = number(m, "linear_num_value_heads");
		inner = heads * number(m, "linear_value_head_dim");
		groups = number(m, "linear_num_key_heads");
		state = number(m, "linear_key_head_dim");
		conv = number(m, "linear_conv_kernel_dim");
	} else if (!heads) {
		inner = number(m, "mamba_expand") * number(m, "hidden_size");
		groups = 0;
	}
	return inner && state && conv ? ((inner + 2 * groups * state) * (conv - 1) * 2 +
					 inner * state * (strcmp(type, "float32") ? 2 : 4)) /
						m->cards
				      : 0;
}

static int count_layers(const struct model *m, uint64_t counts[KINDS], struct frag_err *err)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(beyond); i++)
		if (field(m, beyond[i]) && !json_is_null(field(m, beyond[i])))
			return FRAG_INPUT(err, "its '%s' is not understood", beyond[i]);
	if (!m->layers || m->layers > LAYERS_MOST)
		return FRAG_INPUT(err, "it has no 'num_hidden_layers'");
	for (uint64_t i = 0; i < m->layers; i++) {
		enum kind kind = kind_of(m, i);

		if (kind == UNKNOWN)
			return FRAG_INPUT(err, "the type of layer %" PRIu64 " is not understood",
					  i);
		if (kind < KINDS)
			counts[kind]++;
		counts[FULL] += kind == BOTH;
		counts[STATE] += kind == BOTH;
	}
	return 0;
}

static int group(struct frag_kvcache *k, const struct model *m, struct frag_err *err)
{
	uint64_t counts[KINDS] = { 0 }, bytes[KINDS] = { 0 }, least = UINT64_MAX, most = 0,
		 page = 0;
	const uint64_t windows[] = {
		UINT64_MAX, number(m, "sliding_window") ?: number(m, "attention_chunk_size"), 0
	};

	FRAG_TRY(count_layers(m, counts, err));
	for (unsigned kind = 0; kind < KINDS; kind++)
		if (counts[kind]) {
			bytes[kind] = kind == STATE ? 0 : bytes_of(m, kind);
			page = FRAG_MAX(page, bytes[kind]);
			least = FRAG_MIN(least, counts[kind]);
			most = FRAG_MAX(most, counts[kind]);
		}
	if (!page)
		return FRAG_INPUT(err, "it has no keys and values of known size");
	if (most * 2 < least * 3)
		least = most;
	for (unsigned kind = 0; kind < KINDS; kind++) {
		uint64_t part = bytes[kind] ?: page;

		if (counts[kind] && (page % part || (kind == WINDOW && !windows[kind])))
			return FRAG_INPUT(err, "its layers' sizes are not understood");
		for (uint64_t n = 0; n < counts[kind]; n += least) {
			if (k->groups_count == FRAG_KVCACHE_GROUPS)
				return FRAG_INPUT(err, "it has too many groups");
			k->groups[k->groups_count++] =
				(struct frag_kvcache_group){ windows[kind], page / part };
		}
	}
	k->state_block = STATE_ALIGN * frag_kvcache_blocks(STATE_ALIGN * page, state_bytes(m));
	k->full_bytes = counts[FULL] * bytes[FULL] / m->stages;
	k->window_bytes = counts[WINDOW] * bytes[WINDOW] / m->stages;
	k->token_bytes = page * ((least + m->stages - 1) / m->stages);
	return 0;
}

static const struct {
	const char *name, *config;
} known[] = {
#define FRAG_MODEL(name, source, config) { name, config },
#include "model_list.inc"
};

/* Letters and digits with which both names begin; *rest, *more: what follows in each. */
static size_t alike(const char *asked, const char *name, const char **rest, const char **more)
{
	size_t n = 0;

	for (;; n++, asked++, name++) {
		asked += strcspn(asked, ALNUM);
		name += strcspn(name, ALNUM);
		if (!*name || tolower((unsigned char)*asked) != *name)
			break;
	}
	*rest = asked;
	*more = name;
	return n;
}

/* By its name, or that of a repository, which may end in what does not change its layers. Else
 * lists the known ones, those that begin most alike first. */
static json_t *find(const char *path, char *list, size_t room)
{
	const char *asked = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *rest, *more;
	size_t n = 0;

	for (size_t like = 32; like-- > 0;)
		for (size_t i = 0; i < FRAG_ARRAY_LEN(known); i++) {
			if (alike(asked, known[i].name, &rest, &more) != like)
				continue;
			if (!*more && (!*rest || !strcasecmp(rest, "it") ||
				       !strcasecmp(rest, "base") || !strcasecmp(rest, "instruct")))
				return json_loads(known[i].config, 0, NULL);
			if (n + strlen(known[i].name) + 2 < room)
				n += (size_t)sprintf(list + n, "%s, ", known[i].name);
		}
	return NULL;
}

int frag_kvcache_model(struct frag_kvcache *k, const char *text, struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_host_strdup(text);
	struct model m = { .cards = 1, .stages = 1, .element = 2 };
	json_auto_t *root = NULL;
	json_error_t why = { 0 };
	char list[180], *more;
	int rc;

	FRAG_CHECK_ALLOC(path, "model", err);
	while ((more = strrchr(path, ',')) &&
	       (!strcmp(more, ",fp8") || sscanf(more, ",tp=%" SCNu64, &m.cards) == 1 ||
		sscanf(more, ",pp=%" SCNu64, &m.stages) == 1)) {
		m.element = more[1] == 'f' ? 1 : m.element;
		*more = '\0';
	}
	if (!m.cards || m.cards > CARDS_MOST || !m.stages || m.stages > CARDS_MOST)
		return FRAG_USAGE(err, "--model: expected tp= and pp= from 1 to 1024");
	root = json_load_file(path, 0, &why) ?: find(path, list, sizeof(list));
	if (!root)
		return FRAG_INPUT(
			err, "model '%.80s' is neither a config.json (%.70s) nor known, as %s...",
			path, why.text, list);
	m.config = json_object_get(root, "text_config") ?: root;
	m.layers = number(&m, "num_hidden_layers");
	rc = group(k, &m, err);
	if (rc)
		frag_err_prefix(err, "model '%.200s'", path);
	return rc;
}
