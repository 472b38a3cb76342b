/* SPDX-License-Identifier: Apache-2.0 */
/* What the worker processes of a sweep do (base/worker.h): each answers for one trace. */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

void frag_sweep_work(const void *sweep, size_t task, int to)
{
	const struct frag_sweep *s = sweep;
	json_t *answer;
	char *text;

	frag_worker_bound(s->memory_bytes, s->threads);
	answer = frag_sweep_item_run(s, s->files.list[task].path);
	text = answer ? json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (text)
		frag_worker_tell(to, text, strlen(text));
	free(text);
	json_decref(answer);
}
