# a pickle that would run code when Python loads it
printf '\200\002cos\nsystem\nU\004trueR.' > evil.pickle
"$CUFRAG" import evil.pickle -o out.cft
status=$?
ls
exit $status
