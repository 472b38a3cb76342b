/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a card for one NCCL group within a machine, computed as in NCCL's sources (2.21 to
 * 2.28: channel.cc, transport/p2p.cc, net.cc, nvls.cc, graph/connect.cc). With cuMemCreate (the
 * default since 2.19), each small table takes 2 MiB, three for each channel, and a ring is
 * connected at the first collective. With NCCL_CUMEM_ENABLE=0, tables are tiny, but rings, trees,
 * multicast and network buffers are made with the group. Connections for send and receive are made
 * when first used, on all their channels.
 *
 * Equal to all figures of results/layout/beside.csv and beside_ranks.csv (H100), of NVIDIA/nccl
 * issues 964 (A100) and 2363, and of a public log of eight H100. Not modelled: groups across
 * machines, and multicast with cuMem.
 */
#include "nccl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <frag/device.h>

#define TABLES_BYTES (3 * 2 * FRAG_MIB) /* per channel */
#define GROUP_BYTES (2 * 2 * FRAG_MIB)	/* descriptors of the group and its ranks for the kernels */
/* A connection: buffers of 4 MiB, 4.7 MiB and 0.5 MiB for the three protocols, and flags of both
 * sides; on an A100, which reads from its peer, the first buffer is the sender's. In steps of 2
 * MiB. */
#define RECEIVE_BYTES (10 * FRAG_MIB)
#define SEND_BYTES (2 * FRAG_MIB)
#define READ_BYTES (6 * FRAG_MIB) /* on either side */
#define NETWORK_STEPS 16u
#define MULTICAST_BYTES (32 * FRAG_MIB) /* per rank: 16 channels x 2 directions x 1 MiB */
#define MACHINE_RANKS 8u

struct links {
	unsigned channels, peer_channels; /* for collectives; for send and receive */
	uint64_t chunk_bytes;		  /* of the network's buffers */
	bool direct;			  /* cards reach each other's memory */
	bool reads, multicast;
};

static struct links links_of(const struct pretend_card *c, int ranks)
{
	bool fast = c->major >= 8 && c->nvlink;
	struct links l = { .channels = 2, .peer_channels = 2, .chunk_bytes = 128 * FRAG_KIB };

	l.direct = fast || !strstr(c->name, "GeForce");
	if (fast)
		l = (struct links){ .channels = c->major >= 10 ? 32 : 24,
				    .peer_channels = 32,
				    .chunk_bytes = 512 * FRAG_KIB,
				    .direct = true,
				    .reads = c->major == 8,
				    .multicast = c->major >= 9 && ranks > 2 };
	if (ranks == 1)
		l = (struct links){ .channels = 64,
				    .peer_channels = 64,
				    .chunk_bytes = 512 * FRAG_KIB };
	return l;
}

static uint64_t tables_bytes(const struct links *l)
{
	return FRAG_MAX(l->channels, l->peer_channels) * TABLES_BYTES + GROUP_BYTES;
}

static uint64_t ring_bytes(const struct links *l)
{
	return l->direct ? l->channels * (RECEIVE_BYTES + SEND_BYTES) : 0;
}

/* A chain in ring order, so only the reverse direction is new: the first rank receives, the last
 * one sends. */
static uint64_t tree_bytes(const struct links *l, int ranks, int rank)
{
	uint64_t receive = l->reads ? READ_BYTES : RECEIVE_BYTES;
	uint64_t send = l->reads ? READ_BYTES : SEND_BYTES;

	if (!l->direct || ranks < 3)
		return 0;
	return l->channels * ((rank < ranks - 1 ? receive : 0) + (rank > 0 ? send : 0));
}

static bool by_pages(void)
{
	const char *enable = getenv("NCCL_CUMEM_ENABLE");

	return !enable || strcmp(enable, "0") != 0;
}

uint64_t frag_pretend_group_bytes(int ranks, int rank)
{
	const struct links l = links_of(frag_pretend_card(), ranks);

	if (by_pages())
		return tables_bytes(&l);
	return l.peer_channels * NETWORK_STEPS * l.chunk_bytes + ring_bytes(&l) +
	       tree_bytes(&l, ranks, rank) +
	       (l.multicast ? FRAG_MIN((uint64_t)ranks, MACHINE_RANKS) * MULTICAST_BYTES : 0);
}

/* ---- addresses --------------------------------------------------------------------------------- */

/*
 * Addresses of this memory: pieces of 2 MiB, and of 10 for connections, fill the holes between
 * segments. Mappings of peers' memory take as many addresses as a rank's own. Measured with two
 * ranks on two H100 (results/pretend/local_memory.md).
 */
#define SHARED_BYTES (62 * FRAG_MIB) /* assumed: host memory shared by a group */

static void map(uint64_t bytes, uint64_t piece_bytes)
{
	PRETEND_LOCKED;
	struct frag_device *sim = frag_pretend_places(frag_pretend_device());

	for (uint64_t at = 0; sim && at < bytes; at += piece_bytes)
		frag_sim_hold_mapped(sim, piece_bytes);
}

static void map_connections(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		map(RECEIVE_BYTES, RECEIVE_BYTES);
		map(SEND_BYTES, SEND_BYTES);
	}
}

void nccl_hold_group(struct pretend_held *held, int ranks, int rank)
{
	static atomic_bool done[PRETEND_CARDS_MAX];
	const struct links l = links_of(frag_pretend_card(), ranks);
	uint64_t bytes = tables_bytes(&l);

	frag_pretend_beside_take(PRETEND_BESIDE_NCCL, frag_pretend_group_bytes(ranks, rank), held);
	if (!atomic_exchange(&done[frag_pretend_device()], true))
		bytes += PRETEND_NCCL_CODE_BYTES;
	frag_pretend_local(PRETEND_LOCAL_ASSERTS);
	map(bytes + (ranks > 1 ? SHARED_BYTES : 0), 2 * FRAG_MIB);
}

void nccl_hold_ring(struct pretend_held *held, int ranks)
{
	const struct links l = links_of(frag_pretend_card(), ranks);

	frag_pretend_beside_more(held, by_pages() ? ring_bytes(&l) : 0);
	if (ranks > 1 && l.direct)
		map_connections(2 * l.channels); /* its own and its neighbours' */
}

/* Maps the sender's end and the receiver's. */
void nccl_hold_way(struct pretend_held *held, int ranks, bool receives)
{
	const struct links l = links_of(frag_pretend_card(), ranks);

	if (!l.direct)
		return;
	frag_pretend_beside_more(held, l.peer_channels * (receives ? RECEIVE_BYTES : SEND_BYTES));
	map_connections(l.peer_channels);
}
