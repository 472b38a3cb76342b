/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which release of PyTorch wrote a snapshot. The file does not name it, but releases added keys: a
 * key that is there sets the oldest possible release, a key that is missing the newest. Releases
 * that added no key cannot be told apart (2.10 and 2.11, for example), unless the settings use a
 * key that only the newer one knows.
 */
#include <frag/torch.h>

#include "torch_parts.h"

void frag_torch_note_entry(struct frag_torch_seen *m, const frag_pv *pairs, size_t n)
{
	m->entries = true;
	for (size_t i = 0; i < n; i++) {
		if (frag_pv_tag(pairs[2 * i]) != FRAG_PV_STR)
			continue;
		switch (pairs[2 * i] >> 3) {
		case FRAG_W_TIME_US:
			m->time_us = true;
			break;
		case FRAG_W_COMPILE_CONTEXT:
			m->compile_context = true;
			break;
		case FRAG_W_USER_METADATA:
			m->user_metadata = true;
			break;
		case FRAG_W_POOL_ID:
			m->pool_id = true;
			break;
		}
	}
}

static bool has(const struct frag_pickle_node *node, uint32_t key)
{
	return node && frag_node_get(node, key) != FRAG_PV_HOLE;
}

void frag_torch_note_file(struct frag_torch_seen *m, const struct frag_pickle_node *top,
			  const struct frag_pickle_node *settings)
{
	m->annotations = has(top, FRAG_W_EXTERNAL_ANNOTATIONS);
	m->host = has(top, FRAG_W_HOST_SEGMENTS) || has(top, FRAG_W_HOST_TRACES);
	m->settings = settings && settings->count;
	m->stream_reuse = has(settings, FRAG_W_STREAM_REUSE);
	m->round_threshold = has(settings, FRAG_W_MAX_ROUND_THRESHOLD);
}

void frag_torch_releases(const struct frag_torch_seen *m, const char *conf, unsigned *first,
			 unsigned *last)
{
	/* in order: the release that brought a mark, is it there, could it be there */
	const struct {
		unsigned since;
		bool there, looked;
	} marks[] = {
		{ FRAG_TORCH(2, 2), m->time_us, m->entries },
		{ FRAG_TORCH(2, 3), m->settings, true },
		{ FRAG_TORCH(2, 5), m->annotations, true },
		{ FRAG_TORCH(2, 8), m->compile_context, m->entries },
		{ FRAG_TORCH(2, 9), m->stream_reuse, m->settings },
		{ FRAG_TORCH(2, 10), m->user_metadata, m->entries },
		{ FRAG_TORCH(2, 12), m->pool_id, m->entries },
		{ FRAG_TORCH(2, 13), m->round_threshold, m->settings },
		{ FRAG_TORCH(2, 14), m->host, true },
	};

	*first = FRAG_TORCH_OLDEST;
	*last = FRAG_TORCH_NEWEST;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(marks); i++)
		if (marks[i].there)
			*first = marks[i].since;
	/* a missing mark means nothing if a later one is there */
	for (size_t i = FRAG_ARRAY_LEN(marks); i-- > 0 && marks[i].since > *first;)
		if (marks[i].looked)
			*last = marks[i].since - 1;
	/* a release refuses settings that it does not know */
	if (conf && frag_torch_conf_since(conf) <= *last)
		*first = FRAG_MAX(*first, frag_torch_conf_since(conf));
}
