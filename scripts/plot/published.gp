# SPDX-License-Identifier: Apache-2.0
# Published memory figures beside those computed without a GPU: a mark a figure. CSV: results/published/rows.csv. What is
# off by more than the scale shows lies on its edge.
load ARG0[1:strlen(ARG0)-strlen("published.gp")]."style.gp"
eval arguments
NEAR = 1	# %, of which results/published says how many are within
eval open(HEAD + 384)
unit(u) = u eq "GiB" || u eq "GB" ? 1.0 : u eq "MiB" || u eq "MB" ? 2.0**-10 : u eq "bytes" ? 2.0**-30 : 2.0**-20
GB(n) = column("published") * unit(strcol("unit"))
off(n) = strcol("computed") eq "" ? NaN : column("difference_percent") < LOW ? LOW : column("difference_percent") > HIGH ? HIGH : column("difference_percent")
LOW = -30
HIGH = 15
near(n) = abs(off(n)) <= NEAR ? off(n) : NaN
far(n) = abs(off(n)) > NEAR ? off(n) : NaN
eval across(72, W - 24)
eval down(HEAD + 8, H - 120)
set logscale x 2
set xrange [1.0/1048576:128] noextend
set xtics ("4 KiB" 1.0/262144, "64 KiB" 1.0/16384, "1 MiB" 1.0/1024, "16 MiB" 1.0/64, "256 MiB" 0.25, "4 GiB" 4, "64 GiB" 64)
set yrange [LOW - 2:HIGH + 2] noextend
set ytics LOW, 5, HIGH format "%+.0f %%"
set ytics add ("0" 0)
set grid ytics noxtics
set object 1 rectangle from graph 0, first -NEAR to graph 1, first NEAR fc rgb GRID fs solid 1.0 noborder behind
set xlabel "published"
set key at screen px(12), py(H - 56) left top Left reverse horizontal maxcols 2 samplen 1 font SMALL
plot CSV using (GB(0)):(near(0)) with points pt 7 ps 0.9 * DOT lc rgb BLUE title "within 1 %", \
	CSV using (GB(0)):(far(0)) with points pt 5 ps 0.8 * DOT lc rgb VERMILLION title "further off; reasons in the table"
