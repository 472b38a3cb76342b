# TERM and HUP end a run as Ctrl-C does: what was finished is there, and nothing else
# needs: cc
. "$DATA/made.sh"
policy interrupt.so
export INTERRUPT_AT=10
for signal in 15 1; do
	INTERRUPT_WITH=$signal "$CUFRAG" compare "$TRACES/leak.frames.cft" --threads 1 --no-host --optimum bound \
		--policies 'pytorch; ./interrupt.so; buddy' --csv out.csv > table 2> said
	echo "signal $signal: exit $?"
	cat said
	cut -d, -f 1-3 out.csv
done
ls -A
