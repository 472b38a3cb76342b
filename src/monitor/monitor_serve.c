/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor --listen: the latest look for Prometheus, and --web: a page for people, by base/http.h,
 * whose thread answers with the text of the last look. The page tells command lines of processes,
 * so it is for those who know the token; it takes no order from anybody.
 */
#include "monitor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/http.h"

#define COLUMNS 300u /* of a curve on the page */

struct frag_monitor_server {
	pthread_mutex_t lock;
	bool page;  /* else it serves metrics */
	char *text; /* of the last look, malloc; NULL: none so far */
	size_t bytes;
	struct frag_http *http;
};

/* The text, with OpenMetrics' end mark for those who want that. */
static void put_text(struct frag_monitor_server *s, bool open_metrics, struct frag_http_answer *out)
{
	static const char end[] = "# EOF\n";

	pthread_mutex_lock(&s->lock);
	out->bytes = s->bytes + (open_metrics ? sizeof(end) - 1 : 0);
	out->body = frag_host_alloc(out->bytes + 1);
	out->owned = out->body != NULL;
	out->status = out->body ? 200 : 500;
	if (out->body && s->bytes)
		memcpy(out->body, s->text, s->bytes);
	if (out->body && open_metrics)
		memcpy((char *)out->body + s->bytes, end, sizeof(end) - 1);
	pthread_mutex_unlock(&s->lock);
}

static void answer_page(void *ctx, const struct frag_http_request *r, struct frag_http_answer *out)
{
	static const char page[] =
#include "monitor_page.inc"
		;

	out->type = "application/json";
	if (!strcmp(r->path, "/live.json")) {
		put_text(ctx, false, out);
		return;
	}
	*out = (struct frag_http_answer){
		.status = strcmp(r->path, "/") != 0 ? 404 : 200,
		.type = "text/html; charset=utf-8",
		.policy = "default-src 'none'; script-src 'unsafe-inline'; style-src "
			  "'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action "
			  "'none'",
		.body = strcmp(r->path, "/") != 0 ? NULL : (void *)page,
		.bytes = sizeof(page) - 1,
	};
}

static void answer_metrics(void *ctx, const struct frag_http_request *r,
			   struct frag_http_answer *out)
{
	static char hint[] = "it is at /metrics\n";
	bool open_metrics = frag_http_has(r, "Accept", "application/openmetrics-text");

	if (strcmp(r->path, "/metrics") != 0) {
		*out = (struct frag_http_answer){ 404, "text/plain", .body = hint,
						  .bytes = strlen(hint) };
		return;
	}
	out->type = open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				 : "text/plain; version=0.0.4; charset=utf-8";
	put_text(ctx, open_metrics, out);
}

int frag_monitor_server_open(const char *where, bool page, struct frag_monitor_server **out,
			     struct frag_err *err)
{
	FRAG_AUTO(frag_monitor_server_close_at) struct frag_monitor_server *s = NULL;
	struct frag_http_options o = { .name = page ? "--web" : "--listen",
				       .where = where,
				       .token = page,
				       .answer = page ? answer_page : answer_metrics };

	FRAG_TRY_CALLOC(s, 1, "server", err);
	pthread_mutex_init(&s->lock, NULL);
	s->page = page;
	o.ctx = s;
	FRAG_TRY(frag_http_open(&o, &s->http, err));
	*out = FRAG_GIVE(s);
	return 0;
}

void frag_monitor_server_close(struct frag_monitor_server *s)
{
	if (!s)
		return;
	frag_http_close(s->http);
	pthread_mutex_destroy(&s->lock);
	free(s->text);
	frag_host_free(s);
}

static json_t *curve(const struct frag_monitor_past *p, bool busy, unsigned per)
{
	json_t *list = json_array();

	for (unsigned back = COLUMNS; back--;) {
		unsigned v = frag_monitor_past_most(p, busy, per, back);

		json_array_append_new(list,
				      v == FRAG_MONITOR_UNKNOWN ? json_null() : json_integer(v));
	}
	return list;
}

/* The look as `--json` has it, and the curves: of the last COLUMNS looks and of all kept. */
static void put_live(FILE *to, const struct frag_monitor *m)
{
	char when[40];
	json_t *all, *cards;

	frag_monitor_stamp(&m->round, when, sizeof(when));
	all = frag_monitor_json(&m->round, when);
	cards = json_object_get(all, "cards");
	json_object_set_new(all, "interval_ms", json_integer((json_int_t)m->o->interval_ms));
	for (unsigned i = 0; i < m->round.count; i++) {
		json_t *card = json_array_get(cards, i), *curves = json_array();

		for (unsigned per = 1; per <= FRAG_MONITOR_PAST / COLUMNS;
		     per += FRAG_MONITOR_PAST / COLUMNS - 1)
			json_array_append_new(curves,
					      json_pack("{s:i,s:o,s:o}", "looks", (int)per, "used",
							curve(&m->past[i], false, per), "busy",
							curve(&m->past[i], true, per)));
		json_object_set_new(card, "curves", curves);
	}
	if (!all || json_dumpf(all, to, JSON_COMPACT))
		fputs("{}", to);
	json_decref(all);
}

void frag_monitor_server_take(struct frag_monitor_server *s, const struct frag_monitor *m)
{
	FRAG_AUTO_FREE char *text = NULL;
	char *old;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return;
	if (s->page)
		put_live(to, m);
	else
		frag_monitor_put_metrics(to, &m->round);
	if (fclose(to))
		return;
	pthread_mutex_lock(&s->lock);
	old = s->text;
	s->text = text;
	s->bytes = bytes;
	pthread_mutex_unlock(&s->lock);
	text = old;
}

unsigned frag_monitor_server_port(const struct frag_monitor_server *s)
{
	return frag_http_port(s->http);
}

void frag_monitor_server_url(const struct frag_monitor_server *s, char *buf, size_t cap)
{
	frag_http_url(s->http, buf, cap);
}
