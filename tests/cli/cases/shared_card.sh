# a process that another one on its card left no room: the refused one is explained, the other is named, fit adds both
exec 2> /dev/null
cat > program << 'END'
cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/17.pickle"
cp "$TRACES/oomcap.default.cft" "$CUFRAG_RECORD/18.pickle"
for pid in 17 18; do
	echo '{"cufrag_meta": 1, "devices": [{"ordinal": 0, "limit_fraction": 1.0}]}' > "$CUFRAG_RECORD/$pid.pickle.meta.json"
done
printf '%s\n' '7000000000 2 0' '9000000000 2 0' '8000000000 3 0' > "$CUFRAG_RECORD/shared"
echo '2147483648 1 17' > "$CUFRAG_RECORD/refused.18.0"
END
"$CUFRAG" record --no-gpu --gpu rtx3090 --capacity 10G -o run.cft -- sh program
"$CUFRAG" run.cft | grep -o -e '^2 processes.*' -e 'together they .*' | cut -d';' -f 1,2
"$CUFRAG" explain run.cft | grep -o -e 'of what the card had.*Live' -e '^yes.*the card without.*'
"$CUFRAG" fit run.cft --policy pytorch | grep -o '^pytorch *[0-9.]* GiB'
"$CUFRAG" info run.cft | grep shared
