# a list of one's own: the cheapest card with room, the price of the job, odd names
printf '\357\273\277# what we can rent\r\nvendor, Name ,memory,price_per_hour,context\r\nacme,"small, ""old""",12G,0.40,\r\nother,big,80 GB,0.30,1G\r\nacme,tiny,8192 MiB,0.05,600M\r\n' > cards.csv
"$CUFRAG" fit "$TRACES/gnn.default.cft" --policy pytorch --policy pytorch:expandable_segments:True --cards cards.csv | sed -n '/^answer/p; /^card/,$p'
"$CUFRAG" fit "$TRACES/gnn.default.cft" --policy pytorch --cards cards.csv --vendor acme --margin 0 | grep '^answer'
"$CUFRAG" compare "$TRACES/gnn.default.cft" --policy pytorch:expandable_segments:True --cards cards.csv | grep '^answer'
"$CUFRAG" fit "$TRACES/gnn.default.cft" --policy pytorch --vendor amd | sed -n '/^answer/p; /^card/,$p' | cut -c -22
