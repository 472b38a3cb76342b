#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the commands agree about what completes? (agree.py)
#	run.sh PROGRAM
# Small bundled recordings; all bundled recordings with FRAG_TEST_NIGHTLY, and a table of them in a table with
#	agree.py PROGRAM --table FILE traces/*.cft
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${1:?usage: run.sh PROGRAM}")
command -v python3 > /dev/null || { echo 'no python3'; echo '0 passed, 0 failed, 1 skipped'; exit 0; }
traces=(traces/{gnn,cudagraph,mempool,modelpar,streams}.default.cft traces/leak.frames.cft)
[ -z "${FRAG_TEST_NIGHTLY:-}" ] || traces=(traces/*.cft)
exec python3 tests/agree/agree.py "$program" "${traces[@]}"
