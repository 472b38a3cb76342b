#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One line on the machine, for pages with measurements: processor, how many of them, memory.
set -euo pipefail
export LC_ALL=C

cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
memory=$(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)
echo "${cpu:-unknown processor}, $(nproc) processors, $memory"
