/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every driver of scripts/lab/upstream shares: an allocator of somebody else, compiled as it is, is given the
 * requests of a trace and takes its memory from a pretended device.
 *
 *	driver OPS SEGMENTS [OPTION...] > RESULT
 * OPS: "a ID BYTES STREAM", "f ID", "t" (trim), a line each. SEGMENTS: "BYTES ADDRESS" of what cufrag took from the
 * device, in order. The device hands out those addresses as long as sizes agree, because allocators decide
 * ties by address; from the first difference on it makes up its own, and says so on standard error. RESULT: for each
 * line of OPS the address ("-" for none, "oom") and the bytes taken from the device.
 *
 * Nothing behind an address of the device is ever touched.
 */
#ifndef FRAG_UPSTREAM_DRIVE_H
#define FRAG_UPSTREAM_DRIVE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEV_MAX 1000000u
#define IDS_MAX (1u << 22)

static struct {
	uint64_t bytes, addr;
} dev_listed[DEV_MAX], dev_live[DEV_MAX];
static size_t dev_listed_count, dev_next, dev_live_count;
/* free memory of an H200, which is the simulated card */
static const uint64_t dev_limit = 149557477376ull;
static uint64_t dev_reserved, dev_own = 0x100000000000ull;
static int dev_differs, dev_ready;

static void dev_load(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long long bytes, addr;

	if (!f)
		exit(3);
	while (dev_listed_count < DEV_MAX && fscanf(f, "%llu %llx", &bytes, &addr) == 2) {
		dev_listed[dev_listed_count].bytes = bytes;
		dev_listed[dev_listed_count++].addr = addr;
	}
	fclose(f);
	dev_ready = 1;
}

/* cudaMalloc; NULL: refused. */
static void *dev_take(size_t bytes)
{
	uint64_t addr;

	if (bytes > dev_limit || dev_reserved > dev_limit - bytes || dev_live_count == DEV_MAX)
		return NULL;
	if (!dev_differs && dev_next < dev_listed_count && dev_listed[dev_next].bytes == bytes) {
		addr = dev_listed[dev_next++].addr;
	} else {
		if (!dev_differs)
			fprintf(stderr, "segment %zu: %zu bytes here, %llu in cufrag\n", dev_next,
				bytes,
				dev_next < dev_listed_count ?
					(unsigned long long)dev_listed[dev_next].bytes :
					0ull);
		dev_differs = 1;
		addr = dev_own;
		dev_own += (bytes + 0x3ffffffull) & ~0x1ffffffull;
	}
	dev_live[dev_live_count].bytes = bytes;
	dev_live[dev_live_count++].addr = addr;
	dev_reserved += bytes;
	return (void *)(uintptr_t)addr;
}

/* cudaFree; 0: not ours. */
static int dev_give(const void *ptr)
{
	for (size_t i = dev_live_count; i-- > 0;) {
		if (dev_live[i].addr != (uint64_t)(uintptr_t)ptr)
			continue;
		dev_reserved -= dev_live[i].bytes;
		dev_live[i] = dev_live[--dev_live_count];
		return 1;
	}
	return 0;
}

/* The allocator under test. alloc: NULL = refused. */
struct drive_ops {
	void *(*alloc)(size_t bytes, unsigned stream);
	void (*free)(void *ptr, size_t bytes, unsigned stream);
	void (*trim)(void);
};

struct drive_live {
	void *ptr;
	size_t bytes;
	unsigned stream;
};

static int drive(const char *ops_path, const struct drive_ops *ops)
{
	struct drive_live *live = (struct drive_live *)calloc(IDS_MAX, sizeof(*live));
	FILE *f = fopen(ops_path, "r");
	char line[128];

	if (!f || !live)
		return 3;
	while (fgets(line, sizeof(line), f)) {
		unsigned long long bytes;
		unsigned id, stream;

		if (sscanf(line, "a %u %llu %u", &id, &bytes, &stream) == 3 && id < IDS_MAX) {
			live[id].ptr = ops->alloc(bytes, stream);
			live[id].bytes = bytes;
			live[id].stream = stream;
			if (live[id].ptr)
				printf("%p %llu\n", live[id].ptr, (unsigned long long)dev_reserved);
			else
				printf("oom %llu\n", (unsigned long long)dev_reserved);
		} else if (sscanf(line, "f %u", &id) == 1 && id < IDS_MAX) {
			if (live[id].ptr)
				ops->free(live[id].ptr, live[id].bytes, live[id].stream);
			live[id].ptr = NULL;
			printf("- %llu\n", (unsigned long long)dev_reserved);
		} else {
			if (ops->trim)
				ops->trim();
			printf("- %llu\n", (unsigned long long)dev_reserved);
		}
	}
	fclose(f);
	fflush(stdout);
	return 0;
}

#endif
