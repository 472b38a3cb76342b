# a pipe: evidence stands behind the events, so it is refused; without evidence it is as a file
"$CUFRAG" replay - --stream --policy pytorch < "$TRACES/gnn.default.cft"; echo $?
"$CUFRAG" import "$TRACES/gnn.default.cft" --no-evidence -o plain.cft > /dev/null
"$CUFRAG" replay plain.cft --policy pytorch --no-host > file
cat plain.cft | "$CUFRAG" replay - --stream --policy pytorch --no-host > pipe; echo $?
cmp file pipe && echo same
"$CUFRAG" gen repeat "$TRACES/varlen.default.cft" --times 3 -o - 2> /dev/null |
	"$CUFRAG" replay - --stream --policy pytorch:expandable_segments:True --no-host > pipe; echo $?
"$CUFRAG" gen repeat "$TRACES/varlen.default.cft" --times 3 -o long.cft > /dev/null
"$CUFRAG" replay long.cft --policy pytorch:expandable_segments:True --no-host --stream=never > file
cmp file pipe && echo same
# several policies would need it several times
cat plain.cft | "$CUFRAG" compare - --stream; echo $?
# from a pipe of its own accord: into memory
cat plain.cft | "$CUFRAG" replay - --policy pytorch --no-host > pipe && cmp file pipe > /dev/null || echo 'other trace'
