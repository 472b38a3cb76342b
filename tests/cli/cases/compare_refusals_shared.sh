# the same of recordings whose limit is not in the file
[ -d "$SHARED/diagnose" ] || { echo "no shared traces" >&2; exit 77; }
for f in diagnose/oom_frag.a versions/2.11.0.oom.default versions/2.6.0.oom.split torch/oomcap.expandable; do
	"$CUFRAG" compare "$SHARED/$f.pickle.xz" --policies 'recorded;native' --optimum off | grep -E '^#.* recording|refused when recorded|^answer'
done
