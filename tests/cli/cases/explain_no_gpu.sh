# without a GPU it is the pretended card that refuses: its room is the limit, not the most that was reserved
cat > program << 'END'
printf 'alloc,1,1073741824\nalloc,2,104857600\nrefused,,2147483648\n' > "$CUFRAG_RECORD/1.pickle"
exit 1
END
"$CUFRAG" record --no-gpu --gpu h100 --capacity 2G --context 512M -o run.cft -- sh program 2> /dev/null
"$CUFRAG" explain --brief run.cft 2> /dev/null
"$CUFRAG" diagnose --brief run.cft 2> /dev/null
"$CUFRAG" explain --brief --gpu l40s run.cft 2> /dev/null
