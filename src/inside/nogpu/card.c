/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program can ask about the card: attributes, properties, versions.
 *
 * CUFRAG_NOGPU describes it: name, total, context, count, cc, sms, l2, bus, clock, ptx.
 * What is left out is that of an H200. Figures by compute capability: CUDA
 * Programming Guide 13.0, "Technical Specifications per Compute Capability".
 * Layouts of cudaDeviceProp: driver_types.h of CUDA 12.4 and 13.0.
 */
#include "nogpu.h"

#include <pthread.h>
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

static struct nogpu_card card = {
	.name = "NVIDIA H200",
	.total_bytes = 150109880320ull,
	.context_bytes = 552402944ull,
	.count = 1,
	.major = 9,
	.minor = 0,
	.sms = 132,
	.l2_bytes = 62914560,
	.bus_bits = 6144,
	.clock_khz = 1980000,
};
static pthread_once_t card_once = PTHREAD_ONCE_INIT;

static void take(const char *key, const char *value)
{
	unsigned long long n = strtoull(value, NULL, 10);

	if (!strcmp(key, "name"))
		snprintf(card.name, sizeof(card.name), "%s", value);
	else if (!strcmp(key, "total"))
		card.total_bytes = n;
	else if (!strcmp(key, "context"))
		card.context_bytes = n;
	else if (!strcmp(key, "count"))
		card.count = (int)FRAG_MIN(n, NOGPU_CARDS_MAX);
	else if (!strcmp(key, "cc"))
		sscanf(value, "%d.%d", &card.major, &card.minor);
	else if (!strcmp(key, "sms"))
		card.sms = (int)n;
	else if (!strcmp(key, "l2"))
		card.l2_bytes = n;
	else if (!strcmp(key, "bus"))
		card.bus_bits = (int)n;
	else if (!strcmp(key, "clock"))
		card.clock_khz = (int)n;
	else if (!strcmp(key, "ptx"))
		card.ptx = (int)n;
}

static void read_card(void)
{
	const char *env = getenv("CUFRAG_NOGPU");
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
	if (!card.ptx)
		card.ptx = cc;
}

const struct nogpu_card *frag_nogpu_card(void)
{
	pthread_once(&card_once, read_card);
	return &card;
}

/* ---- which of them the program sees ------------------------------------------------ */

static int numbers[NOGPU_CARDS_MAX], numbers_count;
static pthread_once_t numbers_once = PTHREAD_ONCE_INIT;

/* Of CUDA_VISIBLE_DEVICES, -1: none; *at goes behind it. */
static int next_number(const char **at)
{
	unsigned number;
	int length = 0;

	*at += strspn(*at, " ,");
	if (sscanf(*at, "GPU-%*8x-0000-0000-0000-%12x%n", &number, &length) < 1 &&
	    sscanf(*at, "%u%n", &number, &length) < 1)
		return -1;
	*at += length;
	return number < (unsigned)card.count ? (int)number : -1;
}

/* As CUDA does: up to the first that there is not; a list with one twice leaves none. */
static void choose_visible(void)
{
	const char *at = getenv("CUDA_VISIBLE_DEVICES");
	bool used[NOGPU_CARDS_MAX] = { false };
	int number;

	frag_nogpu_card();
	for (int i = 0; !at && i < card.count; i++)
		numbers[numbers_count++] = i;
	while (at && *at && (number = next_number(&at)) >= 0) {
		if (used[number]) {
			numbers_count = 0;
			return;
		}
		used[number] = true;
		numbers[numbers_count++] = number;
	}
}

int frag_nogpu_visible(void)
{
	pthread_once(&numbers_once, choose_visible);
	return numbers_count;
}

int frag_nogpu_number(int device)
{
	return device < frag_nogpu_visible() ? numbers[device] : device;
}

/* ---- attributes ------------------------------------------------------------------- */

