/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between ranks: the members of a communicator are processes of this machine, and messages
 * of each pair of ranks arrive in order. Sending never waits; receiving may.
 *
 * Between two ranks lies a file in the folder $CUFRAG_PRETEND_TALK; one appends, the other reads
 * and punches out what it has read, so only unread messages take room.
 */
#ifndef FRAG_PRETEND_TALK_H
#define FRAG_PRETEND_TALK_H

#include <frag/base.h>

#define TALK_NAME_CHARS 33 /* 32 hexadecimal digits */
/* A longer message means damage. */
#define TALK_BYTES_MAX (64 * FRAG_GIB)

struct talk;

/* Sends have files of their own, as NCCL has connections, so their order among collectives is
 * free. */
enum talk_call { TALK_SEND, TALK_COLLECTIVE };

struct talk_message {
	uint64_t bytes;	  /* size of the tensor */
	uint64_t start;	  /* of the operation, on the modelled clock (card_stream.c) */
	uint32_t origin;  /* of the values: values/values.h, enum Origin */
	uint32_t carried; /* 1: data has the values */
	void *data;	  /* NULL: not carried; free with frag_host_free */
};

enum talk_answer { TALK_HERE, TALK_NOT_YET, TALK_ENDED };

/* Is there a folder? Otherwise this is the only process. */
bool talk_possible(void);
/* name: unique to the communicator, and the same for all members. NULL: no memory, or no file. */
struct talk *talk_join(const char *name, int ranks, int rank);
void talk_leave(struct talk *t);
/* Sends a message, and copies data at once; NULL: values unknown. False: writing failed. */
bool talk_say(struct talk *t, int peer, enum talk_call call, const void *data, uint64_t bytes,
	      uint32_t origin, uint64_t start);
/* Receives the next message of `peer`, of a send or of any collective. TALK_ENDED: its process has ended, and all its messages were read. */
enum talk_answer talk_hear(struct talk *t, int peer, enum talk_call call, struct talk_message *out);

/* Publishes that this process waits for the next message of `peer` (deadlock detection). */
void talk_waits(struct talk *t, int peer, enum talk_call call);
void talk_waits_end(void);
/* Does `peer` wait for this process, directly or through others, and no message on the way ends
 * that? */
bool talk_circle(struct talk *t, int peer);

/* True if `peer` has not joined and all other ranks of the job have ended or are members. */
bool talk_never(struct talk *t, int peer);
/* This process is that of its rank, also if it never talks. */
__attribute__((visibility("default"))) void frag_pretend_present(void);
/* From now on, ranks that have not joined count as ended. */
void talk_abandon(struct talk *t);

#endif
