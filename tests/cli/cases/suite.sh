# the suite on three small workloads: the same bytes from one process and two, after a stop, and the figures of `fit`
# needs: cc
. "$DATA/made.sh"
mkdir s
cp "$TRACES/mempool.default.cft" "$TRACES/cudagraph.default.cft" s
"$CUFRAG" gen repeat s/cudagraph.default.cft --times 2 -o s/made.default.cft > /dev/null
sum() { sha256sum "s/$1.default.cft" | cut -c1-64; }
cat > s/suite.json << END
{"suite": "cufrag", "version": "1.0.0", "events_max": 100000,
 "classes": [{"name": "pools", "about": "private pools"}, {"name": "graphs", "about": "graphs"}],
 "workloads": [
  {"name": "pools", "class": "pools", "file": "mempool.default.cft", "sha256": "$(sum mempool)", "about": "come and go", "quick": true},
  {"name": "graphs", "class": "graphs", "file": "cudagraph.default.cft", "sha256": "$(sum cudagraph)", "about": "decoding", "quick": true},
  {"name": "made", "class": "graphs", "file": "made.default.cft", "sha256": "$(sum made)", "about": "the same, longer"}]}
END
suite() { "$CUFRAG" suite --manifest s/suite.json "$@"; }
suite list | grep -v '^#'
suite --policies 'native;vmm' --jobs 2 --out two | grep -v '^#'
ls two/suite_*.svg | wc -l

# in one process; a run that was stopped has kept what is done, and goes on; a cut line is no row
suite --policies 'native;vmm' --jobs 1 --out one > /dev/null
cmp one/suite.json two/suite.json
policy mine.so
suite --policies ./mine.so --out late > /dev/null 2>&1
mkdir half
INTERRUPT_AT=9 INTERRUPT_WITH=19 "$CUFRAG" suite --manifest s/suite.json --policies ./mine.so --jobs 1 --out half > /dev/null 2>&1 &
soon grep -qs '"pytorch"' half/suite.part
kill -TERM $!
wait $!
echo "stopped: $?"
printf '{"workload": "pools' >> half/suite.part
suite --policies './mine.so' --out half > /dev/null
cmp half/suite.json late/suite.json

# capacities are those of fit, of the whole card
context=$("$CUFRAG" list gpus --csv - | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $1 == "h200" { print $at["context_bytes"] }')
for p in pytorch native vmm; do
	"$CUFRAG" fit s/cudagraph.default.cft --policies $p --json fit.json > /dev/null
	card=$(sed -n 's/.*"min_capacity_bytes": \([0-9]*\).*/\1/p' fit.json | head -n 1)
	grep -q "\"capacity_bytes\": $((card - context))," two/results.json && echo "$p: as fit"
done

# a policy that hangs, crashes or lies has failed, and nothing else has
for how in 19 11; do
	INTERRUPT_AT=9 INTERRUPT_WITH=$how suite --quick --class pools --policy ./mine.so --timeout 3 --out "bad$how" | grep -v '^#'
done
LIE=overlap suite --quick --class pools --policy ./mine.so --out lies | grep -c 'mine.so on pools: broken'

# two results
"$CUFRAG" suite compare one/suite.json two/suite.json | tail -n 1
"$CUFRAG" suite compare one/suite.json late/suite.json | tail -n 1

# what breaks a rule
refused() { "$CUFRAG" suite check "$1" 2>&1; echo "exit $?"; }
sed 's/"refused_100_count": [1-9]/&1/' one/suite.json > edited.json && refused edited.json
sed 's/"version": "1/"version": "7/' one/suite.json > new.json && refused new.json
sed '/"seed"/d' one/suite.json > bare.json && refused bare.json
echo '{"suite": ' > cut.json && refused cut.json
"$CUFRAG" suite --manifest one/suite.json 2>&1; echo "exit $?"
for words in 'comb --seed 1' 'comb -o x' 'repeat x'; do
	sed "s/\"file\": \"made.*\", \"about\"/\"gen\": \"$words\", \"about\"/" s/suite.json > s/gen.json
	"$CUFRAG" suite list --manifest s/gen.json 2>&1 | sed -n '/^made/p; /^cufrag/p'
done
echo x >> s/mempool.default.cft
suite --quick --out none 2>&1; echo "exit $?"
[ ! -e none ] && echo 'nothing written'
suite --class pool 2>&1; echo "exit $?"
