/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server; see http.h. One thread polls all connections, which never block. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/clock.h>

#define CLIENTS 64u
#define CLIENTS_ROOM 16u /* connections that are always free for newcomers */
#define REQUEST_MAX 8192u
#define REQUEST_S 10u
#define ANSWER_S 60u
#define TOKEN_BYTES 14u /* its address fits a terminal of 60 columns */

struct client {
	int fd; /* -1: none */
	uint64_t since_ns, until_ns;
	char request[REQUEST_MAX];
	size_t count; /* of the request */
	char head[768];
	size_t head_bytes, sent; /* head_bytes 0: it is still asking */
	bool silent;		 /* it will send no more */
	struct frag_http_answer answer;
};

struct frag_http {
	struct frag_http_options o;
	char token[2 * TOKEN_BYTES + 1];
	int listener, stop[2];
	bool loopback, v6;
	unsigned port;
	pthread_t thread;
	bool running;
	struct client clients[CLIENTS];
};

/* ---- who may ask --------------------------------------------------------------------- */

/* An address, or a name that only this machine has. */
static bool is_own_name(const char *host)
{
	char name[256] = "", own[256] = "", *end;
	unsigned char address[16];

	snprintf(name, sizeof(name), "%s", host);
	if (*name == '[' && (end = strchr(name, ']'))) {
		*end = '\0';
		return inet_pton(AF_INET6, name + 1, address) == 1;
	}
	name[strcspn(name, ":")] = '\0';
	gethostname(own, sizeof(own) - 1);
	return inet_pton(AF_INET, name, address) == 1 || !strcasecmp(name, "localhost") ||
	       (*own && !strcasecmp(name, own));
}

/* The value of a header line, cut to the room; false: there is none. */
static bool find_header(const char *headers, const char *name, char *out, size_t room)
{
	size_t n = strlen(name), len;

	for (const char *line = headers, *end; line; line = end ? end + 2 : NULL) {
		end = strstr(line, "\r\n");
		if (strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		line += n + 1;
		line += strspn(line, " \t");
		len = FRAG_MIN(strcspn(line, "\r\n"), room - 1);
		memcpy(out, line, len);
		out[len] = '\0';
		return true;
	}
	return false;
}

bool frag_http_has(const struct frag_http_request *r, const char *name, const char *what)
{
	char value[512];

	return find_header(r->headers, name, value, sizeof(value)) && strstr(value, what);
}

/* Behind "/TOKEN", or NULL; takes as long for any wrong token. */
static const char *behind_token(const struct frag_http *s, const char *path)
{
	size_t n = strlen(s->token);
	unsigned differs = 0;

	if (!s->o.token)
		return path;
	if (strnlen(path, n + 2) < n + 2 || path[n + 1] != '/')
		return NULL;
	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(path[1 + i] ^ s->token[i]);
	return differs ? NULL : path + n + 1;
}

static const char *words_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *words;
	} list[] = { { 200, "OK" },
		     { 400, "Bad Request" },
		     { 403, "Forbidden" },
		     { 404, "Not Found" },
		     { 405, "Method Not Allowed" },
		     { 431, "Request Header Fields Too Large" } };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(list); i++)
		if (list[i].status == status)
			return list[i].words;
	return "Internal Server Error";
}

static void say(struct frag_http_answer *a, unsigned status, const char *text)
{
	*a = (struct frag_http_answer){
		.status = status, .type = "text/plain", .body = (void *)text, .bytes = strlen(text)
	};
}

/* Fills the answer to the request, which ends with an empty line. */
static void answer(const struct frag_http *s, struct client *c)
{
	struct frag_http_answer *a = &c->answer;
	char *line_end = strstr(c->request, "\r\n"), *path = strchr(c->request, ' '), *version;
	char host[256];
	bool named = find_header(line_end + 2, "host", host, sizeof(host));
	struct frag_http_request r = { .headers = line_end + 2 };

	*line_end = '\0';
	version = path ? strstr(path, " HTTP/1.") : NULL;
	if (!version || path[1] != '/') {
		say(a, 400, "malformed request\n");
		return;
	}
	*path++ = *version = '\0';
	path[strcspn(path, "?")] = '\0';
	if (s->loopback && (named ? !is_own_name(host) : s->o.token))
		say(a, 403, "Host is not a name of this machine\n");
	else if (strcmp(c->request, "GET") != 0 && strcmp(c->request, "HEAD") != 0)
		say(a, 405, "only GET\n");
	else if (!(r.path = behind_token(s, path)))
		say(a, 403, "open the address that cufrag printed: it has the token\n");
	else
		s->o.answer(s->o.ctx, &r, a);
	if (!a->body)
		say(a, a->status ? a->status : 500, words_of(a->status));
}