/* enum cudaDeviceAttr; CUdevice_attribute has the same numbers. What is not here is 0. */
static int attribute(int which, int device)
{
	const struct nogpu_card *c = frag_nogpu_card();

	switch (which) {
	case 1: /* threads per block, and the first two dimensions */
	case 2:
	case 3:
	case 111: /* reserved shared memory per block */
		return 1024;
	case 4: /* third dimension */
		return 64;
	case 5: /* grid */
		return 2147483647;
	case 6:
	case 7:
		return 65535;
	case 8: /* shared memory per block without asking for more */
		return 49152;
	case 9:	 /* constant memory */
	case 12: /* registers per block and per multiprocessor */
	case 82:
		return 65536;
	case 10: /* warp */
		return 32;
	case 11: /* greatest pitch */
		return 2147483647;
	case 13:
		return c->clock_khz;
	case 14: /* alignment of textures */
		return 512;
	case 16:
		return c->sms;
	case 33: /* PCI bus */
		return frag_nogpu_number(device) + 1;
	case 36: /* clock of the memory */
		return 3201000;
	case 37:
		return c->bus_bits;
	case 38:
		return (int)c->l2_bytes;
	case 39:
		return c->threads_per_sm;
	case 40: /* copy engines */
		return 3;
	case 75:
		return c->major;
	case 76:
		return c->minor;
	case 81:
		return (int)c->shared_per_sm_bytes;
	case 97:
		return (int)c->shared_per_block_bytes;
	case 106:
		return c->blocks_per_sm;
	case 120: /* clusters */
		return c->major >= 9;
	case 15: /* overlap of copies and kernels */
	case 19: /* maps host memory */
	case 31: /* kernels beside each other */
	case 32: /* ECC */
	case 41: /* one address space */
	case 78: /* priorities */
	case 79: /* caches */
	case 80:
	case 83: /* managed memory */
	case 89:
	case 90:  /* preemption */
	case 95:  /* cooperative launch */
	case 99:  /* host registration */
	case 102: /* virtual memory management */
	case 103: /* and handing it to others */
	case 115: /* pools */
	case 119:
		return 1;
	}
	return 0;
}

NOGPU_ENTRY(int, cudaDeviceGetAttribute, (int *value, int which, int device))
{
	if (device < 0 || device >= frag_nogpu_visible())
		return frag_nogpu_error(NOGPU_INVALID_DEVICE);
	*value = attribute(which, device);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDeviceGetAttribute, (int *value, int which, int device))
{
	return frag_nogpu_cudaDeviceGetAttribute(value, which, device);
}

/* ---- properties: two layouts, as places in bytes ----------------------------------- */

struct property {
	unsigned short at12, at13; /* 0: not in that layout */
	unsigned char bytes;	   /* 4 or 8 */
	short attribute;	   /* number above, or */
	int value;		   /* this, where attribute is 0 */
};

static const struct property properties[] = {
	{ 296, 296, 8, 8, 0 },	 { 304, 304, 4, 12, 0 }, { 308, 308, 4, 10, 0 },
	{ 312, 312, 8, 11, 0 },	 { 320, 320, 4, 1, 0 },	 { 324, 324, 4, 2, 0 },
	{ 328, 328, 4, 3, 0 },	 { 332, 332, 4, 4, 0 },	 { 336, 336, 4, 5, 0 },
	{ 340, 340, 4, 6, 0 },	 { 344, 344, 4, 7, 0 },	 { 348, 0, 4, 13, 0 },
	{ 352, 352, 8, 9, 0 },	 { 360, 360, 4, 75, 0 }, { 364, 364, 4, 76, 0 },
	{ 368, 368, 8, 14, 0 },	 { 384, 0, 4, 15, 0 },	 { 388, 384, 4, 16, 0 },
	{ 400, 392, 4, 19, 0 },	 { 576, 560, 4, 31, 0 }, { 580, 564, 4, 32, 0 },
	{ 584, 568, 4, 33, 0 },	 { 600, 584, 4, 40, 0 }, { 604, 588, 4, 41, 0 },
	{ 608, 0, 4, 36, 0 },	 { 612, 592, 4, 37, 0 }, { 616, 596, 4, 38, 0 },
	{ 624, 604, 4, 39, 0 },	 { 628, 608, 4, 78, 0 }, { 632, 612, 4, 79, 0 },
	{ 636, 616, 4, 80, 0 },	 { 640, 624, 8, 81, 0 }, { 648, 632, 4, 82, 0 },
	{ 652, 636, 4, 83, 0 },	 { 676, 656, 4, 89, 0 }, { 680, 660, 4, 90, 0 },
	{ 688, 668, 4, 95, 0 },	 { 696, 672, 8, 97, 0 }, { 712, 688, 4, 106, 0 },
	{ 720, 696, 8, 111, 0 }, { 728, 704, 4, 99, 0 }, { 744, 720, 4, 115, 0 },
	{ 772, 748, 4, 120, 0 },
};

#define PROPERTIES12_BYTES 1032u
#define PROPERTIES13_BYTES 1008u
#define UUID_AT 256u
#define UUID_BYTES 16u
#define TOTAL_AT 288u

/* As NVML writes it: the card's number at the end. */
static void fill_uuid(unsigned char *out, int device)
{
	memset(out, 0, UUID_BYTES);
	out[UUID_BYTES - 1] = (unsigned char)frag_nogpu_number(device);
}

