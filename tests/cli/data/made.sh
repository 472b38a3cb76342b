# shellcheck shell=sh disable=SC2034,SC2154 # cases read and set them
# SPDX-License-Identifier: Apache-2.0
# What several cases make of the sources beside this, and waiting that ends: . "$DATA/made.sh"

# compiled OUT SOURCE [OPTION...], and a library of that name
compiled() {
	made_as=$1 made_of=$2
	shift 2
	"$cc" -w -std=gnu17 -O1 -o "$made_as" "$made_of" "$@" -ldl || exit
}
library() { compiled "$@" -shared -fPIC -Wl,-soname,"${1##*/}"; }
policy() { # OUT [OPTION...]
	made_as=$1
	shift
	compiled "$made_as" "$DATA/policy.c" -I"$ROOT" -I"$ROOT/src/include" -shared -fPIC "$@"
}

# fake_nvml SCENARIO: the cards that monitor sees
fake_nvml() {
	mkdir -p lib
	library lib/libnvidia-ml.so.1 "$DATA/fake_nvml.c"
	export LD_LIBRARY_PATH="$PWD/lib" FAKE_NVML="$1"
}
# fake_cuda [OPTION...]: a driver, and a program that asks for memory through it
fake_cuda() {
	export CUFRAG_CUPTI="$PWD/none.so" LD_LIBRARY_PATH="$PWD/lib"
	mkdir -p lib
	library lib/libcuda.so.1 "$DATA/fake_cuda.c" -DLIBRARY
	compiled program "$DATA/fake_cuda.c" "$@"
}
recorder=${CUFRAG%/*}/share/cufrag/inject/libcufrag_record.so
# recorded NAME COMMAND...: a program with the recorder, by hand
recorded() {
	record_to=$1
	shift
	CUFRAG_RECORD_CUDA=$record_to CUFRAG_RECORD_BY=preload LD_PRELOAD=$recorder "$@"
}

# soon COMMAND...: waits, a minute at most, until it succeeds
soon() {
	for _ in $(seq 1200); do
		"$@" && return
		sleep 0.05
	done
	echo "not within a minute: $*" >&2
	return 1
}
# answers URL REGEX: the page, in answer.txt, has this
answers() { curl -s -m 10 "$1" > answer.txt && grep -q "$2" answer.txt; }
# watch OPTION...: starts a monitor that serves, whose number is in $pid, and whose port and page are in $port and $url
watch() {
	: > err.txt # before the monitor in the background opens it
	"$CUFRAG" monitor --interval 100ms "$@" > out.txt 2> err.txt & pid=$!
	soon grep -qE 'on port [0-9]+,|page: http' err.txt
	port=$(sed -nE 's/.*on port ([0-9]+),.*/\1/p' err.txt)
	url=$(sed -nE 's/.*page: (http.*)$/\1/p' err.txt)
}
