# needs: gnuplot
# the map of layouts: what rises goes to the right, a row for each combination of the others, 40 at most
printf '%s\n' 'printf "alloc,1,512\nfree,1\n" > "$CUFRAG_RECORD/1.pickle"' > program
layout() {
	timeout 60 "$CUFRAG" layout --gpu l4 --check 0 --out page "$@" > out 2> err || cat err
	sed -n "1p;$show" page/layouts-l4.csv | cut -d, -f 1-4; wc -l < page/layouts-l4.csv
}
show='2,$p' layout --vary '{mb}=1..3' -- sh program '{mb}'
show='$p' layout --vary '{mb}=1..2' --vary '{ac}=1..50' -- sh program '{mb}' '{ac}'
