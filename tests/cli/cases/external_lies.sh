# what a policy of somebody else's returns is not believed
# needs: cc
. "$DATA/made.sh"
policy liar.so
for lie in code negative silent class overlap short long endless free; do
	for policy in ./liar.so check:walk=false/./liar.so; do
		echo "$lie $policy"
		LIE=$lie "$CUFRAG" replay "$TRACES/leak.frames.cft" --policy "$policy" > said 2>&1
		status=$?
		sed 's/0x[0-9a-f]*/ADDRESS/g' said; echo "exit $status"
	done
done
"$CUFRAG" replay "$TRACES/leak.frames.cft" --policy ./liar.so > /dev/null && echo 'without a lie: done'
