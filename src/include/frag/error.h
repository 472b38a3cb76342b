/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: functions that can fail return 0 or one of the negative codes below, and describe the
 * error in their last parameter.
 *
 * Ownership: struct frag_err is a plain value of the caller. It is unchanged on success. NULL: the
 * caller needs only the code.
 */
#ifndef FRAG_ERROR_H
#define FRAG_ERROR_H

#include <stdarg.h>
#include <stdint.h>

/* code, exit status of the program, what it means */
#define FRAG_ERROR_LIST(X) \
	X(ENOMEM, 4, "host memory exhausted") \
	X(EUSAGE, 2, "wrong usage") \
	X(EINPUT, 3, "bad input") \
	X(EDEVICE, 4, "device failure") \
	X(ENOTSUP, 4, "not supported by this device") \
	X(EOUTPUT, 5, "output failure") \
	X(EPOLICY, 4, "policy failure") \
	X(ECHECK, 1, "check failed") \
	X(EINTR, 4, "interrupted") \
	X(EFORMAT, 3, "no known format")

enum frag_code {
	FRAG_CODE_BASE_ = -1000,
#define FRAG_X_(name, exit_status, text) FRAG_##name,
	FRAG_ERROR_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_CODE_END_
};

/*
 * Result of an allocation besides 0 and the errors: there is no room. It is not an error, so `err`
 * stays unchanged.
 */
#define FRAG_OOM 1

struct frag_err {
	int code;	 /* enum frag_code */
	int cuda_code;	 /* CUresult or cudaError_t of a failed driver call, else 0 */
	uint64_t offset; /* byte or line in the input, if the message names one */
	char msg[400];	 /* complete, lower case, no final stop */
};

/* Fills `err` (unless NULL) and returns `code`. */
int frag_fail(struct frag_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Of the commonest errors: what is asked for in a wrong way, files that are wrong or not written. */
#define FRAG_USAGE(err, ...) frag_fail(err, FRAG_EUSAGE, __VA_ARGS__)
#define FRAG_INPUT(err, ...) frag_fail(err, FRAG_EINPUT, __VA_ARGS__)
#define FRAG_OUTPUT(err, ...) frag_fail(err, FRAG_EOUTPUT, __VA_ARGS__)
/* The same with an offset into the input; the text should name it, too. */
int frag_fail_at(struct frag_err *err, int code, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* "host memory exhausted", with what the memory was for. */
int frag_fail_nomem(struct frag_err *err, const char *what);
/* Puts "context: " before the existing message. Returns err->code. */
int frag_err_prefix(struct frag_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Name ("EINPUT") of a code; "?" for an unknown one. A static string. */
const char *frag_code_name(int code);
/* Exit status for a code: 4 for unknown codes, 0 for 0. */
int frag_code_exit(int code);

#define FRAG_TRY(call) \
	do { \
		int frag_try_ = (call); \
		if (frag_try_) \
			return frag_try_; \
	} while (0)

/* Returns from the function, like FRAG_TRY, if an allocation of host memory failed. */
#define FRAG_CHECK_ALLOC(memory, what, err) \
	do { \
		if (FRAG_UNLIKELY(!(memory))) \
			return frag_fail_nomem((err), (what)); \
	} while (0)
/* Allocates `count` zeroed elements of what `ptr` points to; on failure the function returns. */
#define FRAG_TRY_CALLOC(ptr, count, what, err) \
	do { \
		(ptr) = frag_host_calloc((count), sizeof(*(ptr))); \
		FRAG_CHECK_ALLOC(ptr, what, err); \
	} while (0)

#endif
