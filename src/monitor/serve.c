/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor --listen: the latest look for Prometheus, by libmicrohttpd, which is opened when it is asked for: it
 * brings a dozen libraries along. A thread of its own answers with the text of the last look.
 *
 * Nobody keeps others out: a request has 10 seconds, however slowly its bytes come, and where many connections are open
 * the one that has waited longest makes room. On an address of this machine alone, a page that a browser shows may not
 * ask (its own name made to resolve to us): the Host of a request must be one of ours.
 */
#include "monitor.h"

#if __has_include(<microhttpd.h>)

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/library.h"

#define CLIENTS 64u
#define CLIENTS_ROOM 16u /* connections that are always free for newcomers */
#define REQUEST_S 10u

#define FUNCTIONS(X) \
	X(MHD_start_daemon) \
	X(MHD_stop_daemon) \
	X(MHD_get_daemon_info) \
	X(MHD_get_connection_info) \
	X(MHD_lookup_connection_value) \
	X(MHD_create_response_from_buffer) \
	X(MHD_add_response_header) \
	X(MHD_queue_response) \
	X(MHD_destroy_response)

struct connection {
	int fd;
	uint64_t since_ns; /* 0: none */
};

struct frag_monitor_server {
	pthread_mutex_t lock;
	struct connection open[CLIENTS];
	bool loopback;
	char *text; /* of the last look, malloc; NULL: none so far */
	size_t bytes;
	struct MHD_Daemon *daemon;
	struct {
		FUNCTIONS(FRAG_SYMBOL_MEMBER)
	} lib;
};

static bool load(struct frag_monitor_server *s)
{
	static const char *const files[] = { "libmicrohttpd.so.12", NULL };
	static const struct frag_symbol symbols[] = {
#define X(name) FRAG_SYMBOL(struct frag_monitor_server, lib.name, #name),
		FUNCTIONS(X)
#undef X
	};
	void *library = frag_library_open(files);

	return library && !FRAG_SYMBOLS_FIND(library, symbols, s);
}

/* ---- who may ask, and for how long ---- */

/* The server's thread sees the end of what is shut down here, and closes it. pre: locked */
static void shut_slow(const struct frag_monitor_server *s)
{
	const struct connection *oldest = NULL;
	uint64_t now = frag_clock_ns();
	unsigned count = 0;

	for (const struct connection *c = s->open; c < s->open + CLIENTS; c++) {
		if (!c->since_ns)
			continue;
		count++;
		oldest = oldest && oldest->since_ns < c->since_ns ? oldest : c;
		if (now > c->since_ns + REQUEST_S * 1000000000ull)
			shutdown(c->fd, SHUT_RDWR);
	}
	if (count > CLIENTS - CLIENTS_ROOM)
		shutdown(oldest->fd, SHUT_RDWR);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **mine,
			  enum MHD_ConnectionNotificationCode code)
{
	struct frag_monitor_server *s = ctx;
	const union MHD_ConnectionInfo *info =
		s->lib.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *c = code == MHD_CONNECTION_NOTIFY_STARTED ? s->open : *mine;

	pthread_mutex_lock(&s->lock);
	while (code == MHD_CONNECTION_NOTIFY_STARTED && c < s->open + CLIENTS - 1 && c->since_ns)
		c++;
	*mine = c;
	if (c && info)
		*c = (struct connection){ info->connect_fd, code == MHD_CONNECTION_NOTIFY_STARTED
								    ? frag_clock_ns()
								    : 0 };
	shut_slow(s);
	pthread_mutex_unlock(&s->lock);
}

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

/* ---- answers ---- */

/* A copy of the text, with OpenMetrics' end mark for those who want that. NULL: short of memory. */
static char *copy_text(struct frag_monitor_server *s, bool open_metrics, size_t *bytes)
{
	static const char end[] = "# EOF\n";
	char *copy;

	pthread_mutex_lock(&s->lock);
	*bytes = s->bytes + (open_metrics ? sizeof(end) - 1 : 0);
	copy = malloc(*bytes + 1);
	if (copy && s->bytes)
		memcpy(copy, s->text, s->bytes);
	if (copy && open_metrics)
		memcpy(copy + s->bytes, end, sizeof(end) - 1);
	pthread_mutex_unlock(&s->lock);
	return copy;
}

static enum MHD_Result queue(struct frag_monitor_server *s, struct MHD_Connection *to,
			     unsigned status, const char *type, char *text, size_t bytes)
{
	struct MHD_Response *response =
		s->lib.MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result rc;

	if (!response) {
		free(text);
		return MHD_NO;
	}
	s->lib.MHD_add_response_header(response, "Content-Type", type);
	s->lib.MHD_add_response_header(response, "Connection", "close"); /* one request each */
	rc = s->lib.MHD_queue_response(to, status, response);
	s->lib.MHD_destroy_response(response);
	return rc;
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *to, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	struct frag_monitor_server *s = ctx;
	const char *accept = s->lib.MHD_lookup_connection_value(to, MHD_HEADER_KIND, "Accept");
	bool open_metrics = accept && strstr(accept, "application/openmetrics-text");
	bool get = !strcmp(method, "GET") || !strcmp(method, "HEAD");
	const char *host = s->lib.MHD_lookup_connection_value(to, MHD_HEADER_KIND, "Host");
	size_t bytes;
	char *text;

	(void)version, (void)upload, (void)state;
	if (*upload_bytes) { /* nobody wants it */
		*upload_bytes = 0;
		return MHD_YES;
	}
	if (s->loopback && host && !is_own_name(host)) {
		text = strdup("Host is not a name of this machine\n");
		return text ? queue(s, to, 403, "text/plain", text, strlen(text)) : MHD_NO;
	}
	if (!get || strcmp(url, "/metrics") != 0) {
		text = strdup(get ? "it is at /metrics\n" : "only GET\n");
		return text ? queue(s, to, get ? 404 : 405, "text/plain", text, strlen(text))
			    : MHD_NO;
	}
	text = copy_text(s, open_metrics, &bytes);
	return text ? queue(s, to, 200,
			    open_metrics ? "application/openmetrics-text; version=1.0.0; "
					   "charset=utf-8"
					 : "text/plain; version=0.0.4; charset=utf-8",
			    text, bytes)
		    : MHD_NO;
}

