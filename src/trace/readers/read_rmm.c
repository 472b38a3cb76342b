/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's CSV log (rapidsai/rmm cpp/src/mr/detail/logging_resource_adaptor_impl.cpp), also what the
 * adaptor `log` of cufrag writes:
 *
 *	Thread,Time,Action,Pointer,Size,Stream
 *	31417,10:15:02.104377,allocate,0x7f3a40000000,1000000,0x2
 *
 * Time is local time of day without a date: past midnight it goes on. The log names no device.
 */
#include <string.h>

#include "trace/log/log.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"

static int read_rmm(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	static const struct frag_log_csv how = { .format = "rmm",
						 .columns = HEADER,
						 .whole = true };

	return frag_log_csv_read(in, &how, options, out, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	char line[sizeof(HEADER) + 1];

	return frag_log_first_line(bytes, len, line, sizeof(line)) && !strcmp(line, HEADER) ? 90
											    : 0;
}

const struct frag_reader_ops frag_reader_rmm = {
	.name = "rmm",
	.summary = "RMM's CSV log, also of the adaptor log: streams, times, refused requests; one "
		   "device",
	.probe = probe,
	.read = read_rmm,
};
