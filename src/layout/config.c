/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See config.h. Only the bytes of the value change: comments, order and what is not understood stay. A key that is missing is
 * added. Of YAML, mappings by indentation are read, as programs write their own configuration.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/base.h>

/* What replaces `cut` bytes at `at`: before, a value, after. */
struct edit {
	const char *at;
	size_t cut;
	char before[1200], after[200];
};

static int put(const char *text, const struct edit *e, const char *value, char **out,
	       struct frag_err *err)
{
	size_t size = strlen(text) + strlen(value) + sizeof(e->before) + sizeof(e->after) + 1;

	*out = frag_host_alloc(size);
	FRAG_CHECK_ALLOC(*out, "file", err);
	snprintf(*out, size, "%.*s%s%s%s%s", (int)(e->at - text), text, e->before, value, e->after,
		 e->at + e->cut);
	return 0;
}

/* ---- JSON ------------------------------------------------------------------------------ */

static const char *blanks(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Behind a text, which begins here. */
static const char *text_end(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		at += *at == '\\' && at[1];
	return at + (*at == '"');
}

static const char *value_end(const char *at)
{
	size_t depth = 0;

	do {
		if (*at == '"') {
			at = text_end(at);
			continue;
		}
		if (!*at || (!depth && strchr(",}]", *at)))
			return at;
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at++;
	} while (depth || !strchr(",}] \t\r\n", *at));
	return at;
}

/* The value of a member of the object that begins here; NULL: it has none. */
static const char *member(const char *at, const char *key, size_t len)
{
	while (*at == '{' || *at == ',') {
		const char *name = blanks(at + 1), *end = *name == '"' ? text_end(name) : name;

		at = blanks(end);
		if (*at != ':')
			return NULL;
		at = blanks(at + 1);
		if ((size_t)(end - name) == len + 2 && !memcmp(name + 1, key, len))
			return at;
		at = blanks(value_end(at));
	}
	return NULL;
}

static int find_json(const char *text, const char *key, struct edit *e, struct frag_err *err)
{
	const char *at = blanks(text);

	for (;;) {
		size_t len = strcspn(key, ".");
		const char *value;

		if (*at != '{')
			return frag_fail(err, FRAG_EINPUT, "no object holds '%.80s'", key);
		value = member(at, key, len);
		if (value && !key[len]) {
			e->at = value;
			e->cut = (size_t)(value_end(value) - value);
			return 0;
		}
		if (!value)
			break;
		key += len + 1;
		at = value;
	}
	e->at = at + 1;
	for (;; key++) { /* "a": {"b": VALUE}, */
		size_t len = strcspn(key, "."), n = strlen(e->before), m = strlen(e->after);

		snprintf(e->before + n, sizeof(e->before) - n, "\"%.*s\": %s",
			 (int)FRAG_MIN(len, 100u), key, key[len] ? "{" : "");
		if (key[len])
			snprintf(e->after + m, sizeof(e->after) - m, "}");
		key += len;
		if (!*key)
			break;
	}
	if (*blanks(e->at) != '}')
		snprintf(e->after + strlen(e->after), 3, ", ");
	return 0;
}

/* As it is where JSON has such a value, else a text. */
static void json_value(const char *value, char *buf, size_t cap)
{
	char *end;
	bool bare = !strcmp(value, "true") || !strcmp(value, "false") || !strcmp(value, "null");

	(void)strtod(value, &end);
	bare |= (isdigit((unsigned char)*value) || *value == '-') && !*end;
	snprintf(buf, cap, bare ? "%.200s" : "\"%.200s\"", value);
}

/* ---- YAML ------------------------------------------------------------------------------ */

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

static size_t indent_of(const char *line)
{
	size_t n = strspn(line, " ");

	return strchr("#\r\n", line[n]) || !strncmp(line, "---", 3) ? SIZE_MAX
								    : n; /* nothing there */
}

/* The line of a key among those of one indentation, the first of which begins here; *end: behind the last. NULL: not found. */
static const char *find_line(const char *at, size_t indent, const char *key, size_t len,
			     const char **end)
{
	const char *found = NULL;

	for (; *at && (indent_of(at) >= indent); at = next_line(at))
		if (indent_of(at) == indent && !strncmp(at + indent, key, len) &&
		    at[indent + len] == ':')
			found = at;
	*end = at;
	return found;
}

static int find_yaml(const char *text, const char *key, struct edit *e, struct frag_err *err)
{
	size_t indent = 0;
	const char *at = text, *line, *end;

	for (;;) {
		size_t len = strcspn(key, "."), rest;
		const char *value, *below;

		line = find_line(at, indent, key, len, &end);
		if (!line)
			break;
		value = line + indent + len + 1;
		value += strspn(value, " ");
		rest = strcspn(value, "\r\n");
		for (below = next_line(line); *below && indent_of(below) == SIZE_MAX;)
			below = next_line(below);
		if (!key[len] == (*below && indent_of(below) > indent) ||
		    (key[len] && rest && *value != '#'))
			return frag_fail(err, FRAG_EINPUT, "'%.80s' is not a single value", key);
		if (!key[len]) {
			e->at = line + indent + len + 1;
			e->cut = (size_t)(value + rest - e->at);
			snprintf(e->before, sizeof(e->before), " ");
			return 0;
		}
		key += len + 1;
		at = below;
		indent = indent_of(below);
	}
	e->at = end;
	snprintf(e->before, sizeof(e->before), "%s", end > text && end[-1] != '\n' ? "\n" : "");
	for (;; indent += 2) {
		size_t len = strcspn(key, "."), n = strlen(e->before);

		snprintf(e->before + n, sizeof(e->before) - n, "%*s%.*s:%s", (int)indent, "",
			 (int)FRAG_MIN(len, 100u), key, key[len] ? "\n" : " ");
		key += len + 1;
		if (!key[-1])
			break;
	}
	snprintf(e->after, sizeof(e->after), "\n");
	return 0;
}

/* ---- files ----------------------------------------------------------------------------- */

bool frag_config_known(const char *path, bool *yaml)
{
	const char *dot = strrchr(path, '.');

	*yaml = dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
	return *yaml || (dot && !strcmp(dot, ".json"));
}

int frag_config_set(const char *text, bool yaml, const char *key, const char *value, char **out,
		    struct frag_err *err)
{
	struct edit e = { 0 };
	char json[204];

	if (strlen(key) > 300)
		return frag_fail(err, FRAG_EINPUT, "'%.40s…' is too long a key", key);
	FRAG_TRY(yaml ? find_yaml(text, key, &e, err) : find_json(text, key, &e, err));
	json_value(value, json, sizeof(json));
	return put(text, &e, yaml ? value : json, out, err);
}

int frag_config_add(char **settings, const char *text, struct frag_err *err)
{
	size_t n = 0;

	while (settings[n])
		n++;
	if (n == FRAG_CONFIG_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u values in files", FRAG_CONFIG_MAX);
	settings[n] = frag_host_strdup(text);
	FRAG_CHECK_ALLOC(settings[n], "command", err);
	return 0;
}
