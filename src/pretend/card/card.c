/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program can ask about the card: attributes and properties (card.def), versions, errors.
 *
 * CUFRAG_PRETEND describes it: name, total, context, libraries, count (or least), cc, sms, l2, bus,
 * clock, nvlink; missing keys have the values of an H200. Figures by compute capability: CUDA
 * Programming Guide 13.0, "Technical Specifications per Compute Capability".
 */
#include "card.h"
#include "protocol_list.inc"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/device.h>

struct limits {
	int cc; /* 10 * major + minor */
	int threads_per_sm, blocks_per_sm;
	uint64_t shared_per_sm_kib, shared_per_block_kib;
};

static const struct limits by_capability[] = {
	{ 70, 2048, 32, 96, 96 },    { 75, 1024, 16, 64, 64 },	 { 80, 2048, 32, 164, 163 },
	{ 86, 1536, 16, 100, 99 },   { 89, 1536, 24, 100, 99 },	 { 90, 2048, 32, 228, 227 },
	{ 100, 2048, 32, 228, 227 }, { 120, 1536, 24, 100, 99 },
};

static struct pretend_card card = {
	.name = "NVIDIA H200",
	.total_bytes = 150109880320ull,
	.context_bytes = 552402944ull,
	.libraries = true,
	.count = 1,
	.major = 9,
	.minor = 0,
	.sms = 132,
	.l2_bytes = 62914560,
	.bus_bits = 6144,
	.clock_khz = 1980000,
	.nvlink = true,
};
static pthread_once_t card_once = PTHREAD_ONCE_INIT;

/* The next number of CUDA_VISIBLE_DEVICES, or -1; *at moves past it. */
static int next_number(const char **at)
{
	unsigned number;
	int length = 0;

	*at += strspn(*at, " ,");
	if (sscanf(*at, "GPU-%*8x-0000-0000-0000-%12x%n", &number, &length) < 1 &&
	    sscanf(*at, "%u%n", &number, &length) < 1)
		return -1;
	*at += length;
	return number < PRETEND_CARDS_MAX ? (int)number : -1;
}

/* Number of cards if none was given: one for each process of the launcher, or the program's own
 * list (DeepSpeed's launcher). */
static int cards_used(void)
{
	const char *local = getenv("LOCAL_WORLD_SIZE"), *at = getenv("CUDA_VISIBLE_DEVICES");
	int number, used = local ? atoi(local) : 0;

	while (at && *at && (number = next_number(&at)) >= 0)
		used = FRAG_MAX(used, number + 1);
	return FRAG_MIN(used, PRETEND_CARDS_MAX);
}

#define KEY(key, member) \
	{ \
		key, offsetof(struct pretend_card, member), sizeof(card.member) \
	}
static const struct {
	const char *key;
	size_t at, bytes;
} keys[] = {
	KEY("total", total_bytes),
	KEY("context", context_bytes),
	KEY("libraries", libraries),
	KEY("count", count),
	KEY("sms", sms),
	KEY("l2", l2_bytes),
	KEY("bus", bus_bits),
	KEY("clock", clock_khz),
	KEY("nvlink", nvlink),
};

static void take(const char *key, const char *value)
{
	unsigned long long n = strtoull(value, NULL, 10);

	if (!strcmp(key, "name"))
		snprintf(card.name, sizeof(card.name), "%s", value);
	else if (!strcmp(key, "cc"))
		sscanf(value, "%d.%d", &card.major, &card.minor);
	else if (!strcmp(key, "least"))
		card.count = FRAG_MAX((int)FRAG_MIN(n, PRETEND_CARDS_MAX), cards_used());
	for (size_t i = 0; i < FRAG_ARRAY_LEN(keys); i++) /* little endian; bools are 0 or 1 */
		if (!strcmp(key, keys[i].key))
			memcpy((char *)&card + keys[i].at, &n, keys[i].bytes);
	card.count = FRAG_MIN(card.count, PRETEND_CARDS_MAX);
}

