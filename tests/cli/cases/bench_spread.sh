# percentiles of bench are medians over passes, between the least and the most of them
"$CUFRAG" bench --passes 3 --policies 'pytorch;vmm' --csv rows.csv "$TRACES/seeddemo.default.cft" | grep -c 'over passes'
awk -F, '
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
{
	for (name in at) {
		if (name !~ /_(p50|p90|p99|p999|max)_ns$/) continue
		low = high = name
		sub(/_ns$/, "_min_ns", low)
		sub(/_ns$/, "_max_ns", high)
		if (low in at) { n++; good += $at[low] <= $at[name] && $at[name] <= $at[high] && $at[high] > 0 }
	}
}
END { print NR - 1 " rows, " n " percentiles, between: " good }' rows.csv
