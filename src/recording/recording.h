/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording, ready to use: opened, settled, a labelled unit for each device, and the meaning of
 * "recorded".
 *
 * Settling (frag_settle) finds what the file leaves open: which releases were an empty_cache,
 * private pools, the memory limit. It needs all events. If only the head is in memory, the file
 * is read a second time for it, unless it is long or a pipe: then devs[].settled stays unchecked,
 * and no result may be called recorded.
 *
 * Ownership: a recording owns its trace or source, and its units. Release accepts one that is all
 * zero. The path is borrowed. An open that fails leaves nothing behind.
 */
#ifndef FRAG_RECORDING_RECORDING_H
#define FRAG_RECORDING_RECORDING_H

#include <frag/error.h>
#include <frag/policy.h>
#include <frag/trace.h>

#include "target.h"
#include "trace/events.h"

/* A .cft with this many events or more is long: in memory they would take 192 MB. */
#define FRAG_RECORDING_LONG 8000000u

/* How to open it. 0: read all events into memory; the target's card and limit are a what-if. */
#define FRAG_OPEN_LONG_HEAD (1u << 0) /* of a long .cft, read only the head */
#define FRAG_OPEN_HEAD (1u << 1)      /* read only the head; FRAG_EUSAGE if it is not a .cft */
/* Any format; the source hands out the events once. The caller settles it after that
 * (frag_recording_settle), because settling changes events. May hold no events. */
#define FRAG_OPEN_SOURCE (1u << 2)
/* The target's card, limit and release are those of the recording: settle with them. */
#define FRAG_OPEN_AS_RECORDED (1u << 3)
/* FRAG_EINPUT if it is a state: for answers about peaks, and about other settings or cards. */
#define FRAG_OPEN_HISTORY (1u << 4)

/* One device of a recording. */
struct frag_unit {
	const struct frag_trace *trace;
	const struct frag_trace_dev *dev;
	struct frag_events events;
	char *label; /* "gnn.default", or "job device 1" where a recording has several */
};

struct frag_recording {
	const char *path;
	bool pipe;		  /* not a regular file: it can be read only once */
	struct frag_trace *trace; /* the head that the source owns, if there is a source */
	struct frag_source *source;
	struct frag_unit *units; /* [trace->devs_count] */
};

/* Errors: those of the readers; FRAG_EINPUT: no events; FRAG_EUSAGE: not a .cft, or settings (conf)
 * that no release of PyTorch accepts. */
int frag_recording_open(struct frag_recording *r, const char *path, const struct frag_target *t,
			unsigned how, struct frag_err *err);
/* Is it a state without a history that led to it: what was held at one moment? */
bool frag_is_state(const struct frag_trace *trace, const struct frag_trace_dev *dev);
/* What records a history of the program that wrote a state. */
const char *frag_history_hint(const struct frag_trace *trace);
/* The same for a trace in memory, which the recording owns from now on, even if this fails. */
int frag_recording_take(struct frag_recording *r, struct frag_trace *trace,
			const struct frag_target *t, unsigned how, struct frag_err *err);
/* For FRAG_OPEN_SOURCE, after the last event. */
int frag_recording_settle(struct frag_recording *r, const struct frag_target *t, unsigned how,
			  struct frag_err *err);
void frag_recording_release(struct frag_recording *r);

/* Reads a whole trace; its recorded settings are `conf` (NULL: those in the file). The reader gets
 * them, too, because they decide what a release was. FRAG_EUSAGE as above. */
int frag_recording_read(const char *path, const char *conf, struct frag_trace **out,
			struct frag_err *err);
/* Settles a trace in memory, as opening does. */
int frag_trace_settle(struct frag_trace *trace, const struct frag_target *t, unsigned how,
		      struct frag_err *err);

/* The unit of device number `ordinal`. Errors: FRAG_EUSAGE. */
int frag_recording_unit(const struct frag_recording *r, uint64_t ordinal,
			const struct frag_unit **out, struct frag_err *err);
/* The limit that applies to a replay of this device: the target's, else the recording's if its
 * replay is identical; UINT64_MAX = none. */
uint64_t frag_target_limit_for(const struct frag_target *t, const struct frag_trace_dev *dev);
/* Is that the recording's? */
bool frag_target_keeps_limit(const struct frag_target *t, const struct frag_trace_dev *dev);
/* The most that was reserved when it was recorded, where this target changes nothing of that: the
 * recording's own limit and release, and a card with room for it. 0 = not known, or a what-if. */
uint64_t frag_target_recorded_peak(const struct frag_target *t, const struct frag_trace_dev *dev);
/* The chip of the card, real or pretended; NULL = the file does not say. */
const struct frag_gpu_chip *frag_recorded_chip(const struct frag_trace *trace,
					       const struct frag_trace_dev *dev);
/* Of one compute capability? On another a program chooses other kernels, and so needs other memory.
 * NULL: not known, then neither is true. */
bool frag_same_kernels(const struct frag_gpu_chip *a, const struct frag_gpu_chip *b);
bool frag_other_kernels(const struct frag_gpu_chip *recorded, const struct frag_gpu *card);
/* What the process held besides its allocator and the CUDA context; 0 = not known. */
uint64_t frag_recorded_outside_bytes(const struct frag_trace_dev *dev);

/* ---- "recorded" ------------------------------------------------------------------ */

/*
 * The allocator behind a log of another library than PyTorch, which says nothing on settings: the
 * first row is what made the log, as it is by default; the others are what its library also has,
 * each with what to write for it. NULL: PyTorch's allocator, or an unknown one (format: of the
 * trace, may be NULL). *count: rows; may be NULL.
 */
struct frag_own_allocator {
	const char *format; /* how the trace's format begins */
	const char *policy, *line;
};
const struct frag_own_allocator *frag_own_allocators(const char *format, size_t *count);
/* How to record its stacks; NULL: nothing does, as of the log of a pool. */
const char *frag_stacks_hint(const struct frag_trace *trace);

/* Does this policy text mean the recorded settings? NULL does. */
bool frag_policy_is_recorded(const char *text);
/* The settings that a trace was recorded with, as one would type them; of other libraries' logs
 * their own allocator. *out = NULL: the file does not say, or they belong to an unknown one. */
int frag_recorded_spec(const struct frag_trace *trace, struct frag_policy_spec **out,
		       struct frag_err *err);
/* 0, or FRAG_EINPUT: the file says settings that this allocator would not take. */
int frag_recorded_invalid(const struct frag_trace *trace, struct frag_err *err);
/* The policy that a text means for this trace; *out = NULL as above. */
int frag_recording_spec(const struct frag_trace *trace, const char *text,
			struct frag_policy_spec **out, struct frag_err *err);

/* ---- several --------------------------------------------------------------------- */

struct frag_recordings {
	struct frag_recording *list;
	size_t count;
	struct frag_unit *units; /* those of all recordings, in order: copies, which own nothing */
	size_t units_count;
};

int frag_recordings_open(struct frag_recordings *all, char *const *paths, size_t count,
			 const struct frag_target *t, unsigned how, struct frag_err *err);
void frag_recordings_release(struct frag_recordings *all);

#endif