static void read_card(void)
{
	const char *env = getenv(CUFRAG_PRETEND), *values = getenv(CUFRAG_PRETEND_VALUES);
	char text[1024], *rest = text, *item;
	int cc;

	snprintf(text, sizeof(text), "%s", env ? env : "");
	while ((item = strsep(&rest, ";"))) {
		char *equals = strchr(item, '=');

		if (!equals)
			continue;
		*equals = '\0';
		take(item, equals + 1);
	}
	card.in_full = values && !strcmp(values, "computed");
	cc = 10 * card.major + card.minor;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(by_capability); i++) {
		const struct limits *l = &by_capability[i];

		if (i && l->cc > cc)
			break;
		card.threads_per_sm = l->threads_per_sm;
		card.blocks_per_sm = l->blocks_per_sm;
		card.shared_per_sm_bytes = l->shared_per_sm_kib * FRAG_KIB;
		card.shared_per_block_bytes = l->shared_per_block_kib * FRAG_KIB;
	}
}

const struct pretend_card *frag_pretend_card(void)
{
	pthread_once(&card_once, read_card);
	return &card;
}

/* ---- which of them the program sees ------------------------------------------------ */

static int numbers[PRETEND_CARDS_MAX], numbers_count;
static pthread_once_t numbers_once = PTHREAD_ONCE_INIT;

/* Like CUDA: stops at the first card that does not exist, and a duplicate empties the list. */
static void choose_visible(void)
{
	const char *at = getenv("CUDA_VISIBLE_DEVICES");
	bool used[PRETEND_CARDS_MAX] = { false };
	int number;

	frag_pretend_card();
	for (int i = 0; !at && i < card.count; i++)
		numbers[numbers_count++] = i;
	while (at && *at && (number = next_number(&at)) >= 0 && number < card.count) {
		if (used[number]) {
			numbers_count = 0;
			return;
		}
		used[number] = true;
		numbers[numbers_count++] = number;
	}
}

int frag_pretend_visible(void)
{
	pthread_once(&numbers_once, choose_visible);
	return numbers_count;
}

/* For a process that cufrag_fork_server.py forked: takes number and size of the cards from this
 * run's settings. pre: single-threaded, no card used. */
__attribute__((visibility("default"))) void frag_pretend_card_again(void);
void frag_pretend_card_again(void)
{
	frag_pretend_visible();
	numbers_count = 0;
	read_card();
	choose_visible();
}

int frag_pretend_number(int device)
{
	return device < frag_pretend_visible() ? numbers[device] : device;
}

/* ---- attributes ------------------------------------------------------------------- */

static int attribute(int which, int device)
{
	const struct pretend_card *c = frag_pretend_card();

	switch (which) {
#define CARD(number, at12, at13, bytes, value) \
	case number: \
		return value;
#include "card.def"
#undef CARD
	}
	return 0;
}

PRETEND_ENTRY(int, cudaDeviceGetAttribute, (int *value, int which, int device))
{
	if (device < 0 || device >= frag_pretend_visible())
		return frag_pretend_error(PRETEND_INVALID_DEVICE);
	*value = attribute(which, device);
	return PRETEND_OK;
}

/* ---- properties: two layouts, as offsets in bytes ----------------------------------- */

static const struct {
	unsigned short number, at12, at13, bytes;
} properties[] = {
#define CARD(number, at12, at13, bytes, value) { number, at12, at13, bytes },
#include "card.def"
#undef CARD
};

#define PROPERTIES12_BYTES 1032u
#define PROPERTIES13_BYTES 1008u
#define UUID_AT 256u
#define UUID_BYTES 16u
#define TOTAL_AT 288u

/* In NVML's format: the card's number at the end. */
static void fill_uuid(unsigned char *out, int device)
{
	memset(out, 0, UUID_BYTES);
	out[UUID_BYTES - 1] = (unsigned char)frag_pretend_number(device);
}

PRETEND_ANSWER(cuDeviceGetUuid_v2, (unsigned char *out, int device), fill_uuid(out, device))