NOGPU_ENTRY(int, cuDeviceGetUuid_v2, (unsigned char *out, int device))
{
	fill_uuid(out, device);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDeviceGetUuid, (unsigned char *out, int device))
{
	return frag_nogpu_cuDeviceGetUuid_v2(out, device);
}

static int fill_properties(unsigned char *out, size_t bytes, bool is13, int device)
{
	const struct nogpu_card *c = frag_nogpu_card();

	if (device < 0 || device >= frag_nogpu_visible())
		return frag_nogpu_error(NOGPU_INVALID_DEVICE);
	memset(out, 0, bytes);
	snprintf((char *)out, UUID_AT, "%s", c->name);
	fill_uuid(out + UUID_AT, device);
	memcpy(out + TOTAL_AT, &c->total_bytes, 8);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(properties); i++) {
		const struct property *p = &properties[i];
		uint64_t value = (uint64_t)attribute(p->attribute, device);
		size_t at = is13 ? p->at13 : p->at12;

		if (at)
			memcpy(out + at, &value, p->bytes); /* little endian: the low part */
	}
	return NOGPU_OK;
}

NOGPU_ENTRY12(int, cudaGetDeviceProperties_v2, (void *out, int device))
{
	return fill_properties(out, PROPERTIES12_BYTES, false, device);
}
NOGPU_ENTRY13(int, cudaGetDeviceProperties, (void *out, int device))
{
	return fill_properties(out, PROPERTIES13_BYTES, true, device);
}

/* ---- which devices ------------------------------------------------------------------ */

static _Thread_local int current_device, last_error;

int frag_nogpu_error(int code)
{
	if (code)
		last_error = code;
	return code;
}

int frag_nogpu_device(void)
{
	return current_device;
}

NOGPU_ENTRY(int, cudaGetLastError, (void))
{
	int code = last_error;

	last_error = NOGPU_OK;
	return code;
}
NOGPU_ENTRY(int, cudaPeekAtLastError, (void))
{
	return last_error;
}
NOGPU_ENTRY(int, cudaGetDeviceCount, (int *count))
{
	*count = frag_nogpu_visible();
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaGetDevice, (int *device))
{
	*device = current_device;
	return NOGPU_OK;
}
int frag_nogpu_device_set(int device)
{
	if (device < 0 || device >= frag_nogpu_visible())
		return NOGPU_INVALID_DEVICE;
	current_device = device;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaSetDevice, (int device))
{
	return frag_nogpu_error(frag_nogpu_device_set(device));
}
NOGPU_ENTRY(int, cudaDeviceGetPCIBusId, (char *text, int len, int device))
{
	snprintf(text, (size_t)len, "0000:%02x:00.0", frag_nogpu_number(device) + 1);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaDeviceCanAccessPeer, (int *can, int device, int peer))
{
	*can = device != peer;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDeviceCanAccessPeer, (int *can, int device, int peer))
{
	return frag_nogpu_cudaDeviceCanAccessPeer(can, device, peer);
}
NOGPU_ENTRY(int, cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return NOGPU_OK;
}

/* ---- versions and texts -------------------------------------------------------------- */

NOGPU_ENTRY(int, cudaDriverGetVersion, (int *version))
{
	*version = 13000;
	return NOGPU_OK;
}
NOGPU_ENTRY12(int, cudaRuntimeGetVersion, (int *version))
{
	*version = 12040;
	return NOGPU_OK;
}
NOGPU_ENTRY13(int, cudaRuntimeGetVersion, (int *version))
{
	*version = 13000;
	return NOGPU_OK;
}

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{ NOGPU_OK, "cudaSuccess", "no error" },
	{ NOGPU_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument" },
	{ NOGPU_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory" },
	{ NOGPU_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ NOGPU_NOT_READY, "cudaErrorNotReady", "device not ready" },
	{ NOGPU_NOT_SUPPORTED, "cudaErrorNotSupported",
	  "operation not supported by the pretended card of cufrag" },
};

NOGPU_ENTRY(const char *, cudaGetErrorName, (int code))
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(errors); i++)
		if (errors[i].code == code)
			return errors[i].name;
	return "cudaErrorUnknown";
}
NOGPU_ENTRY(const char *, cudaGetErrorString, (int code))
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(errors); i++)
		if (errors[i].code == code)
			return errors[i].text;
	return "unknown error";
}
NOGPU_ENTRY(int, cuGetErrorName, (int code, const char **out))
{
	*out = frag_nogpu_cudaGetErrorName(code);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuGetErrorString, (int code, const char **out))
{
	*out = frag_nogpu_cudaGetErrorString(code);
	return NOGPU_OK;
}
