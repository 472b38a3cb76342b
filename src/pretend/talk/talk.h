/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks tell each other: the members of a communicator, each a process of this machine, exchange messages in the
 * order in which they are said, for each pair of ranks. Saying never waits; hearing may.
 *
 * Between two ranks lies a file in the folder $CUFRAG_NOGPU_TALK, to which one appends and from which the other reads.
 * What was read is given back to the file system at once, so only what nobody has heard yet takes room.
 */
#ifndef FRAG_NOGPU_TALK_H
#define FRAG_NOGPU_TALK_H

#include "talk_clock.h"

#define TALK_NAME_CHARS 33 /* 32 hexadecimal digits */
/* No message holds more: such a length is damage. */
#define TALK_BYTES_MAX (64 * FRAG_GIB)

struct talk;

/* What a message belongs to. Sends have connections of their own, as in NCCL, so their order among collectives does not
 * matter. */
enum talk_call {
	TALK_SEND,
	TALK_SPLIT,
	TALK_ALL_REDUCE,
	TALK_REDUCE,
	TALK_BROADCAST,
	TALK_REDUCE_SCATTER,
	TALK_ALL_GATHER,
	TALK_ALL_TO_ALL,
	TALK_BARRIER,
};

struct talk_message {
	uint64_t bytes; /* that were sent */
	enum talk_call call;
	uint32_t origin;  /* of their values: cufrag_values.cpp, enum Origin */
	uint32_t carried; /* 1: data holds them */
	void *data;	  /* NULL: not carried; free with frag_host_free */
	struct talk_when when;
	const struct talk_peer *by; /* NULL: `when` is all that will be known */
};

enum talk_answer { TALK_HERE, TALK_NOT_YET, TALK_ENDED };

/* Is there a folder? Otherwise every rank but this one is pretended. */
bool talk_possible(void);
/* name: of the communicator, the same for all its members and used once. NULL: no memory, or no file can be made. */
struct talk *talk_join(const char *name, int ranks, int rank);
void talk_leave(struct talk *t);
/* data is read now; NULL: the values are not known. False: it cannot be written. */
bool talk_say(struct talk *t, int peer, enum talk_call call, const void *data, uint64_t bytes,
	      uint32_t origin, struct talk_when when);
/* The next message of `peer`: of a send, or of any collective, so out->call may be another one. TALK_ENDED: its process
 * ended and has said all that it ever will. */
enum talk_answer talk_hear(struct talk *t, int peer, enum talk_call call, struct talk_message *out);

/* NULL: it is not there (yet). */
struct talk_peer *talk_peer(struct talk *t, int peer);

/* Of a rank that waits: tells the others for whom, so that a circle can be found; peer -1: it goes on. */
void talk_waits(struct talk *t, int peer);
/* Does `peer`, through those for whom it waits, wait for this process? */
bool talk_circle(struct talk *t, int peer);

/* Did all ranks of the job that are no members end, and `peer` is none? */
bool talk_never(struct talk *t, int peer);
/* This process is that of its rank, also if it never talks. */
__attribute__((visibility("default"))) void frag_nogpu_present(void);
/* From now on, who is not there has ended. */
void talk_abandon(struct talk *t);

#endif
