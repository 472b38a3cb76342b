# needs: python3
# a program on the pretended card writes in many ways: it reads back what it wrote, and the folder stays as it is
mkdir -p temp work/runs/a work/old && cd work && export TMPDIR=${PWD%/work}/temp
echo weights > best.pt; echo '{"epoch": 1}' > state.json; echo x > runs/a/x; echo log > train.log; echo 12345678 > map.bin
echo h > h1; ln h1 h2; ln -s best.pt latest; chmod 444 h1
cp "$DATA/hold_writes.py" . && python3 hold_writes.py prepare
sum() { find . -printf '%p %s %T@ %m %i %l\n' | sort; find . -type f | sort | xargs sha256sum; }
sum > ../before
for way in record fit scale layout advise script run "run and record"; do
	case $way in
	record) set -- record --no-gpu -o ../run.cft -- python3 hold_writes.py ;;
	fit) set -- fit --no-gpu -- python3 hold_writes.py ;;
	scale) set -- scale --no-gpu --vary "{b}=1,2" -- python3 hold_writes.py "{b}" ;;
	layout) set -- layout --no-gpu --gpu l4 --vary "{b}=1,2" -- python3 hold_writes.py "{b}" ;;
	advise) set -- advise --no-gpu -- python3 hold_writes.py ;;
	script) set -- hold_writes.py ;;
	run) set -- run --no-gpu -- python3 hold_writes.py ;;
	*) set -- run --no-gpu --record ../run.cft -- python3 hold_writes.py ;;
	esac
	PYTHONDONTWRITEBYTECODE=1 "$CUFRAG" "$@" > ../out 2> ../err || : # nothing is recorded here
	echo "$way: $(cat ../out ../err | grep -c '^wrote all') $(grep -o '[0-9]* files.*held back' ../err)"
	sum | cmp - ../before
done
# two ranks, and 64 processes that write one file
"$CUFRAG" record --no-gpu --ranks 0,1 -o ../run.cft -- python3 hold_writes.py > ../out 2>&1 || grep -c "wrote all" ../out
sum | cmp - ../before
# what may be written is bounded
"$CUFRAG" record --no-gpu --writes-max 1M -o ../run.cft -- python3 -c '
try: open("best.pt", "wb").write(bytes(1 << 24))
except OSError as e: print(e.strerror)' 2>&1 | grep -E 'No space|no room'
sum | cmp - ../before
# a path of 4,095 bytes; a program that is linked statically
"$CUFRAG" record --no-gpu -o ../run.cft -- python3 hold_writes.py long 2>&1 | grep '^long'
sum | cmp - ../before
# kept in one folder; everywhere
"$CUFRAG" record --no-gpu --keep-writes=old -o ../run.cft -- sh -c 'echo kept > old/new; echo held > new' 2>&1 | grep held
cat old/new; ls new; rm old/new
"$CUFRAG" record --no-gpu --keep-writes -o ../run.cft -- sh -c 'echo kept > best.pt' 2> /dev/null
cat best.pt
ls -A "$TMPDIR"
