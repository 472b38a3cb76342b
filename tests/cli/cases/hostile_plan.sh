# a plan that announces more than its file holds takes no memory for it
printf 'cufrag-plan 1\nreserve 1000000 prefix_marks 5 phase_marks 4 skip 0 phases 2 requests 250000000\nphase 1\n512 0\n' > many
printf 'cufrag-plan 1\nreserve 1000000 prefix_marks 5 phase_marks 4 skip 0 phases 250000000 requests 1\n' > phases
printf 'cufrag-plan 1\nreserve 1000000 prefix_marks 5 phase_marks 4 skip 0 phases 1 requests 1\nphase 1\n512 999999\n' > outside
head='cufrag-plan 1\nreserve 1024 prefix_marks 0 phase_marks 0 skip 0'
printf '' > empty; printf 'cufrag-plan 2\n' > newer; printf 'cufrag-plan 1\n' > short
printf "$head phases 1 requests 1\n" > none; printf "$head phases 1 requests 1\nphase 1\n512 1024\n" > beyond
printf "$head phases 1 requests 2\nphase 1\n512 0\n" > fewer; printf "$head phases 2 requests 0\nphase 0\nphase 0\n" > nothing
for plan in many phases outside empty newer short none beyond fewer nothing; do
	"$CUFRAG" replay "$TRACES/leak.frames.cft" --policy planned:plan=$plan
	echo "exit $?"
done
