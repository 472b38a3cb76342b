/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server: answers GET and HEAD on a thread of its own, one request a connection, until
 * it is closed.
 *
 * No client can keep others out: a request must be complete after 10 seconds and its answer after a
 * minute, and if many connections are open, the oldest one is closed. On an
 * address of this machine alone, a web page cannot ask through a name of its own that it made
 * resolve to us: the Host of a request must be an address or a name of this machine. With a token,
 * only requests that have it are answered: other users of the machine can connect, but not guess
 * it.
 */
#ifndef FRAG_BASE_HTTP_H
#define FRAG_BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include <frag/error.h>

struct MHD_Connection;
struct frag_http_request {
	const char *path; /* after the token: "/", "/metrics"; without what a '?' begins */
	struct MHD_Connection *connection; /* for frag_http_has */
};
/* Does the header `name` hold `what`? */
bool frag_http_has(const struct frag_http_request *r, const char *name, const char *what);

struct frag_http_answer {
	unsigned status; /* 200, 404, 500; NULL body: the words of the status */
	const char *type;
	const char *policy; /* Content-Security-Policy beside frame-ancestors; NULL: none */
	void *body;	    /* if owned, from frag_host_alloc: the server frees it */
	size_t bytes;
	bool owned;
};

struct frag_http;
struct frag_http_options {
	const char *name;  /* of the option, for messages */
	const char *where; /* "9400", "127.0.0.1:9400", "localhost:0", "[::1]:9400" */
	bool token;	   /* for those who know it, on this machine only */
	void (*answer)(void *ctx, const struct frag_http_request *r, struct frag_http_answer *out);
	void *ctx;
};
/* Errors: FRAG_EUSAGE (where), FRAG_EOUTPUT (it cannot listen), FRAG_ENOMEM. */
int frag_http_open(const struct frag_http_options *o, struct frag_http **out, struct frag_err *err);
void frag_http_close(struct frag_http *s); /* NULL is allowed */
unsigned frag_http_port(const struct frag_http *s);
/* "http://127.0.0.1:9400/TOKEN/" */
void frag_http_url(const struct frag_http *s, char *buf, size_t cap);

#endif
