/* SPDX-License-Identifier: Apache-2.0 */
/* A page and its blobs for a browser on this machine that knows the token, by base/http.h. */
#include "view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/http.h"
#include "base/interrupt.h"

struct served {
	const struct frag_view *view;
	const char *html;
};

static void answer(void *ctx, const struct frag_http_request *r, struct frag_http_answer *out)
{
	const struct served *s = ctx;
	bool page = !strcmp(r->path, "/");
	const struct frag_blob *b;
	unsigned long long i;
	uint8_t *bytes;
	char *end;

	out->status = 404;
	if (page) {
		*out = (struct frag_http_answer){ 200, "text/html; charset=utf-8",
						  .body = (void *)s->html,
						  .bytes = strlen(s->html) };
		return;
	}
	if (strncmp(r->path, "/b/", 3) != 0 || r->path[3] < '0' || r->path[3] > '9')
		return;
	i = strtoull(r->path + 3, &end, 10);
	if (*end || i >= s->view->store.count)
		return;
	b = &s->view->store.blobs[i];
	out->status = frag_blob_store_read(&s->view->store, i, &bytes, NULL) ? 500 : 200;
	if (out->status == 200)
		*out = (struct frag_http_answer){ 200,
						  b->bytes < b->plain ? "application/zlib"
								      : "application/octet-stream",
						  .body = bytes, .bytes = b->bytes, .owned = true };
}

int frag_view_serve(const struct frag_view *v, const char *html, unsigned port,
		    void (*tell)(void *ctx, const char *address), void *ctx, struct frag_err *err)
{
	struct served s = { v, html };
	char where[16], address[128];
	const struct frag_http_options o = {
		.name = "--port", .where = where, .token = true, .answer = answer, .ctx = &s
	};
	const struct timespec wait = { .tv_nsec = 100000000 };
	struct frag_http *http;

	snprintf(where, sizeof(where), "%u", port);
	FRAG_TRY(frag_http_open(&o, &http, err));
	frag_http_url(http, address, sizeof(address));
	frag_interrupt_catch();
	tell(ctx, address);
	while (!frag_interrupted())
		nanosleep(&wait, NULL);
	frag_http_close(http);
	return 0;
}
