/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor --listen: the latest look for Prometheus, and --web: a page for people, by libmicrohttpd, which is opened
 * when it is asked for: it brings a dozen libraries along. A thread of its own answers with the text of the last look.
 *
 * Nobody keeps others out: a request has 10 seconds, however slowly its bytes come, and where many connections are open
 * the one that has waited longest makes room. On an address of this machine alone, a page that a browser shows may not
 * ask (its own name made to resolve to us): the Host of a request must be one of ours. The page tells command lines of processes, so it is for those who
 * know the token, which only its address has; it takes no order from anybody.
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
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/library.h"
#include "rows.h"

#define CLIENTS 64u
#define CLIENTS_ROOM 16u /* connections that are always free for newcomers */
#define REQUEST_S 10u
#define TOKEN_BYTES 11u /* its address fits a terminal of 60 columns */
#define COLUMNS 300u	/* of a curve on the page */

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
	bool loopback, v6;
	char token[2 * TOKEN_BYTES + 1]; /* of the page; "": this serves metrics */
	char *text;			 /* of the last look, malloc; NULL: none so far */
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
	if (*s->token) {
		s->lib.MHD_add_response_header(response, "Cache-Control", "no-store");
		s->lib.MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
		s->lib.MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
		s->lib.MHD_add_response_header(response, "Content-Security-Policy",
					       "default-src 'none'; script-src 'unsafe-inline'; "
					       "style-src 'unsafe-inline'; "
					       "connect-src 'self'; frame-ancestors 'none'; "
					       "base-uri 'none'; form-action "
					       "'none'");
	}
	rc = s->lib.MHD_queue_response(to, status, response);
	s->lib.MHD_destroy_response(response);
	return rc;
}

/* Takes as long for any wrong token. */
static bool knows_token(const struct frag_monitor_server *s, struct MHD_Connection *from)
{
	const char *given =
		s->lib.MHD_lookup_connection_value(from, MHD_GET_ARGUMENT_KIND, "token");
	unsigned differs = 0;

	if (!given || strlen(given) != sizeof(s->token) - 1)
		return false;
	for (size_t i = 0; i < sizeof(s->token) - 1; i++)
		differs |= (unsigned char)(given[i] ^ s->token[i]);
	return !differs;
}

static enum MHD_Result say(struct frag_monitor_server *s, struct MHD_Connection *to,
			   unsigned status, const char *what)
{
	char *text = strdup(what);

	return text ? queue(s, to, status, "text/plain", text, strlen(text)) : MHD_NO;
}

static enum MHD_Result answer_page(struct frag_monitor_server *s, struct MHD_Connection *to,
				   const char *url)
{
	static const char page[] =
#include "monitor_page.inc"
		;
	size_t bytes = sizeof(page) - 1;
	bool live = !strcmp(url, "/live.json");
	char *text;

	if (!knows_token(s, to))
		return say(s, to, 403, "open the address that cufrag printed: it has the token\n");
	if (!live && strcmp(url, "/") != 0)
		return say(s, to, 404, "it is at /\n");
	text = live ? copy_text(s, false, &bytes) : strdup(page);
	return text ? queue(s, to, 200, live ? "application/json" : "text/html; charset=utf-8",
			    text, bytes)
		    : MHD_NO;
}

