/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL holds of a card for one group of ranks within a machine, computed as its sources do (2.21 to 2.28: channel.cc,
 * transport/p2p.cc, net.cc, nvls.cc, graph/connect.cc). Memory is taken for each channel; how many those are follows from the
 * links, and is that of public logs.
 *
 * Where NCCL takes memory by cuMemCreate (the default since 2.19), each of its small tables takes the 2 MiB of that call, three
 * for each channel, and a ring is connected at the first collective. With NCCL_CUMEM_ENABLE=0, as vLLM sets it up to 0.10, tables
 * take next to nothing, but rings, trees, multicast and buffers for the network are made with the group. Ways of sends and receives
 * are connected when they are first used, on all channels for them.
 *
 * Equal to what is known: 388 MiB of a group of one rank, 590 of the first group of two and of four H100, 484 of the second one, 260
 * of a group of two that only sends, 516 where it only receives (measured, results/layout/beside.csv and beside_ranks.csv); 544 and
 * 688 MiB of the first of two and of more A100 (NVIDIA/nccl issue 964); 512 MiB of network buffers (2363); 256 MiB of multicast for
 * eight H100 (a public log).
 *
 * Not modelled: what groups over several machines take for the network (they count as if within one), and multicast with cuMem,
 * which is connected when it is first chosen. Ways in groups of more than two ranks are taken to be alike.
 */
#include "pretend/card/nogpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <frag/device.h>

#define TABLES_BYTES (3 * 2 * FRAG_MIB) /* of a channel */
#define GROUP_BYTES (2 * 2 * FRAG_MIB) /* what the kernels know of the group, and the ranks in it */
/* A connection: buffers of 4 MiB, 4.7 MiB and 0.5 MiB for the three protocols, and the flags of both sides; with an A100, which
 * reads from its peer, the first is the sender's. In steps of 2 MiB. */
#define RECEIVE_BYTES (10 * FRAG_MIB)
#define SEND_BYTES (2 * FRAG_MIB)
#define READ_BYTES (6 * FRAG_MIB) /* either side */
#define NETWORK_STEPS 16u
#define MULTICAST_BYTES (32 * FRAG_MIB) /* for each rank; 16 channels x 2 ways x 1 MiB */
#define MACHINE_RANKS 8u

struct links {
	unsigned channels, peer_channels; /* of collectives; of sends and receives */
	uint64_t chunk_bytes;		  /* of the network's buffers */
	bool direct;			  /* cards reach each other's memory */
	bool reads, multicast;
};

static struct links links_of(const struct nogpu_card *c, int ranks)
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

/* A chain in the order of the ring, so only the way back is new: the first rank receives, the last one sends. */
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

uint64_t frag_nogpu_ring_bytes(int ranks)
{
	const struct links l = links_of(frag_nogpu_card(), ranks);

	return by_pages() ? ring_bytes(&l) : 0;
}

uint64_t frag_nogpu_way_bytes(int ranks, bool receives)
{
	const struct links l = links_of(frag_nogpu_card(), ranks);

	return l.direct ? l.peer_channels * (receives ? RECEIVE_BYTES : SEND_BYTES) : 0;
}

uint64_t frag_nogpu_group_bytes(int ranks, int rank)
{
	const struct links l = links_of(frag_nogpu_card(), ranks);

	if (by_pages())
		return tables_bytes(&l);
	return l.peer_channels * NETWORK_STEPS * l.chunk_bytes + ring_bytes(&l) +
	       tree_bytes(&l, ranks, rank) +
	       (l.multicast ? FRAG_MIN((uint64_t)ranks, MACHINE_RANKS) * MULTICAST_BYTES : 0);
}

/* ---- addresses --------------------------------------------------------------------------------- */

/*
 * Where that lies: pieces of 2 MiB and, of connections, of 10 fill the holes between segments. What a rank maps of its peers' memory
 * takes as many addresses as its own. Measured with two ranks on two H100 (results/nogpu/local_memory.md).
 */
#define CODE_BYTES (106 * FRAG_MIB)  /* of the kernels, once */
#define SHARED_BYTES (62 * FRAG_MIB) /* taken to be what the ranks of a group share on the host */

static void map(uint64_t bytes, uint64_t piece_bytes)
{
	NOGPU_LOCKED;
	struct frag_device *sim = frag_nogpu_places(frag_nogpu_device());

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

void frag_nogpu_map_group(int ranks)
{
	static atomic_bool done[NOGPU_CARDS_MAX];
	const struct links l = links_of(frag_nogpu_card(), ranks);
	uint64_t bytes = tables_bytes(&l);

	if (!atomic_exchange(&done[frag_nogpu_device()], true))
		bytes += NOGPU_NCCL_CODE_BYTES;
	frag_nogpu_local(NOGPU_LOCAL_ASSERTS);
	map(bytes + (ranks > 1 ? SHARED_BYTES : 0), 2 * FRAG_MIB);
}

void frag_nogpu_map_ring(int ranks)
{
	const struct links l = links_of(frag_nogpu_card(), ranks);

	if (ranks > 1 && l.direct)
		map_connections(2 * l.channels); /* own and the neighbours' */
}

/* The sender's end and the receiver's. */
void frag_nogpu_map_way(int ranks)
{
	const struct links l = links_of(frag_nogpu_card(), ranks);

	if (l.direct)
		map_connections(l.peer_channels);
}
