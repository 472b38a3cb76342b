esc=$(printf '\033')
"$CUFRAG" list policies null --all --color always | grep -c "$esc"
"$CUFRAG" list policies null --all --color never | grep -c "$esc"
# no terminal here
"$CUFRAG" list policies null --all | grep -c "$esc"
true
