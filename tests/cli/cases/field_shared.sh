# What people report (../shared/field): each file is read, and says no more than it can.
field=$SHARED/../field
[ -r "$field/oom.log" ] || { echo "no $field" >&2; exit 77; }
for f in oom.log sgl.log smi_uuid.csv smi_nohead.csv smi_semi.csv smi_utf16.csv exp_win.pickle old_state.pickle; do
	cp "$field/$f" . && echo "== $f" && "$CUFRAG" "$f" -q | cut -c1-150
done
