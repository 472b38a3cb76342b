# hostile lists: each refused with its line, nothing written
bad() {
	printf "$1" > cards.csv
	"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --cards cards.csv --json out.json 2>&1
	echo "exit $?"
	[ ! -e out.json ] || echo 'written'
}
bad ''
bad 'name,memory\n'
bad 'name,price_per_hour\na,1\n'
bad 'name,memroy\na,1G\n'
bad 'name,memory,name\na,1G,b\n'
bad 'name,memory\na\n'
bad 'name,memory\na,24G,extra\n'
bad 'name,memory\na,minus\n'
bad 'name,memory\na,99999999999T\n'
bad 'name,memory\na,400M\n'
bad 'name,memory\na,24G\nA,48G\n'
bad 'name,memory,price_per_hour\na,24G,nan\n'
bad 'name,memory,price_per_hour\na,24G,1.2.3\n'
bad 'name,memory\n"a,24G\n'
bad 'name,memory\n\033[31mred,24G\n'
bad 'name,memory\na\0b,24G\n'
bad "name,memory\n$(printf 'x%.0s' $(seq 100)),24G\n"
{ echo name,memory; for i in $(seq 65); do echo "card$i,24G"; done; } > cards.csv
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --cards cards.csv; echo "exit $?"
head -c 70000 /dev/zero | tr '\0' ' ' > cards.csv
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --cards cards.csv; echo "exit $?"
"$CUFRAG" fit "$TRACES/seeddemo.default.cft" --policy native --cards nowhere.csv; echo "exit $?"
"$CUFRAG" compare "$TRACES/seeddemo.default.cft" --policy native --vendor acme; echo "exit $?"
