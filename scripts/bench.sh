#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ratios of speeds, measured in one run: see bench.py.
exec python3 "$(dirname "$0")/bench.py" "$@"