static void begin_answer(const struct frag_http *s, struct client *c)
{
	const struct frag_http_answer *a = &c->answer;
	int n;

	if (!strstr(c->request, "\r\n\r\n"))
		say(&c->answer, 431, "the request is too long\n");
	else
		answer(s, c);
	n = snprintf(c->head, sizeof(c->head),
		     "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		     "Connection: close\r\nX-Content-Type-Options: nosniff\r\n%s%s%s%s\r\n",
		     a->status, words_of(a->status), a->type, a->bytes,
		     s->o.token ? "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
				  "X-Frame-Options: DENY\r\n"
				: "",
		     a->policy ? "Content-Security-Policy: " : "", a->policy ? a->policy : "",
		     a->policy ? "; frame-ancestors 'none'\r\n" : "");
	c->head_bytes = FRAG_MIN((size_t)n, sizeof(c->head) - 1);
	if (!strcmp(c->request, "HEAD"))
		c->answer.bytes = 0;
	c->until_ns = frag_clock_ns() + ANSWER_S * 1000000000ull;
}

/* ---- connections --------------------------------------------------------------------- */

static void drop(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->answer.owned)
		frag_host_free(c->answer.body);
	c->fd = -1;
	c->silent = false;
	c->count = c->head_bytes = c->sent = 0;
	c->answer = (struct frag_http_answer){ 0 };
}

/* Drops clients that took too long and, if places are short, the oldest. Returns a free place. */
static struct client *make_room(struct frag_http *s)
{
	struct client *oldest = NULL, *room = NULL;
	uint64_t now = frag_clock_ns();
	unsigned count = 0;

	for (struct client *c = s->clients; c < s->clients + CLIENTS; c++) {
		if (c->fd >= 0 && now > c->until_ns)
			drop(c);
		if (c->fd < 0) {
			room = c;
			continue;
		}
		count++;
		oldest = oldest && oldest->since_ns < c->since_ns ? oldest : c;
	}
	if (count > CLIENTS - CLIENTS_ROOM) {
		drop(oldest);
		room = oldest;
	}
	return room;
}

static void take(struct frag_http *s)
{
	int fd;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct client *c = make_room(s);

		c->fd = fd;
		c->since_ns = frag_clock_ns();
		c->until_ns = c->since_ns + REQUEST_S * 1000000000ull;
	}
	if (errno != EAGAIN && errno != EINTR) /* no file is free: others may end theirs */
		poll(NULL, 0, 100);
}