/* "9400", ":9400" and "localhost:9400": on this machine only; "0.0.0.0:9400", "[::]:9400": anywhere. */
static int read_address(const char *where, struct sockaddr_in *v4, struct sockaddr_in6 *v6,
			struct frag_err *err)
{
	const char *colon = strrchr(where, ':'), *digits = colon ? colon + 1 : where;
	char host[64] = "", *end;
	unsigned long port = strtoul(digits, &end, 10);
	size_t n = colon ? (size_t)(colon - where) : 0;

	if (n < sizeof(host))
		memcpy(host, where, n);
	if (!n || !strcmp(host, "localhost"))
		strcpy(host, "127.0.0.1");
	*v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	*v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	if (*digits >= '0' && *digits <= '9' && !*end && port <= 65535 && n < sizeof(host)) {
		if (inet_pton(AF_INET, host, &v4->sin_addr) == 1)
			return AF_INET;
		if (host[0] == '[' && host[n - 1] == ']') {
			host[n - 1] = '\0';
			if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1)
				return AF_INET6;
		}
	}
	return frag_fail(err, FRAG_EUSAGE,
			 "--listen takes ADDRESS:PORT or a port, such as 127.0.0.1:9400, "
			 "[::1]:9400 or "
			 "9400, not '%.60s'",
			 where);
}

static int start(struct frag_monitor_server *s, const char *where, struct frag_err *err)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	int family = read_address(where, &v4, &v6, err);
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD;

	if (family < 0)
		return family;
	if (!load(s))
		return frag_fail(err, FRAG_EUSAGE,
				 "--listen needs libmicrohttpd (Debian: libmicrohttpd12)");
	s->loopback = family == AF_INET ? ntohl(v4.sin_addr.s_addr) >> 24 == 127
					: IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
	errno = 0;
	s->daemon = s->lib.MHD_start_daemon(
		flags | (family == AF_INET6 ? MHD_USE_IPv6 : 0), 0, NULL, NULL, answer, s,
		MHD_OPTION_SOCK_ADDR, family == AF_INET6 ? (const void *)&v6 : (const void *)&v4,
		MHD_OPTION_CONNECTION_LIMIT, CLIENTS, MHD_OPTION_CONNECTION_TIMEOUT, REQUEST_S,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)16384, MHD_OPTION_END);
	if (!s->daemon)
		return frag_fail(err, FRAG_EOUTPUT, "cannot listen on '%.60s': %s", where,
				 errno ? strerror(errno) : "no reason given");
	return 0;
}

int frag_monitor_server_open(const char *where, struct frag_monitor_server **out,
			     struct frag_err *err)
{
	struct frag_monitor_server *s;
	int rc;

	FRAG_TRY_CALLOC(s, 1, "server", err);
	pthread_mutex_init(&s->lock, NULL);
	rc = start(s, where, err);
	if (rc)
		frag_monitor_server_close(s);
	else
		*out = s;
	return rc;
}

void frag_monitor_server_close(struct frag_monitor_server *s)
{
	if (!s)
		return;
	if (s->daemon)
		s->lib.MHD_stop_daemon(s->daemon);
	pthread_mutex_destroy(&s->lock);
	free(s->text);
	frag_host_free(s);
}

void frag_monitor_server_take(struct frag_monitor_server *s, const struct frag_monitor_round *r)
{
	char *text = NULL, *old;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return;
	frag_monitor_put_metrics(to, r);
	if (fclose(to)) {
		free(text);
		return;
	}
	pthread_mutex_lock(&s->lock);
	old = s->text;
	s->text = text;
	s->bytes = bytes;
	shut_slow(s);
	pthread_mutex_unlock(&s->lock);
	free(old);
}

unsigned frag_monitor_server_port(const struct frag_monitor_server *s)
{
	const union MHD_DaemonInfo *info =
		s->lib.MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);

	return info ? info->port : 0;
}

#else /* built without libmicrohttpd-dev */

int frag_monitor_server_open(const char *where, struct frag_monitor_server **out,
			     struct frag_err *err)
{
	(void)where, (void)out;
	return frag_fail(err, FRAG_EUSAGE,
			 "--listen is not in this program: it was built without libmicrohttpd-dev");
}

void frag_monitor_server_close(struct frag_monitor_server *s)
{
	(void)s;
}

void frag_monitor_server_take(struct frag_monitor_server *s, const struct frag_monitor_round *r)
{
	(void)s, (void)r;
}

unsigned frag_monitor_server_port(const struct frag_monitor_server *s)
{
	(void)s;
	return 0;
}

#endif
