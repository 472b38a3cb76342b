# a byte order mark is passed over; what is wrong with a file is said with its name
printf '\357\273\277id,lower,upper,size\n1,0,5,4\n' > bom.csv
"$CUFRAG" info bom.csv | grep -E '^format|allocs'
printf 'id,lower,upper,size\n1,0,5,4\0\n' > nul.csv
"$CUFRAG" info nul.csv
printf 'id,lower,upper,size\n1,0,x,4\n' > word.csv
"$CUFRAG" info word.csv
# more policies than one chart can draw: said before anything is replayed
P=$(seq -f 'pytorch:max_split_size_mb:%g' -s ';' 20 530)
"$CUFRAG" compare "$TRACES/seeddemo.default.cft" --policies "$P" --out page
echo "exit $?"
"$CUFRAG" compare "$TRACES/seeddemo.default.cft" --policies "$P" --optimum off --csv - | wc -l
ls