static int fill_properties(unsigned char *out, size_t bytes, bool is13, int device)
{
	const struct pretend_card *c = frag_pretend_card();

	if (device < 0 || device >= frag_pretend_visible())
		return frag_pretend_error(PRETEND_INVALID_DEVICE);
	memset(out, 0, bytes);
	snprintf((char *)out, UUID_AT, "%s", c->name);
	fill_uuid(out + UUID_AT, device);
	memcpy(out + TOTAL_AT, &c->total_bytes, 8);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(properties); i++) {
		uint64_t value = (uint64_t)attribute(properties[i].number, device);
		size_t at = is13 ? properties[i].at13 : properties[i].at12;

		if (at)
			memcpy(out + at, &value,
			       properties[i].bytes); /* little endian: the low part */
	}
	return PRETEND_OK;
}

PRETEND_VALUE_OF(12, int, cudaGetDeviceProperties_v2, (void *out, int device),
		 fill_properties(out, PROPERTIES12_BYTES, false, device))
PRETEND_VALUE_OF(13, int, cudaGetDeviceProperties, (void *out, int device),
		 fill_properties(out, PROPERTIES13_BYTES, true, device))

bool frag_pretend_copies(uint64_t bytes, uint64_t most)
{
	return bytes <= most || frag_pretend_card()->in_full;
}

/* ---- which devices ------------------------------------------------------------------ */

static _Thread_local int current_device, last_error;

int frag_pretend_error(int code)
{
	if (code)
		last_error = code;
	return code;
}

int frag_pretend_device(void)
{
	return current_device;
}

PRETEND_ENTRY(int, cudaGetLastError, (void))
{
	int code = last_error;

	last_error = PRETEND_OK;
	return code;
}
PRETEND_VALUE(int, cudaPeekAtLastError, (void), last_error)
int frag_pretend_device_set(int device)
{
	if (device < 0 || device >= frag_pretend_visible()) {
		if (device > 0 && device < PRETEND_CARDS_MAX)
			frag_pretend_no_card(device);
		return PRETEND_INVALID_DEVICE;
	}
	current_device = device;
	return PRETEND_OK;
}

#define HANDLE_BYTES 4096u /* opaque, but some libraries copy descriptors */

int frag_pretend_handle(void **out)
{
	*out = calloc(1, HANDLE_BYTES);
	return *out ? PRETEND_OK
		    : PRETEND_OUT_OF_MEMORY; /* the libraries' "no resources" is 1, 2 or 3 */
}

/* ---- versions and texts -------------------------------------------------------------- */

PRETEND_VALUE_OF(12, int, cudaRuntimeGetVersion, (int *version), (*version = 12040, PRETEND_OK))
PRETEND_VALUE_OF(13, int, cudaRuntimeGetVersion, (int *version), (*version = 13000, PRETEND_OK))

static const struct error {
	int code;
	const char *name, *text;
} errors[] = {
	{ PRETEND_OK, "cudaSuccess", "no error" },
	{ PRETEND_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument" },
	{ PRETEND_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory" },
	{ 98, "cudaErrorInvalidDeviceFunction",
	  "invalid device function" }, /* CUB: not compiled for this card */
	{ PRETEND_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ PRETEND_NOT_READY, "cudaErrorNotReady", "device not ready" },
	{ PRETEND_NOT_SUPPORTED, "cudaErrorNotSupported",
	  "operation not supported by the pretended card of cufrag" },
	{ PRETEND_CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported",
	  "operation not permitted when stream is capturing" },
	{ PRETEND_CAPTURE_LOST, "cudaErrorStreamCaptureInvalidated",
	  "operation failed due to a previous error during capture" },
	{ PRETEND_CAPTURED_EVENT, "cudaErrorCapturedEvent",
	  "operation not permitted on an event last recorded in a capturing stream" },
	{ -1, "cudaErrorUnknown", "unknown error" }, /* any other */
};

static const struct error *error_of(int code)
{
	const struct error *e = errors;

	while (e->code != code && e->code >= 0)
		e++;
	return e;
}

PRETEND_VALUE(const char *, cudaGetErrorName, (int code), error_of(code)->name)
PRETEND_VALUE(const char *, cudaGetErrorString, (int code), error_of(code)->text)