static enum MHD_Result answer_metrics(struct frag_monitor_server *s, struct MHD_Connection *to,
				      const char *url)
{
	const char *accept = s->lib.MHD_lookup_connection_value(to, MHD_HEADER_KIND, "Accept");
	bool open_metrics = accept && strstr(accept, "application/openmetrics-text");
	size_t bytes;
	char *text;

	if (strcmp(url, "/metrics") != 0)
		return say(s, to, 404, "it is at /metrics\n");
	text = copy_text(s, open_metrics, &bytes);
	return text ? queue(s, to, 200,
			    open_metrics ? "application/openmetrics-text; version=1.0.0; "
					   "charset=utf-8"
					 : "text/plain; version=0.0.4; charset=utf-8",
			    text, bytes)
		    : MHD_NO;
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *to, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	struct frag_monitor_server *s = ctx;
	const char *host = s->lib.MHD_lookup_connection_value(to, MHD_HEADER_KIND, "Host");

	(void)version, (void)upload, (void)state;
	if (*upload_bytes) { /* nobody wants it */
		*upload_bytes = 0;
		return MHD_YES;
	}
	if (s->loopback && host && !is_own_name(host))
		return say(s, to, 403, "Host is not a name of this machine\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return say(s, to, 405, "only GET\n");
	return *s->token ? answer_page(s, to, url) : answer_metrics(s, to, url);
}

/* "9400", ":9400" and "localhost:9400": on this machine only; "0.0.0.0:9400", "[::]:9400": anywhere. */
static int read_address(const char *option, const char *where, struct sockaddr_in *v4,
			struct sockaddr_in6 *v6, struct frag_err *err)
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
			 "%s takes ADDRESS:PORT or a port, such as 127.0.0.1:9400, [::1]:9400 or "
			 "9400, not '%.60s'",
			 option, where);
}

static int make_token(struct frag_monitor_server *s, struct frag_err *err)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return frag_fail(err, FRAG_EUSAGE, "--web: no random numbers for the token: %s",
				 strerror(errno));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int start(struct frag_monitor_server *s, const char *where, bool page, struct frag_err *err)
{
	const char *option = page ? "--web" : "--listen";
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	int family = read_address(option, where, &v4, &v6, err);
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD;

	if (family < 0)
		return family;
	if (!load(s))
		return frag_fail(err, FRAG_EUSAGE,
				 "%s needs libmicrohttpd (Debian: libmicrohttpd12)", option);
	s->loopback = family == AF_INET ? ntohl(v4.sin_addr.s_addr) >> 24 == 127
					: IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
	s->v6 = family == AF_INET6;
	if (page && !s->loopback)
		return frag_fail(err, FRAG_EUSAGE,
				 "--web is for this machine only; from another one, forward the "
				 "port: ssh "
				 "-L 9400:localhost:9400 HOST");
	if (page)
		FRAG_TRY(make_token(s, err));
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

int frag_monitor_server_open(const char *where, bool page, struct frag_monitor_server **out,
			     struct frag_err *err)
{
	struct frag_monitor_server *s;
	int rc;

	FRAG_TRY_CALLOC(s, 1, "server", err);
	pthread_mutex_init(&s->lock, NULL);
	rc = start(s, where, page, err);
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

/* The look as `--json` has it, and the curves: of the last COLUMNS looks, and of all that are kept. */
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
	char *text = NULL, *old;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return;
	if (*s->token)
		put_live(to, m);
	else
		frag_monitor_put_metrics(to, &m->round);
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

void frag_monitor_server_url(const struct frag_monitor_server *s, char *buf, size_t cap)
{
	snprintf(buf, cap, "http://%s:%u/%s%s", s->v6 ? "[::1]" : "127.0.0.1",
		 frag_monitor_server_port(s), *s->token ? "?token=" : "metrics", s->token);
}

#else /* built without libmicrohttpd-dev */

int frag_monitor_server_open(const char *where, bool page, struct frag_monitor_server **out,
			     struct frag_err *err)
{
	(void)where, (void)page, (void)out;
	return frag_fail(err, FRAG_EUSAGE,
			 "--listen and --web are not in this program: it was built without "
			 "libmicrohttpd-dev");
}

void frag_monitor_server_close(struct frag_monitor_server *s)
{
	(void)s;
}

void frag_monitor_server_take(struct frag_monitor_server *s, const struct frag_monitor *m)
{
	(void)s, (void)m;
}

void frag_monitor_server_url(const struct frag_monitor_server *s, char *buf, size_t cap)
{
	(void)s, (void)buf, (void)cap;
}

unsigned frag_monitor_server_port(const struct frag_monitor_server *s)
{
	(void)s;
	return 0;
}

#endif
