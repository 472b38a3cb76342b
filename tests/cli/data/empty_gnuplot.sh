#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A stand-in for gnuplot, as `gnuplot` in a folder of PATH: an empty picture, for tests that do not look at it.
echo '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 380"></svg>' > "$5"
