/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server; see http.h. libmicrohttpd reads and writes; this file decides who is answered. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include <frag/base.h>
#include <frag/clock.h>

#define CLIENTS 64u
#define CLIENTS_ROOM 16u /* connections that are always free for newcomers */
#define REQUEST_MAX 8192u
#define REQUEST_NS 10000000000ull
#define ANSWER_NS 60000000000ull
#define TOKEN_BYTES 14u /* its address fits a terminal of 60 columns */

struct client {
	int fd;
	uint64_t until_ns; /* then it ends, complete or not */
};

struct frag_http {
	struct frag_http_options o;
	char token[2 * TOKEN_BYTES + 1];
	int listener;
	bool loopback, v6;
	unsigned port;
	struct MHD_Daemon *daemon;
	pthread_t thread;
	bool running, closing;
	struct client clients[CLIENTS]; /* oldest first, used by the thread alone */
	unsigned count;
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

bool frag_http_has(const struct frag_http_request *r, const char *name, const char *what)
{
	const char *value = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);

	return value && strstr(value, what);
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

static void say(struct frag_http_answer *a, unsigned status, const char *text)
{
	*a = (struct frag_http_answer){
		.status = status, .type = "text/plain", .body = (void *)text, .bytes = strlen(text)
	};
}

static void answer(const struct frag_http *s, struct frag_http_request *r, const char *method,
		   struct frag_http_answer *a)
{
	const char *path = r->path, *host;

	host = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Host");
	if (s->loopback && (host ? !is_own_name(host) : s->o.token))
		say(a, 403, "Host is not a name of this machine\n");
	else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		say(a, 405, "only GET\n");
	else if (*path != '/')
		say(a, 400, "malformed request\n");
	else if (!(r->path = behind_token(s, path)))
		say(a, 403, "open the address that cufrag printed: it has the token\n");
	else
		s->o.answer(s->o.ctx, r, a);
	if (!a->body)
		say(a, a->status ? a->status : 500,
		    MHD_get_reason_phrase_for(a->status ? a->status : 500));
}

static void add_headers(const struct frag_http *s, struct MHD_Response *to,
			const struct frag_http_answer *a)
{
	static const char *const always[][2] = { { "Connection", "close" },
						 { "X-Content-Type-Options", "nosniff" } };
	static const char *const secret[][2] = { { "Cache-Control", "no-store" },
						 { "Referrer-Policy", "no-referrer" },
						 { "X-Frame-Options", "DENY" } };
	char policy[512];

	MHD_add_response_header(to, "Content-Type", a->type);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(always); i++)
		MHD_add_response_header(to, always[i][0], always[i][1]);
	for (size_t i = 0; s->o.token && i < FRAG_ARRAY_LEN(secret); i++)
		MHD_add_response_header(to, secret[i][0], secret[i][1]);
	if (!a->policy)
		return;
	snprintf(policy, sizeof(policy), "%s; frame-ancestors 'none'", a->policy);
	MHD_add_response_header(to, "Content-Security-Policy", policy);
}

static int fd_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static struct client *find(struct frag_http *s, int fd)
{
	for (struct client *c = s->clients; c < s->clients + s->count; c++)
		if (c->fd == fd)
			return c;
	return NULL;
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **request)
{
	struct frag_http *s = ctx;
	struct client *client = find(s, fd_of(connection));
	struct frag_http_request r = { .path = url, .connection = connection };
	struct frag_http_answer a = { 0 };
	struct MHD_Response *response;
	enum MHD_Result ok;

	(void)version, (void)upload, (void)upload_bytes, (void)request;
	if (client)
		client->until_ns = frag_clock_ns() + ANSWER_NS;
	answer(s, &r, method, &a);
	response =
		a.owned ? MHD_create_response_from_buffer_with_free_callback(a.bytes, a.body,
									     frag_host_free)
			: MHD_create_response_from_buffer(a.bytes, a.body, MHD_RESPMEM_PERSISTENT);
	if (!response) {
		if (a.owned)
			frag_host_free(a.body);
		return MHD_NO;
	}
	add_headers(s, response, &a);
	ok = MHD_queue_response(connection, a.status, response);
	MHD_destroy_response(response);
	return ok;
}

