/* SPDX-License-Identifier: Apache-2.0 */
#include "pickle_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/torch/torch_parts.h"
#include "cases.h"

#define WORD 300

/* Dicts as PyTorch 2.11 writes them; $1 and so on are the words behind the name. A segment is left open in its
 * list of blocks: close it with "] }". */
static const struct {
	const char *name;
	unsigned words;
	const char *text;
} snapshot_dicts[] = {
	{ "@block", 4, "{ address $1 size $2 requested_size $3 state $4 frames [ ] }" },
	{ "@segment", 6,
	  "{ device $1 address $2 total_size $3 stream $5 segment_type $4 "
	  "segment_pool_id ( $6 0 ) is_expandable false blocks [" },
	{ "@entry", 5,
	  "{ action $1 addr $2 size $3 stream $4 time_us $5 compile_context \"N/A\" "
	  "user_metadata \"\" }" },
	{ "@oom", 4,
	  "{ action oom device_free $1 size $2 stream $3 time_us $4 compile_context \"N/A\" "
	  "user_metadata \"\" }" },
	{ "@annotation", 3, "{ name $1 stage $2 device 0 time_us $3 }" },
};

static const struct cases_name names[] = { { "S0", S0 }, { "S1", S1 }, { "T0", T0 } };

struct label {
	char name;
	uint32_t memo;
};

/* The next token of *at into word; false at the end. A string keeps its first quote. */
static bool next_token(const char **at, char *word)
{
	const char *from = *at + strspn(*at, " \t\n");
	size_t n = strcspn(from, " \t\n");

	if (!*from)
		return false;
	if (*from == '"') {
		for (n = 1; from[n] != '"'; n++)
			n += from[n] == '\\';
	}
	FRAG_ASSERT(n < WORD);
	memcpy(word, from, n);
	word[n] = 0;
	*at = from + n + (*from == '"');
	return true;
}

static void put_raw(struct pickle_bytes *b, const char *text)
{
	size_t n;
	char *bytes = cases_unescape(text, &n);

	pb_raw(b, bytes, n);
	free(bytes);
}

static void put_text(struct pickle_bytes *b, const char *text)
{
	size_t n;
	char *bytes = cases_unescape(text, &n);

	pb_text(b, bytes);
	free(bytes);
}

static void put_dict(struct pickle_bytes *b, const char **at, const char *name)
{
	char words[6][WORD], text[1000] = "";
	size_t i = 0, n = 0;

	while (i < FRAG_ARRAY_LEN(snapshot_dicts) && strcmp(snapshot_dicts[i].name, name))
		i++;
	FRAG_ASSERT(i < FRAG_ARRAY_LEN(snapshot_dicts));
	for (unsigned k = 0; k < snapshot_dicts[i].words; k++)
		FRAG_ASSERT(next_token(at, words[k]));
	for (const char *c = snapshot_dicts[i].text; *c; c++) {
		if (*c == '$') {
			const char *word = words[*++c - '1'];

			n += (size_t)sprintf(text + n, "%s%s", word, *word == '"' ? "\"" : "");
		} else {
			text[n++] = *c;
		}
	}
	pickle_text(b, text);
}

/* Plain values up to the ")". */
static void put_tuple(struct pickle_bytes *b, const char **at)
{
	char word[WORD];
	int n = 0;

	for (; next_token(at, word) && *word != ')'; n++)
		pickle_text(b, word);
	FRAG_ASSERT(n >= 1 && n <= 3);
	pb_op(b, 0x84 + n);
	pb_remember(b);
}

static void put_value(struct pickle_bytes *b, const char *word)
{
	uint64_t number;

	if (*word == '"')
		put_text(b, word + 1);
	else if (!strcmp(word, "true") || !strcmp(word, "false"))
		pb_bool(b, *word == 't');
	else if (!strcmp(word, "none"))
		pb_op(b, 'N');
	else if (cases_number(word, names, FRAG_ARRAY_LEN(names), &number))
		pb_int(b, (int64_t)number);
	else if (*word >= '0' && *word <= '9')
		pb_float(b, atof(word));
	else
		put_text(b, word);
}

static void fetch(struct pickle_bytes *b, const struct label *labels, char name)
{
	while (labels->name != name)
		labels++;
	pb_op(b, 'j');
	pb_le(b, labels->memo, 4);
}

void pickle_text(struct pickle_bytes *b, const char *text)
{
	struct label labels[16] = { 0 };
	unsigned labels_count = 0;
	char word[WORD];

	while (next_token(&text, word)) {
		if (*word == '{')
			pb_dict(b);
		else if (*word == '}')
			pb_close_dict(b);
		else if (*word == '[')
			pb_list(b);
		else if (*word == ']')
			pb_close_list(b);
		else if (*word == '(')
			put_tuple(b, &text);
		else if (*word == '&')
			labels[labels_count++] = (struct label){ word[1], b->memo };
		else if (*word == '*')
			fetch(b, labels, word[1]);
		else if (*word == '!')
			put_raw(b, word + 1);
		else if (*word == '@')
			put_dict(b, &text, word);
		else
			put_value(b, word);
	}
}

struct pickle_bytes pickle_of(enum pickle_dialect dialect, const char *text)
{
	struct pickle_bytes b = { .dialect = dialect };

	pb_begin(&b);
	pickle_text(&b, text);
	pb_end(&b);
	return b;
}

/* ---- reading ---------------------------------------------------------------------- */

int snapshot_read(const void *bytes, size_t n, const char *options, struct frag_trace **out,
		  struct frag_err *err)
{
	struct frag_input *in = NULL;
	int rc = frag_input_open_memory("snapshot", bytes, n, &in, err);

	*out = NULL;
	if (!rc)
		rc = frag_reader_torch.read(in, options, out, err);
	frag_input_close(in);
	assert_true(!rc == !!*out && (!rc || rc == err->code));
	return rc;
}

struct frag_trace *snapshot_read_good(const struct pickle_bytes *b)
{
	struct frag_trace *t;
	struct frag_err err = { 0 };

	if (snapshot_read(b->bytes, b->len, NULL, &t, &err))
		fail_msg("%s", err.msg);
	return t;
}
