# plain, through a pipe, and as .cft: the same
data=$DATA/seeddemo.pickle.xz
"$CUFRAG" verify "$data" > a
xz -dc "$data" | "$CUFRAG" verify - > b
"$CUFRAG" import "$data" -o c.cft > /dev/null && "$CUFRAG" verify c.cft > c
cmp a b && cmp a c && echo same
