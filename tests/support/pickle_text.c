/* SPDX-License-Identifier: Apache-2.0 */
#include "pickle_text.h"

#include "test.h"

#include "trace/torch/torch_parts.h"
#include "cases.h"

#define WORD 300

/* ---- in the words of the dialect ---------------------------------------------------------- */

void pb_release(struct pickle_bytes *p)
{
	free(p->bytes);
	*p = (struct pickle_bytes){ .dialect = p->dialect };
}

void pb_raw(struct pickle_bytes *p, const void *bytes, size_t n)
{
	if (p->len + n > p->cap) {
		p->cap = 2 * (p->len + n) + 64;
		p->bytes = realloc(p->bytes, p->cap);
		if (!p->bytes)
			abort();
	}
	memcpy(p->bytes + p->len, bytes, n);
	p->len += n;
}

void pb_op(struct pickle_bytes *p, int op)
{
	unsigned char b = (unsigned char)op;

	pb_raw(p, &b, 1);
}

void pb_le(struct pickle_bytes *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		pb_op(p, (int)(v >> 8 * i & 0xff));
}

void pb_begin(struct pickle_bytes *p)
{
	pb_op(p, 0x80);
	pb_op(p, p->dialect == PICKLE_PYTHON ? 4 : 2);
	if (p->dialect != PICKLE_PYTHON)
		return;
	pb_op(p, 0x95);
	pb_le(p, 12345, 8);
}

static void pb_remember(struct pickle_bytes *p)
{
	if (p->dialect == PICKLE_PYTHON) {
		pb_op(p, 0x94);
	} else if (p->memo < 256) {
		pb_op(p, 'q');
		pb_le(p, p->memo, 1);
	} else {
		pb_op(p, 'r');
		pb_le(p, p->memo, 4);
	}
	p->memo++;
}

void pb_text(struct pickle_bytes *p, const char *text)
{
	size_t n = strlen(text);

	if (p->dialect == PICKLE_PYTHON && n < 256) {
		pb_op(p, 0x8c);
		pb_le(p, n, 1);
	} else {
		pb_op(p, 'X');
		pb_le(p, n, 4);
	}
	pb_raw(p, text, n);
	pb_remember(p);
}

static void pb_int(struct pickle_bytes *p, int64_t v)
{
	int n = 8;

	if (v >= 0 && v < 256) {
		pb_op(p, 'K');
		pb_le(p, (uint64_t)v, 1);
	} else if (v >= 0 && v < 65536) {
		pb_op(p, 'M');
		pb_le(p, (uint64_t)v, 2);
	} else if (v >= INT32_MIN && v <= INT32_MAX) {
		pb_op(p, 'J');
		pb_le(p, (uint64_t)v, 4);
	} else {
		while (p->dialect != PICKLE_LIBTORCH && n > 1 &&
		       v >> (8 * (n - 1) - 1) == (v < 0 ? -1 : 0))
			n--;
		pb_op(p, 0x8a);
		pb_le(p, (uint64_t)n, 1);
		pb_le(p, (uint64_t)v, n);
	}
}

static void pb_float(struct pickle_bytes *p, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, 8);
	pb_op(p, 'G');
	for (int i = 7; i >= 0; i--)
		pb_op(p, (int)(bits >> 8 * i & 0xff));
}

/* EMPTY_LIST or EMPTY_DICT, and MARK. libtorch remembers only what it needs again. */
static void pb_open(struct pickle_bytes *p, int op, bool named)
{
	pb_op(p, op);
	if (named || p->dialect != PICKLE_LIBTORCH)
		pb_remember(p);
	pb_op(p, '(');
}

/* ---- as text ------------------------------------------------------------------------------- */
/* Dicts as PyTorch 2.11 writes them; $1 and so on are the words behind the name. A segment is left
 * open in its list of blocks: close it with "] }". */
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
	FRAG_AUTO(free_at) char *bytes = cases_unescape(text, &n);

	pb_raw(b, bytes, n);
}

static void put_text(struct pickle_bytes *b, const char *text)
{
	size_t n;
	FRAG_AUTO(free_at) char *bytes = cases_unescape(text, &n);

	pb_text(b, bytes);
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
		pb_op(b, *word == 't' ? 0x88 : 0x89);
	else if (!strcmp(word, "none"))
		pb_op(b, 'N');
	else if (cases_number(word, names, FRAG_ARRAY_LEN(names), &number))
		pb_int(b, (int64_t)number);
	else if (*word >= '0' && *word <= '9')
		pb_float(b, atof(word));
	else
		put_text(b, word);
}

static uint32_t *known(struct pickle_bytes *b, const char *name)
{
	for (unsigned i = 0; i < b->known_count; i++)
		if (!strcmp(b->known[i].name, name))
			return &b->known[i].memo;
	return NULL;
}

/* The next object that is remembered has this name. */
static void know(struct pickle_bytes *b, const char *name)
{
	uint32_t *memo = known(b, name);

	if (!memo) {
		FRAG_ASSERT(b->known_count < PICKLE_KNOWN && strlen(name) < PICKLE_NAME);
		strcpy(b->known[b->known_count].name, name);
		memo = &b->known[b->known_count++].memo;
	}
	*memo = b->memo;
}

static void fetch(struct pickle_bytes *b, const char *name)
{
	const uint32_t *memo = known(b, name);

	FRAG_ASSERT(memo);
	pb_op(b, *memo < 256 ? 'h' : 'j');
	pb_le(b, *memo, *memo < 256 ? 1 : 4);
}

static void put_known(struct pickle_bytes *b, const char *name)
{
	if (known(b, name)) {
		fetch(b, name);
		return;
	}
	know(b, name);
	pb_text(b, name);
}

void pickle_text(struct pickle_bytes *b, const char *text)
{
	char word[WORD];
	bool named = false;

	for (; next_token(&text, word); named = *word == '&') {
		if (*word == '{')
			pb_open(b, '}', named);
		else if (*word == '}')
			pb_op(b, 'u'); /* SETITEMS */
		else if (*word == '[')
			pb_open(b, ']', named);
		else if (*word == ']')
			pb_op(b, 'e'); /* APPENDS */
		else if (*word == '(')
			put_tuple(b, &text);
		else if (*word == '&')
			know(b, word + 1);
		else if (*word == '*')
			fetch(b, word + 1);
		else if (*word == '$')
			put_known(b, word + 1);
		else if (*word == '!')
			put_raw(b, word + 1);
		else if (*word == '@')
			put_dict(b, &text, word);
		else
			put_value(b, word);
	}
}

void pickle_textf(struct pickle_bytes *b, const char *fmt, ...)
{
	char text[500];
	va_list args;

	va_start(args, fmt);
	FRAG_ASSERT(vsnprintf(text, sizeof(text), fmt, args) < (int)sizeof(text));
	va_end(args);
	pickle_text(b, text);
}

struct pickle_bytes pickle_of(enum pickle_dialect dialect, const char *text)
{
	struct pickle_bytes b = { .dialect = dialect };

	pb_begin(&b);
	pickle_text(&b, text);
	pb_op(&b, '.');
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

	SUCCEEDS(snapshot_read(b->bytes, b->len, NULL, &t, &test_err));
	return t;
}
