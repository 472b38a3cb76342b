/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses that a device gave, in order, and a simulated card that gives them again to
 * a replay which makes the same calls. A call that the device refused is not in the log: it is
 * for the simulated card to refuse it, too.
 *
 * Ownership: the log owns its list until address_log_release; devices are borrowed. 24 bytes for
 * every cudaMalloc and cuMemAddressReserve.
 */
#ifndef FRAG_REPLAY_ADDRESS_LOG_H
#define FRAG_REPLAY_ADDRESS_LOG_H

#include <frag/device.h>

struct given_address {
	uint64_t bytes;
	frag_addr_t addr;
	uint8_t call; /* enum frag_call: MALLOC or RESERVE */
};

struct address_log {
	struct given_address *given;
	size_t count, cap;
	size_t next; /* to be given again */
	bool lost;   /* something else was given: from here on the addresses mean nothing */
	bool short_of_memory;
	struct frag_device *dev; /* that is listened to, and who listened before */
	void (*before)(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr);
	void *before_ctx;
};

/* Writes down what `dev` gives, until address_log_stop. Who listened before still hears it. */
void address_log_record(struct address_log *t, struct frag_device *dev);
void address_log_stop(struct address_log *t);

/*
 * Opens a simulated card as `cfg` says, its place hook apart: that gives the addresses of the
 * log from the first on. The log must stay until the card is closed. Errors: as frag_sim_open.
 */
int address_log_play(struct address_log *t, const struct frag_sim_config *cfg,
		     struct frag_device **out, struct frag_err *err);
void address_log_release(struct address_log *t);

#endif
