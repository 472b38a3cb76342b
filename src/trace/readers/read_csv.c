/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of one's own as CSV: one allocation or free per line. A header may name the columns, in any
 * order, others are passed over; without one they are action,id,size,stream,time_us. What is
 * missing at the end of a line, or empty, is unknown. Without actions (time,size,addr) a size below
 * 0, or none, is a free. Lines that begin with # are remarks, some of which tell stacks
 * (log_stacks.c), whose numbers are in a column of that name.
 *
 *	alloc,7,1048576,0,1200
 *	free,7
 */
#include <string.h>

#include "trace/log/log.h"

static int read_csv(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	static const struct frag_log_csv how = { .format = "csv",
						 .columns = "action,id,size,stream,time_us" };

	return frag_log_csv_read(in, &how, options, out, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	enum frag_log_action action;
	char line[4096], *at = line, *field;

	while (len && (*bytes == '#' || *bytes == '\n')) {
		const unsigned char *end = memchr(bytes, '\n', len);

		if (!end)
			return 0;
		len -= (size_t)(end + 1 - bytes);
		bytes = end + 1;
	}
	if (!frag_log_first_line(bytes, len, line, sizeof(line)))
		return 0;
	field = frag_log_next_field(&at);
	if (frag_log_word(field, &action) && at) /* the reader reports a bad id with its line */
		return 55;
	return frag_log_first_line(bytes, len, line, sizeof(line)) && frag_log_csv_header(line) ? 55
												: 0;
}

const struct frag_reader_ops frag_reader_csv = {
	.name = "csv",
	.summary = "a log as CSV: action,id,size,stream,time_us (a header may order them, and add "
		   "device), or time,size,addr; what is missing is unknown",
	.probe = probe,
	.read = read_csv,
};