/* ---- connections --------------------------------------------------------------------- */

static void forget(struct frag_http *s, struct client *c)
{
	memmove(c, c + 1, (size_t)(s->clients + --s->count - c) * sizeof(*c));
}

/* If places are short, the oldest connection ends. The library closes what was shut down. */
static void watch(void *ctx, struct MHD_Connection *connection, void **socket,
		  enum MHD_ConnectionNotificationCode what)
{
	struct frag_http *s = ctx;
	int fd = fd_of(connection);
	struct client *known = find(s, fd);

	(void)socket;
	if (known)
		forget(s, known);
	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		return;
	if (s->count == CLIENTS - CLIENTS_ROOM) {
		shutdown(s->clients[0].fd, SHUT_RDWR);
		forget(s, s->clients);
	}
	s->clients[s->count++] = (struct client){ fd, frag_clock_ns() + REQUEST_NS };
}

static void *serve(void *arg)
{
	struct frag_http *s = arg;

	while (!__atomic_load_n(&s->closing, __ATOMIC_ACQUIRE)) {
		MHD_run_wait(s->daemon, 200);
		for (struct client *c = s->clients; c < s->clients + s->count; c++)
			if (frag_clock_ns() > c->until_ns)
				shutdown(c->fd, SHUT_RDWR);
	}
	return NULL;
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
	return FRAG_USAGE(err,
			  "%s takes ADDRESS:PORT or a port, such as 127.0.0.1:9400, [::1]:9400 or "
			  "9400, not '%.60s'",
			  o->name, o->where);
}

static int make_token(struct frag_http *s, struct frag_err *err)
{
	unsigned char bytes[TOKEN_BYTES];

	if (!s->loopback)
		return FRAG_USAGE(err,
				  "%s is for this machine only; from another one, forward the "
				  "port: ssh -L 9400:localhost:9400 HOST",
				  s->o.name);
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return FRAG_OUTPUT(err, "%s: no random numbers for the token: %s", s->o.name,
				   strerror(errno));
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
	    getsockname(s->listener, &a->any, &size))
		return FRAG_OUTPUT(err, "cannot listen on '%.60s': %s", s->o.where,
				   strerror(errno));
	s->port = ntohs(s->v6 ? a->v6.sin6_port : a->v4.sin_port);
	return 0;
}

/* Signals are for the thread that waits for them. */
static int start(struct frag_http *s, struct frag_err *err)
{
	sigset_t all, before;
	int reason;

	s->daemon = MHD_start_daemon(MHD_USE_EPOLL | (s->v6 ? MHD_USE_IPv6 : 0), 0, NULL, NULL,
				     handle, s, MHD_OPTION_LISTEN_SOCKET, s->listener,
				     MHD_OPTION_CONNECTION_LIMIT, CLIENTS,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MAX,
				     MHD_OPTION_NOTIFY_CONNECTION, watch, s, MHD_OPTION_END);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	reason = s->daemon ? pthread_create(&s->thread, NULL, serve, s) : errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->running = !reason;
	return reason ? FRAG_OUTPUT(err, "%s: no server: %s", s->o.name, strerror(reason)) : 0;
}

int frag_http_open(const struct frag_http_options *o, struct frag_http **out, struct frag_err *err)
{
	union address a;
	struct frag_http *s;
	int rc;

	FRAG_TRY(read_address(o, &a, err));
	FRAG_TRY_CALLOC(s, 1, "server", err);
	s->o = *o;
	s->listener = -1;
	s->v6 = a.any.sa_family == AF_INET6;
	s->loopback = s->v6 ? IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr)
			    : ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
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
		__atomic_store_n(&s->closing, true, __ATOMIC_RELEASE);
		pthread_join(s->thread, NULL);
	}
	if (s->daemon)
		MHD_stop_daemon(s->daemon); /* with its listener */
	else if (s->listener >= 0)
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
