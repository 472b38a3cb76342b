data=$DATA/seeddemo.pickle.xz
"$CUFRAG" import "$data" -o a.cft > /dev/null
"$CUFRAG" import - -o - < "$data" > b.cft 2> /dev/null
"$CUFRAG" info a.cft > a && "$CUFRAG" info - < b.cft > b
diff a b | grep '^[<>]'
