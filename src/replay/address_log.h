/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs the addresses that a device gave, in order, and opens a simulated card that gives them again
 * to a replay with the same calls. Refused calls are not in the log; the simulated card must refuse
 * them, too.
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
	size_t next; /* next entry to repeat */
	bool lost;   /* the replay made another call, so the remaining addresses mean nothing */
	bool short_of_memory;
	struct frag_device *dev; /* the logged device, and its previous listener */
	void (*before)(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr);
	void *before_ctx;
};

/* Logs the addresses of `dev` until address_log_stop. The previous listener still gets them. */
void address_log_record(struct address_log *t, struct frag_device *dev);
void address_log_stop(struct address_log *t);

/*
 * Opens a simulated card from `cfg`, except that its place hook repeats the log from the start. The
 * log must outlive the card. Errors: as frag_sim_open.
 */
int address_log_play(struct address_log *t, const struct frag_sim_config *cfg,
		     struct frag_device **out, struct frag_err *err);
void address_log_release(struct address_log *t);

#endif
