/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings under policies as a page that one can move in: for `view`, and for --out of other commands. */
#ifndef FRAG_CLI_VIEWING_H
#define FRAG_CLI_VIEWING_H

#include "common.h"
#include "recording/policy_texts.h"
#include "recording/recording.h"
#include "view/view.h"

/* Adds every device of a recording under each policy; none: the recorded settings. */
int frag_cli_view_add(const struct frag_cli *cli, struct frag_recording *in,
		      const struct frag_policy_texts *policies, struct frag_view *v,
		      struct frag_err *err);
/* The whole of it for a page of another command: the lanes of `in` under one policy, or of all under `policies`. */
int frag_cli_view_page(const struct frag_cli *cli, struct frag_recording *in,
		       const struct frag_policy_texts *policies, uint64_t event, const char *note,
		       struct frag_answer *page, struct frag_err *err);

#endif
