/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mattconte/tlsf as tlsf.c (TLSF), with four constants changed by run.sh: the unit, 512 bytes; the largest block; and the
 * two that give a block's header room of its own. A header lies at the beginning of its own block then, where nobody
 * writes: so sizes, lists and splits are those of an allocator whose headers are elsewhere. Pools are memory of the
 * host that is only touched at headers; their addresses are translated to those of the device.
 * Adding a pool when a request is refused, and its size, is cufrag's rule: tlsf.c leaves that to the program.
 *	drive_tlsf OPS SEGMENTS [POOL_BYTES]
 */
#include TLSF

#include <sys/mman.h>

#include "drive.h"

#define PAGE (2ull << 20)
#define POOLS_MAX 4096

static struct {
	char *host;
	uint64_t bytes, addr;
	pool_t pool;
} pools[POOLS_MAX];
static size_t pools_count;
static uint64_t pool_bytes = 64ull << 20;
static tlsf_t tlsf;

static uint64_t up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static int add_pool(uint64_t bytes)
{
	void *device = pools_count < POOLS_MAX ? dev_take(bytes) : NULL;
	char *host;

	if (!device)
		return 0;
	/* a page more for the header that ends the pool */
	host = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (host == MAP_FAILED)
		exit(3);
	pools[pools_count].host = host;
	pools[pools_count].bytes = bytes;
	pools[pools_count].addr = (uint64_t)(uintptr_t)device;
	pools[pools_count].pool = tlsf_add_pool(tlsf, host, bytes);
	return pools[pools_count++].pool != NULL;
}

static void *to_device(const char *host)
{
	for (size_t i = pools_count; host && i-- > 0;)
		if (host >= pools[i].host && host < pools[i].host + pools[i].bytes)
			return (void *)(uintptr_t)(pools[i].addr +
						   (uint64_t)(host - pools[i].host));
	return NULL;
}

static void *to_host(const void *device)
{
	uint64_t addr = (uint64_t)(uintptr_t)device;

	for (size_t i = pools_count; i-- > 0;)
		if (addr >= pools[i].addr && addr - pools[i].addr < pools[i].bytes)
			return pools[i].host + (addr - pools[i].addr);
	exit(4);
}

static void *take(size_t bytes, unsigned stream)
{
	uint64_t least = up(bytes ? bytes : 1, ALIGN_SIZE), found = least;
	void *host = tlsf_malloc(tlsf, least);

	(void)stream;
	if (host)
		return to_device(host);
	/* what a search for it finds */
	if (least >= SMALL_BLOCK_SIZE)
		found = up(least, 1ull << (63 - __builtin_clzll(least) - SL_INDEX_COUNT_LOG2));
	if (!add_pool(up(found > pool_bytes ? found : pool_bytes, PAGE)))
		return NULL;
	return to_device(tlsf_malloc(tlsf, least));
}

static void give(void *device, size_t bytes, unsigned stream)
{
	(void)bytes;
	(void)stream;
	tlsf_free(tlsf, to_host(device));
}

static void look(void *ptr, size_t size, int used, void *user)
{
	(void)ptr;
	(void)size;
	*(int *)user += used;
}

/* Pools without a block in use go back. */
static void trim(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < pools_count; i++) {
		int used = 0;

		tlsf_walk_pool(pools[i].pool, look, &used);
		if (used) {
			pools[kept++] = pools[i];
			continue;
		}
		tlsf_remove_pool(tlsf, pools[i].pool);
		munmap(pools[i].host, pools[i].bytes + 4096);
		dev_give((void *)(uintptr_t)pools[i].addr);
	}
	pools_count = kept;
}

int main(int argc, char **argv)
{
	static const struct drive_ops ops = { take, give, trim };

	if (argc < 3)
		return 2;
	dev_load(argv[2]);
	if (argc > 3)
		pool_bytes = strtoull(argv[3], NULL, 10);
	tlsf = tlsf_create(aligned_alloc(ALIGN_SIZE, up(tlsf_size(), ALIGN_SIZE)));
	return tlsf ? drive(argv[1], &ops) : 3;
}
