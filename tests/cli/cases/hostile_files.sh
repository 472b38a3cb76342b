# files made to mislead: each is refused with a reason, or read at a cost that is linear in its size
# needs: python3 xz
for name in seg_huge seg_wrap seg_addr0 seg_twice device_minus conf_garbage shellquote; do
	python3 "$DATA/hostile.py" "$name" > "$name.pickle" || exit
	"$CUFRAG" verify "$name.pickle" 2>&1
	echo "exit $?"
done
for name in names devices history; do
	python3 "$DATA/hostile.py" "$name" > "$name.pickle" || exit
	(ulimit -t 20; exec "$CUFRAG" info "$name.pickle") > /dev/null 2> said
	echo "$name: exit $? $(cat said)"
done
python3 "$DATA/hostile.py" streams > streams.pickle || exit
(ulimit -t 60; exec "$CUFRAG" replay streams.pickle --policy pytorch --no-host) > said 2>&1
echo "streams: exit $?"
# 50 MB in 8 KiB
head -c 50000000 /dev/zero | tr '\0' N | { printf '\200\004('; cat; } | xz -0 > bomb.pickle.xz
"$CUFRAG" info bomb.pickle.xz 2>&1
"$CUFRAG" info --unpack-max 100K "$DATA/seeddemo.pickle.xz" > /dev/null 2>&1 && echo 'small: read'
"$CUFRAG" info --unpack-max 100 "$DATA/seeddemo.pickle.xz" 2>&1 | sed "s,$ROOT/,,"
