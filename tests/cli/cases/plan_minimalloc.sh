# a list of buffers is read, written, and placed
printf 'id,lower,upper,size\na,0,4,3\nb,2,6,3\nc,4,8,3\nd,0,2,3\ne,6,8,3\n' > in.csv
"$CUFRAG" import in.csv -o out.csv > said
cat out.csv
"$CUFRAG" plan out.csv | tail -n 2
"$CUFRAG" plan "$TRACES/modelpar.default.cft" -o x.plan
