/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page and its blobs for a browser on this machine. Only 127.0.0.1 is listened on, and only requests that know the
 * token are answered: other users of the machine can connect, but not guess 128 bits; a page of another origin knows
 * neither token nor, by the check of Host, a name for us. One request at a time: a browser on the same machine is served
 * in milliseconds, and a request that takes longer than two seconds is dropped.
 */
#include "view.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/interrupt.h"

#define REQUEST_MAX 8192u
#define PATIENCE_MS 2000

struct server {
	const struct frag_view *view;
	const char *html;
	char token[33], host[2][32];
};

static bool send_all(int to, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count) {
		ssize_t n = send(to, at, count, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += n;
		count -= (size_t)n;
	}
	return true;
}

static void answer(int to, const char *status, const char *type, const void *bytes, size_t count)
{
	char head[512];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			 "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
			 "Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
			 "Connection: close\r\n\r\n",
			 status, type, count);

	if (send_all(to, head, (size_t)n))
		send_all(to, bytes, count);
}

static void refuse(int to, const char *status)
{
	answer(to, status, "text/plain", status, strlen(status));
}

/* The request up to the empty line. False: too long, too slow, or gone. */
static bool receive(int from, char *request)
{
	uint64_t begin = frag_clock_ns(), waited_ms;
	size_t count = 0;

	while (count < REQUEST_MAX - 1) {
		struct pollfd wait = { .fd = from, .events = POLLIN };
		ssize_t n;

		waited_ms = (frag_clock_ns() - begin) / 1000000;
		if (waited_ms >= PATIENCE_MS || poll(&wait, 1, PATIENCE_MS - (int)waited_ms) <= 0)
			return false;
		n = recv(from, request + count, REQUEST_MAX - 1 - count, 0);
		if (n <= 0)
			return false;
		count += (size_t)n;
		request[count] = '\0';
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

static bool is_for_us(const struct server *s, const char *request)
{
	const char *host = strcasestr(request, "\r\nhost:");
	size_t n;

	if (!host)
		return false;
	host += strlen("\r\nhost:");
	host += strspn(host, " ");
	n = strcspn(host, "\r\n ");
	for (unsigned i = 0; i < 2; i++)
		if (strlen(s->host[i]) == n && !strncmp(host, s->host[i], n))
			return true;
	return false;
}

static void send_blob(const struct server *s, int to, const char *number)
{
	char *end;
	unsigned long long i = strtoull(number, &end, 10);
	FRAG_AUTO_FREE uint8_t *bytes = NULL;
	const struct frag_blob *b;

	if (end == number || *end != ' ' || i >= s->view->store.count) {
		refuse(to, "404 Not Found");
		return;
	}
	b = &s->view->store.blobs[i];
	if (frag_blob_store_read(&s->view->store, i, &bytes, NULL))
		refuse(to, "500 Internal Server Error");
	else
		answer(to, "200 OK",
		       b->bytes < b->plain ? "application/zlib" : "application/octet-stream", bytes,
		       b->bytes);
}

static void serve(const struct server *s, int to)
{
	char request[REQUEST_MAX];
	const char *at = request + strlen("GET /");

	if (!receive(to, request))
		return;
	if (strncmp(request, "GET /", strlen("GET /")) != 0)
		refuse(to, "405 Method Not Allowed");
	else if (!is_for_us(s, request) || strncmp(at, s->token, sizeof(s->token) - 1) != 0)
		refuse(to, "403 Forbidden");
	else if (!strncmp(at + sizeof(s->token) - 1, "/ ", 2))
		answer(to, "200 OK", "text/html; charset=utf-8", s->html, strlen(s->html));
	else if (!strncmp(at + sizeof(s->token) - 1, "/b/", 3))
		send_blob(s, to, at + sizeof(s->token) - 1 + 3);
	else
		refuse(to, "404 Not Found");
}

static int listen_on(struct server *s, unsigned *port, int *out, struct frag_err *err)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)*port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	uint8_t random[16];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return frag_fail(err, FRAG_EOUTPUT, "no random numbers: %s", strerror(errno));
	for (unsigned i = 0; i < sizeof(random); i++)
		snprintf(s->token + 2 * i, 3, "%02x", random[i]);
	*out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*out < 0 || bind(*out, (struct sockaddr *)&address, size) || listen(*out, 16) ||
	    getsockname(*out, (struct sockaddr *)&address, &size)) {
		int rc = frag_fail(err, FRAG_EOUTPUT, "cannot listen on 127.0.0.1:%u: %s", *port,
				   strerror(errno));

		if (*out >= 0)
			close(*out);
		return rc;
	}
	*port = ntohs(address.sin_port);
	snprintf(s->host[0], sizeof(s->host[0]), "127.0.0.1:%u", *port);
	snprintf(s->host[1], sizeof(s->host[1]), "localhost:%u", *port);
	return 0;
}

int frag_view_serve(const struct frag_view *v, const char *html, unsigned port,
		    void (*tell)(void *ctx, const char *address), void *ctx, struct frag_err *err)
{
	struct server s = { .view = v, .html = html };
	const struct timeval patience = { PATIENCE_MS / 1000, 0 };
	char address[128];
	int listener = -1;

	FRAG_TRY(listen_on(&s, &port, &listener, err));
	snprintf(address, sizeof(address), "http://%s/%s/", s.host[0], s.token);
	frag_interrupt_catch();
	tell(ctx, address);
	while (!frag_interrupted()) {
		struct pollfd wait = { .fd = listener, .events = POLLIN };
		int to = poll(&wait, 1, 200) > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;

		if (to < 0)
			continue;
		setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		serve(&s, to);
		close(to);
	}
	close(listener);
	return 0;
}
