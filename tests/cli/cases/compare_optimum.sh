# The best possible: a row each for the bound and the placement, a plan for `planned`.
mkdir tmp
TMPDIR=$PWD/tmp "$CUFRAG" compare "$TRACES/leak.frames.cft" --no-host --json out.json --csv out.csv > out 2> note
row() { awk '/^(pytorch|planned|\()/ { print $1, $2 ~ /^[a-z]/ ? $2 " " $3 : $2 } /^to use/'; }
row < out
grep -E '"(placement_bytes|placement_rule|lower_bound_bytes|params)"' out.json | sed 's/^ *//' | sort -u
head -n 1 out.csv | tr , '\n' | grep -n placement
cut -d, -f 10 out.csv | sort -u
ls tmp
"$CUFRAG" compare "$TRACES/leak.frames.cft" --no-host --threads 1 --json one.json > /dev/null
"$CUFRAG" compare "$TRACES/leak.frames.cft" --no-host --threads 4 --json four.json > /dev/null
cmp one.json four.json && echo 'the same with any number of threads'
echo '--- nothing to plan from'
printf 'id,lower,upper,size\n0,0,5,4096\n' > one.csv
"$CUFRAG" compare one.csv --no-host --policies 'pytorch; planned' | row
echo '--- off'
"$CUFRAG" compare "$TRACES/leak.frames.cft" --no-host --optimum off --policy pytorch | grep -c '^('
echo '--- bound'
"$CUFRAG" compare "$TRACES/leak.frames.cft" --no-host --optimum bound --policy pytorch | row
"$CUFRAG" compare "$TRACES/leak.frames.cft" --optimum best
