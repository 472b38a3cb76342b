# numbers and files that would be bounds of a loop or of a sum; one card for one job, whoever names it
seq 1 64 | sed 's/.*/0,1,67108864/' > steps.csv
"$CUFRAG" kvcache --cache-tokens 67108880 --arrivals steps.csv --step 1
echo "exit $?"
(ulimit -v 4000000; "$CUFRAG" kvcache --log /dev/zero --requests 8 --tokens 8; echo "exit $?")
"$CUFRAG" replay "$TRACES/seeddemo.default.cft" --capacity 8E
echo "exit $?"
printf 'alloc,1,1099511627776\nfree,1\n' > huge.csv
(ulimit -t 5; "$CUFRAG" replay huge.csv --policy vmm --capacity 4T -q > /dev/null; echo "huge: exit $?")
printf 'alloc,1,38977667072\nfree,1\n' > margin.csv
"$CUFRAG" replay margin.csv --policy vmm --no-host --json - -q 2> /dev/null | grep '"smallest_card"'
"$CUFRAG" compare margin.csv --policies vmm --no-host --json - -q 2> /dev/null | grep '"smallest_card"'
XDG_CACHE_HOME=/dev/null "$CUFRAG" layout --vary n=1..2 -- sh -c 'echo {n}' > /dev/null
echo "layout: exit $?"
