/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and messages from one list. */
#include <frag/error.h>

#include <stdio.h>
#include <string.h>

#include <frag/base.h>

static int fill(struct frag_err *err, int code, uint64_t offset, const char *fmt, va_list ap)
{
	if (err) {
		/* format first: an argument may be err->msg itself */
		char msg[sizeof(err->msg)];

		vsnprintf(msg, sizeof(msg), fmt, ap);
		err->code = code;
		err->cuda_code = 0;
		err->offset = offset;
		memcpy(err->msg, msg, sizeof(msg));
	}
	return code;
}

int frag_fail(struct frag_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, 0, fmt, ap);
	va_end(ap);
	return code;
}

int frag_fail_at(struct frag_err *err, int code, uint64_t offset, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, offset, fmt, ap);
	va_end(ap);
	return code;
}

int frag_fail_nomem(struct frag_err *err, const char *what)
{
	return frag_fail(err, FRAG_ENOMEM, "host memory exhausted (%s)", what);
}

int frag_err_prefix(struct frag_err *err, const char *fmt, ...)
{
	char prefix[sizeof(err->msg) / 2], old[sizeof(err->msg)];
	va_list ap;

	if (!err)
		return FRAG_EINPUT;
	va_start(ap, fmt);
	vsnprintf(prefix, sizeof(prefix), fmt, ap);
	va_end(ap);
	memcpy(old, err->msg, sizeof(old));
	/* cut off what does not fit */
	if (snprintf(err->msg, sizeof(err->msg), "%s: ", prefix) > 0)
		strncat(err->msg, old, sizeof(err->msg) - strlen(err->msg) - 1);
	return err->code;
}

static const struct {
	const char *name;
	int exit_status;
} codes[] = {
#define FRAG_X_(name, exit_status, text) { #name, exit_status },
	FRAG_ERROR_LIST(FRAG_X_)
#undef FRAG_X_
};

static int code_index(int code)
{
	return code > FRAG_CODE_BASE_ && code < FRAG_CODE_END_ ? code - FRAG_CODE_BASE_ - 1 : -1;
}

const char *frag_code_name(int code)
{
	int i = code_index(code);

	return i < 0 ? "?" : codes[i].name;
}

int frag_code_exit(int code)
{
	int i = code_index(code);

	return !code ? 0 : i < 0 ? 4 : codes[i].exit_status;
}
