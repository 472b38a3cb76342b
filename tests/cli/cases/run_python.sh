# Python finds cufrag whatever its flags and its PYTHONPATH are; what they mean for the program stays
python3 -c 'import sys; sys.flags.safe_path' 2> /dev/null || { echo 'no python3 of 3.11 or later' >&2; exit 77; }
unset $(env | sed -n "s/^\(PYTHON[A-Z]*\)=.*/\1/p")
export PYTHONHASHSEED=7
seven=$(python3 -c 'print(hash("a"))')
sed "s/SEVEN/$seven/" > look.py << 'END'
import os, sys
here = os.environ["CUFRAG_PRETEND_HOME"]
print(os.path.dirname(sys.modules["sitecustomize"].__file__) == here, sys.flags.safe_path, sys.flags.no_user_site,
      "mine" in [os.path.basename(p) for p in sys.path], hash("a") == SEVEN, sys.argv[1:])
END
for flags in '' -I -E -sE '-W ignore -I' '-Wignore -uI' '-X dev -E' '-B --'; do
	PYTHONPATH=mine "$CUFRAG" run -- python3 $flags look.py -I -E
done
# their children know nothing of it
echo 'import os, subprocess, sys; print([k for k in sorted(os.environ) if k.startswith(("PYTHON", "CUFRAG_KEPT"))], flush=True); subprocess.run([sys.executable, "look.py"])' > parent.py
PYTHONPATH=mine "$CUFRAG" run -- python3 -I parent.py
"$CUFRAG" run -- env PYTHONPATH=mine python3 look.py
"$CUFRAG" run -- sh -c 'unset PYTHONPATH; python3 look.py -c'
PYTHONPATH=mine "$CUFRAG" run -- python3 -Ic "$(cat look.py)" -E
PYTHONPATH=mine "$CUFRAG" run -- python3 - -E < look.py
# a folder that cannot be preloaded: PYTHONPATH alone
XDG_CACHE_HOME="$PWD/a b" "$CUFRAG" run -- python3 look.py
ls
