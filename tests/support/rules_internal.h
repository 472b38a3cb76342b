/* SPDX-License-Identifier: Apache-2.0 */
/* A section of rules while it runs: the rig, the names of blocks, what the device was asked. */
#ifndef FRAG_TESTS_RULES_INTERNAL_H
#define FRAG_TESTS_RULES_INTERNAL_H

#include "rig.h"
#include "rules.h"

#define RULES_LOG 1024
#define RULES_JOURNAL "afmu" /* a letter for each frag_segment_event */
#define RULES_PLACES 16
#define RULES_WORDS 512

/* A block that was handed out under a name; its address is known after its free, too. */
struct rules_name {
	char text[16];
	unsigned slot;
	uint32_t serial; /* of the block in the slot: another one means that this is gone */
	frag_addr_t addr;
};

/* A cudaMalloc or cudaFree, or a segment event of the policy's journal. */
struct rules_event {
	char kind; /* m malloc, r malloc refused, f free, x free failed; or of RULES_JOURNAL */
	uint64_t bytes;
	frag_addr_t addr;
};

struct rules_log {
	struct rules_event at[RULES_LOG];
	size_t count; /* since the last look */
};

struct rules {
	const struct rules_section *section;
	char *message, where[256], text[256];
	struct rig rig;
	bool open;
	struct rules_name names[RIG_SLOTS];
	size_t names_count;
	struct rules_log calls, journal;
	frag_addr_t places[RULES_PLACES]; /* where the card places what comes next, up to a 0 */
	size_t places_used;
	frag_addr_t next; /* right behind the block that was handed out last */
};

/* Writes the message "path:line: …". Returns false. */
bool rules_wrong(struct rules *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * "4K", "1M+1", "5*256", "10ms-1", "max", and addresses: a block's name, S0, next. *placed
 * (NULL: not allowed): there was an address in it. Units: K M G T, us ms s.
 */
bool rules_number(struct rules *r, const char *text, uint64_t *out, bool *placed);
/* An address; without a name in it, it is counted from S0. */
bool rules_address(struct rules *r, const char *text, frag_addr_t *out);
/* "64K", "1000"; "S1+64K". buf of at least 48. Returns buf. */
char *rules_bytes_text(uint64_t bytes, char *buf);
char *rules_address_text(const struct rules *r, frag_addr_t addr, char *buf);

/* "-> error TEXT" or nothing may stand here. */
bool rules_error(struct rules *r, char **words, const char **out);
/* Is it the result that is wanted: an error with this in its message, or NULL = success? */
bool rules_result(struct rules *r, int rc, const char *error);

struct rules_name *rules_find_name(struct rules *r, const char *text);

/* Steps: words end with NULL. */
bool rules_alloc(struct rules *r, char **words); /* from the names on */
bool rules_grants(struct rules *r, char **words);
bool rules_free(struct rules *r, char **words);
bool rules_request(struct rules *r, char **words);
bool rules_expect(struct rules *r, char **words);
bool rules_calls(struct rules *r, char **words);
bool rules_journal(struct rules *r, char **words);

#endif