/* False: it is gone. */
static bool read_some(const struct frag_http *s, struct client *c)
{
	char rest[4096];
	bool asked = c->head_bytes;
	ssize_t n = recv(c->fd, asked ? rest : c->request + c->count,
			 asked ? sizeof(rest) : REQUEST_MAX - 1 - c->count, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->silent = !n;
	if (!n)
		return asked && c->sent < c->head_bytes + c->answer.bytes;
	if (asked) /* discard a body: unread, it would reset the connection */
		return true;
	c->count += (size_t)n;
	c->request[c->count] = '\0';
	if (strstr(c->request, "\r\n\r\n") || c->count == REQUEST_MAX - 1)
		begin_answer(s, c);
	return true;
}

/* False: it is gone, or has everything. */
static bool write_some(struct client *c)
{
	while (c->sent < c->head_bytes + c->answer.bytes) {
		bool head = c->sent < c->head_bytes;
		const char *from = head ? c->head + c->sent
					: (const char *)c->answer.body + c->sent - c->head_bytes;
		ssize_t n = send(c->fd, from,
				 head ? c->head_bytes - c->sent
				      : c->head_bytes + c->answer.bytes - c->sent,
				 MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->sent += (size_t)n;
	}
	if (c->silent)
		return false;
	shutdown(c->fd, SHUT_WR); /* the other side closes; until then its bytes are read */
	c->until_ns = FRAG_MIN(c->until_ns, frag_clock_ns() + 1000000000ull);
	return true;
}

static void *serve(void *arg)
{
	struct frag_http *s = arg;
	struct pollfd wait[CLIENTS + 2];

	for (;;) {
		wait[0] = (struct pollfd){ .fd = s->stop[0], .events = POLLIN };
		wait[1] = (struct pollfd){ .fd = s->listener, .events = POLLIN };
		for (unsigned i = 0; i < CLIENTS; i++) {
			const struct client *c = &s->clients[i];
			bool more = c->sent < c->head_bytes + c->answer.bytes;

			wait[2 + i] = (struct pollfd){ .fd = c->fd,
						       .events = (c->silent ? 0 : POLLIN) |
								 (more ? POLLOUT : 0) };
		}
		if (poll(wait, CLIENTS + 2, 1000) < 0 && errno != EINTR)
			return NULL;
		if (wait[0].revents)
			return NULL;
		for (unsigned i = 0; i < CLIENTS; i++) {
			struct client *c = &s->clients[i];

			if (c->fd >= 0 && ((wait[2 + i].revents & (POLLIN | POLLHUP | POLLERR) &&
					    !read_some(s, c)) ||
					   (wait[2 + i].revents & POLLOUT && !write_some(c))))
				drop(c);
		}
		if (wait[1].revents)
			take(s);
		else
			make_room(s);
	}
}

/* ---- opening ------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* "9400", ":9400", "localhost:9400": this machine only; "0.0.0.0:9400", "[::]:9400": anywhere. */
static int read_address(const struct frag_http_options *o, union address *out, struct frag_err *err)
{
	const char *colon = strrchr(o->where, ':'), *digits = colon ? colon + 1 : o->where;
	char host[64] = "127.0.0.1", *end;
	unsigned long port = strtoul(digits, &end, 10);
	size_t n = colon ? (size_t)(colon - o->where) : 0;

	if (n && n < sizeof(host) && !(n == 9 && !strncmp(o->where, "localhost", n)))
		snprintf(host, n + 1, "%s", o->where);
	memset(out, 0, sizeof(*out));
	if (*digits >= '0' && *digits <= '9' && !*end && port <= 65535 && n < sizeof(host)) {
		n = strlen(host);
		if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1) {
			out->v4.sin_family = AF_INET;
			out->v4.sin_port = htons((uint16_t)port);
			return 0;
		}
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons((uint16_t)port);
		if (host[0] == '[' && host[n - 1] == ']') {
			host[n - 1] = '\0';
			if (inet_pton(AF_INET6, host + 1, &out->v6.sin6_addr) == 1)
				return 0;
		}
	}
	return frag_fail(err, FRAG_EUSAGE,
			 "%s takes ADDRESS:PORT or a port, such as 127.0.0.1:9400, [::1]:9400 or "
			 "9400, not '%.60s'",
			 o->name, o->where);
}

static int make_token(struct frag_http *s, struct frag_err *err)
{
	unsigned char bytes[TOKEN_BYTES];

	if (!s->loopback)
		return frag_fail(err, FRAG_EUSAGE,
				 "%s is for this machine only; from another one, forward the port: "
				 "ssh -L 9400:localhost:9400 HOST",
				 s->o.name);
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return frag_fail(err, FRAG_EOUTPUT, "%s: no random numbers for the token: %s",
				 s->o.name, strerror(errno));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int listen_on(struct frag_http *s, union address *a, struct frag_err *err)
{
	socklen_t size = s->v6 ? sizeof(a->v6) : sizeof(a->v4);
	int one = 1;

	s->listener = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener >= 0)
		setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (s->listener < 0 || bind(s->listener, &a->any, size) || listen(s->listener, 64) ||
	    getsockname(s->listener, &a->any, &size) || pipe2(s->stop, O_CLOEXEC))
		return frag_fail(err, FRAG_EOUTPUT, "cannot listen on '%.60s': %s", s->o.where,
				 strerror(errno));
	s->port = ntohs(s->v6 ? a->v6.sin6_port : a->v4.sin_port);
	return 0;
}

/* Signals are for the thread that waits for them. */
static int start(struct frag_http *s, struct frag_err *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->running = !rc;
	return rc ? frag_fail(err, FRAG_EOUTPUT, "%s: no thread: %s", s->o.name, strerror(rc)) : 0;
}

int frag_http_open(const struct frag_http_options *o, struct frag_http **out, struct frag_err *err)
{
	union address a;
	struct frag_http *s;
	int rc;

	FRAG_TRY(read_address(o, &a, err));
	FRAG_TRY_CALLOC(s, 1, "server", err);
	s->o = *o;
	s->listener = s->stop[0] = s->stop[1] = -1;
	s->v6 = a.any.sa_family == AF_INET6;
	s->loopback = s->v6 ? IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr)
			    : ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
	for (unsigned i = 0; i < CLIENTS; i++)
		s->clients[i].fd = -1;
	rc = (o->token ? make_token(s, err) : 0) ?: listen_on(s, &a, err) ?: start(s, err);
	if (rc)
		frag_http_close(s);
	else
		*out = s;
	return rc;
}

void frag_http_close(struct frag_http *s)
{
	if (!s)
		return;
	if (s->running) {
		close(s->stop[1]);
		s->stop[1] = -1;
		pthread_join(s->thread, NULL);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		drop(&s->clients[i]);
	for (unsigned i = 0; i < 2; i++)
		if (s->stop[i] >= 0)
			close(s->stop[i]);
	if (s->listener >= 0)
		close(s->listener);
	frag_host_free(s);
}

unsigned frag_http_port(const struct frag_http *s)
{
	return s->port;
}

void frag_http_url(const struct frag_http *s, char *buf, size_t cap)
{
	snprintf(buf, cap, "http://%s:%u/%s%s", s->v6 ? "[::1]" : "127.0.0.1", s->port, s->token,
		 s->o.token ? "/" : "");
}
