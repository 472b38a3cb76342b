#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of what surrounds the program: the recorder, figures of a card, the layer check, the build rules, the counting
# of tests, and the installation. Each case is a function test_…; it fails by a non-zero status.
#	run.sh [PROGRAM [CASE]]
# Last line: N passed, N failed, N skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# what the make above us was told is not meant for the makes here
unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES BUILD B CFLAGS LDFLAGS
root=$PWD
. tests/support/cases.sh

# expect WHAT ACTUAL WANTED
expect() {
	[ "$2" = "$3" ] && return 0
	printf '%s is\n%s\nbut should be\n%s\n' "$1" "$2" "$3" >&2
	return 1
}

# ---- scripts/record_torch.py, against a stand-in for torch

record() {
	command -v python3 > /dev/null || return $SKIP
	mkdir -p torch && cp "$root/tests/scripts/fake_torch.py" torch/__init__.py
	PYTHONPATH=. python3 "$root/scripts/record_torch.py" "$@"
}

test_record_writes_after_the_end() {
	printf 'import sys, torch\ntorch.cuda.use()\nprint(sys.argv)\n' > train.py
	record -o out.pickle train.py --lr 1e-4 > out 2> err || return
	expect arguments "$(cat out)" "['train.py', '--lr', '1e-4']" &&
		expect 'the file' "$(cat out.pickle)" '{"settings": [{"enabled": "all", "context": null, "stacks": "python", "max_entries": 10000000}], "conf": null}' &&
		grep -q 'wrote out.pickle .*cufrag verify out.pickle$' err
}

test_record_keeps_settings_made_before_the_import() {
	printf 'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "x:1"\nimport torch\ntorch.cuda.use()\nprint(torch.conf_at_import)\n' > train.py
	record train.py > out 2> err || return
	expect 'what torch saw' "$(cat out)" x:1 && test -s memory.pickle
}

test_record_writes_after_an_exception() {
	printf 'import torch\ntorch.cuda.use()\ntorch.cuda.set_per_process_memory_fraction(0.25)\nraise RuntimeError("CUDA out of memory")\n' > train.py
	record -o oom.pickle --frames train.py 2> err
	local status=$?
	[ $status -eq $SKIP ] && return $SKIP
	expect 'the exit status' $status 1 && grep -q 'RuntimeError: CUDA out of memory' err &&
		grep -q '"context": "all"' oom.pickle &&
		expect 'what is beside it' "$(tr -d '\n' < oom.pickle.meta.json)" \
			'{ "cufrag_meta": 1, "torch": "2.11.0+cu130", "devices": [  {   "ordinal": 0,   "name": "NVIDIA L4",   "total_bytes": 23583784960,   "limit_fraction": 0.25,   "beside_bytes": 629145600  } ]}'
}

test_record_of_a_broken_card_keeps_the_history() {
	printf 'import torch\ntorch.cuda.use()\ntorch.cuda.device_count = lambda: 1 / 0\n' > train.py
	record -o out.pickle train.py 2> err || return
	test -s out.pickle && test ! -e out.pickle.meta.json && grep -q 'no out.pickle.meta.json: division' err
}

test_record_names_ranks_apart() {
	printf 'import torch\ntorch.cuda.use()\n' > train.py
	WORLD_SIZE=2 RANK=1 record -o out.pickle train.py 2> err || return
	test -s out.rank1.pickle && test ! -e out.pickle
}

test_record_without_cuda_writes_nothing() {
	echo 'import torch' > train.py
	record -o out.pickle train.py 2> err || return
	test ! -e out.pickle && grep -q 'nothing recorded' err
}

# ---- which ranks are alike (cufrag_roles.py), by the groups that a job of 8 makes: FSDP 2 x CP 2 in two stages, then CP alone

test_roles_are_stages_and_parts_of_a_sequence() {
	local inject=${program%/cufrag}/share/cufrag/inject
	command -v python3 > /dev/null && [ -e "$inject/cufrag_roles.py" ] || return $SKIP
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$inject python3 - <<- 'END' > roles || return
		import types
		import cufrag_roles as roles
		def stands(world, lists, stage_lists):
		    groups = roles.Groups(types.SimpleNamespace(_new_process_group_helper=lambda size, rank, ranks, backend, group_name: None), world)
		    for kind, ranks in lists:
		        groups.note(ranks, "nccl", str(ranks), kind)
		    return ["%s for %s" % tuple(line.split()[1:]) for line in roles.lines_of(*groups.families(), stage_lists, world) if line.startswith("stands")]
		mesh = [("mesh_pp", [r, r + 4]) for r in range(4)] + [("mesh_dp_shard", [r, r + 2]) for r in (0, 1, 4, 5)] + \
		    [("mesh_cp", [r, r + 1]) for r in (0, 2, 4, 6)] + [("mesh_dp_shard_cp", list(range(r, r + 4))) for r in (0, 4)]
		print(*stands(8, mesh, [[0, 4]]), sep=", ")
		pipelines = [("undefined", list(range(r, 8, 2))) for r in (0, 1)]
		print(*stands(8, pipelines + [("undefined", [r, r + 1]) for r in (0, 2, 4, 6)] + [("tied", [r, r + 6]) for r in (0, 1)], [[0, 2]]), sep=", ")
		print(len(stands(8, pipelines, [list(range(8))])), "of their own")
		print(*stands(2, [("CONTEXT_PARALLEL_GROUP", [0, 1])], []), sep=", ")
		print(*stands(4, [("mesh_dp_shard", [0, 1, 2, 3])], []), sep=", ")
	END
	expect roles "$(cat roles)" '0 for 0,2, 1 for 1,3, 4 for 4,6, 5 for 5,7
0 for 0-1, 2 for 2-3, 4 for 4-5, 6 for 6-7
8 of their own
0 for 0, 1 for 1
0 for 0-3'
}

# ---- scripts/lab/lab.c

# A card that is simulated, too: the same calls, bytes and times.
test_lab_finds_no_difference_where_there_is_none() {
	[ -n "$program" ] && [ -x "${program%/*}/lab" ] || return $SKIP
	"${program%/*}/lab" sim --device sim --rounds 2 --policies 'pytorch;vmm;cupy' -o rows.csv "$root/traces/mempool.default.cft" 2> said &&
		expect 'the rows' "$(cut -d, -f 1,3-8,11,17 rows.csv | tail -n 3)" 'mempool.default,pytorch,yes,68,yes,2055208960,2055208960,yes,1.000
mempool.default,vmm,yes,711,yes,1180696576,1180696576,yes,1.000
mempool.default,cupy,yes,98,yes,1809842176,1809842176,yes,1.000' &&
		expect 'what is said' "$(cat said)" 'lab: 3 replays: the same calls on the simulated card 3; the same peak 3; driver time within 25 % of the measured 3 of 3'
}

# With wrong prices the times differ, and the profile that is made of the replays has the right ones again.
test_lab_measures_a_cost_profile() {
	[ -n "$program" ] && [ -x "${program%/*}/lab" ] || return $SKIP
	awk -F, -v OFS=, '$1 == "cudaMalloc" { $3 = 2 * $3 } $1 == "cuMemCreate" { $3 = 3 * $3 } 1' "$root/results/h200/profile.csv" > wrong.csv
	"${program%/*}/lab" sim --device sim --rounds 1 --cost wrong.csv --profile made.csv --policies 'pytorch;bfc;vmm;dali-vm;gmlake' -o rows.csv \
		"$root"/traces/{cudagraph,mempool}.default.cft 2> said || { cat said >&2; return 1; }
	for csv in made.csv "$root/results/h200/profile.csv"; do grep -E '^(cudaMalloc|cudaFree|cuMemCreate|cuMemMap),' "$csv" > "${csv##*/}.calls"; done
	cmp made.csv.calls profile.csv.calls && ! grep -q 'of the measured 10 of 10' said
}

# ---- scripts/build/check_layers.py

layers_project() {
	command -v python3 > /dev/null || return $SKIP
	mkdir -p docs scripts/build src/base src/replay src/include/frag policies src/device/cuda src/cli/two
	sed -n '/^## Layers/,/^## Where/p' "$root/docs/architecture.md" > docs/architecture.md
	cp "$root/scripts/build/check_layers.py" scripts/build/
	touch src/replay/spec.h src/base/outfile.h src/include/frag/base.h
	echo '#include <frag/base.h>' > src/base/base.c
	echo '#include "outfile.h"' > src/replay/spec.c
	echo '#include <cuda.h>' > src/device/cuda/cuda.c
	touch src/cli/cmd_one.c src/cli/shared.h src/cli/two/cmd_two.c src/cli/two/two.h
	echo '#include "cli/shared.h"' > src/cli/one_more.c
}

test_layers_names_each_wrong_include() {
	layers_project || return
	echo '#include "spec.h"' > src/base/upward.c
	echo '#include <cuda_runtime_api.h>' > policies/driver.c
	echo '#include "../src/replay/spec.h"' > policies/engine.c
	echo '#include "base.h"' > src/include/frag/opt.h
	echo '#include "cli/two/two.h"' > src/cli/one_more.c
	mkdir src/new && echo '#include "outfile.h"' > src/new/file.c
	scripts/build/check_layers.py > out 2>&1 && return 1
	# and nothing of what goes in the right direction
	expect 'what is reported' "$(sed -n 's/: .*//p' out | sort)" 'check_layers
policies/driver.c:1
policies/engine.c:1
src/base/upward.c:1
src/cli/one_more.c:1
src/include/frag/opt.h:1
src/new/file.c:1'
}

test_layers_names_circles() {
	layers_project || return
	mkdir -p src/trace/one src/trace/two
	echo '#include "b.h"' > src/base/a.h
	echo '#include "a.h"' > src/base/b.c
	touch src/base/b.h
	echo '#include "trace/two/y.h"' > src/trace/one/x.c
	echo '#include "trace/one/z.h"' > src/trace/two/y.c
	touch src/trace/one/z.h src/trace/two/y.h
	# by calls: one header hides them; a name in a text, and a function of the file itself, are no calls
	printf 'int go_up(int);\nint go_down(int);\n' > src/base/both.h
	printf '#include "both.h"\nint go_up(int x)\n{\n\treturn go_down(x);\n}\n' > src/base/up.c
	printf '#include "both.h"\nint go_down(int x)\n{\n\treturn x ? go_up(x - 1) : 0;\n}\n' > src/base/down.c
	printf '#include "both.h"\nstatic int go_down(int x)\n{\n\treturn x;\n}\nint other(int x)\n{\n\treturn go_down(x) + !"go_up(x)";\n}\n' > src/base/other.c
	scripts/build/check_layers.py > out 2>&1 && return 1
	expect 'the circles' "$(sed -n 's/^check_layers: //p' out)" 'need each other: src/base/a, src/base/b
need each other: src/trace/one, src/trace/two
need each other: src/base/down, src/base/up' || return
	grep -q 'src/base/up calls go_down in src/base/down' out && rm src/base/up.c || { cat out >&2; return 1; }
	# with their reasons; a reason without a circle is one too many
	printf '\n## Circles\n\n| which | why |\n|---|---|\n| `src/base/b`, `src/base/a` | so |\n| `src/trace/one`, `src/trace/two` | so |\n\n## B\n' >> docs/architecture.md
	scripts/build/check_layers.py > out 2>&1 || { cat out >&2; return 1; }
	rm src/trace/one/x.c
	scripts/build/check_layers.py > out 2>&1 && return 1
	expect 'the reason left over' "$(sed -n 's/^check_layers: //p' out)" \
		'docs/architecture.md excuses a circle that is not there: src/trace/one, src/trace/two'
}

# ---- scripts/build/budget.py

test_budget_counts_everything_and_fails_above_a_limit() {
	for tool in git python3 ctags; do command -v $tool > /dev/null || return $SKIP; done
	mkdir -p scripts/build src/base results
	cp "$root/scripts/build/budget.py" scripts/build/
	printf '1\n2\n%0150d\n' 0 > src/base/a.c
	printf 'def f():\n    pass\n' > results/a.py
	printf 'two words\n' > a.md
	printf '1\n2\n' > src/table.csv
	git init -q . && git add src results a.md && git -c user.name=a -c user.email=a@b commit -qm first
	echo 4 >> src/base/a.c
	count() { scripts/build/budget.py --count "$@" | awk -v name="$row" 'index($0, name) == 1 { print $NF }'; }
	row='code src/base ' && expect 'a wide line counts twice' "$(count)" 5 && expect 'a commit' "$(count HEAD)" 4 &&
		row='code results ' && expect 'results' "$(count)" 2 && row='words . ' && expect 'words' "$(count)" 2 &&
		row='tables src ' && expect 'tables' "$(count)" 4 || return
	printf 'code src/base 5\nlongest python 2\ntwins 0\n' > budget.txt
	scripts/build/budget.py > out 2>&1 || { cat out >&2; return 1; }
	printf 'code src/base 4\nlongest python 1\ntables src 4\n' > budget.txt
	scripts/build/budget.py > out 2>&1 && return 1
	expect 'what is exceeded' "$(cat out)" 'budget: code src/base is 5, its budget 4
budget: longest python is 2, its budget 1 results/a.py: f'
}

# ---- scripts/README.md

test_each_script_is_named() {
	cd "$root" || return
	local bad=0 name
	while IFS= read -r name; do
		grep -qF "| \`$name\` |" scripts/README.md || { echo "scripts/README.md does not name $name" >&2; bad=1; }
	done < <(find scripts scripts/build scripts/lab -maxdepth 1 -type f ! -name README.md -not -path '*/__pycache__/*' | sed 's,^scripts/,,' | sort -u)
	while IFS= read -r name; do
		[ -e "scripts/$name" ] || { echo "scripts/README.md names $name, which is not there" >&2; bad=1; }
	done < <(sed -n 's/^| `\([^`]*\)` |.*/\1/p' scripts/README.md)
	while IFS= read -r name; do
		echo "scripts/README.md lists $name twice" >&2; bad=1
	done < <(grep -oE '^\| .*`(, `[^`]*`)* \|' scripts/README.md | grep -oE '^[^|]*\|[^|]*' | grep -oE '`[^`]+`' | tr -d '`' | sed 's,.*/,,' | sort | uniq -d)
	return $bad
}

# ---- make T=name

# One test by its whole name, by its last part, and one case of a script; nothing else runs.
test_make_runs_one_test() {
	tests_project
	cp "$root/Makefile" .
	# what `check` needs is there already
	sed -i 's/^check: \$(WANTED)$/check:/' Makefile
	mkdir -p build && mv b build/release && ln -s build/release b
	for name in good bad; do touch "tests/unit/test_$name.c"; done
	fake_test good 'echo good ran'
	fake_test bad 'echo bad ran; exit 3'
	fake_script cli 'echo "cli: $2"'
	expect 'by its whole name' "$(make --no-print-directory CUDA=0 T=unit/good 2>&1)" 'good ran' &&
		expect 'by its last part' "$(make --no-print-directory CUDA=0 T=good 2>&1)" 'good ran' &&
		expect 'a case of a script' "$(make --no-print-directory CUDA=0 T=cli/help_each 2>&1)" 'cli: help_each' &&
		! make --no-print-directory CUDA=0 T=bad > out 2>&1 && grep -q 'bad ran' out &&
		! make --no-print-directory CUDA=0 T=nothing > out 2>&1 && grep -q "no test 'nothing'" out
}

# ---- Makefile: registries follow the files

build_project() {
	mkdir -p src/base src/cli src/monitor src/device/sim src/include/frag src/pretend src/plan/kvcache policies/pytorch scripts/build results/card
	cp "$root/Makefile" .
	cp "$root/scripts/build/"{cost_inc.py,protocol.awk} scripts/build/
	cp "$root/src/pretend/protocol.def" src/pretend/
	echo call,bytes,ns > results/card/profile.csv
	touch src/device/sim/cost.h src/include/frag/device.h scripts/record_torch.py
	echo head | tee src/device/cards.csv src/plan/kvcache/models.csv > policies/pytorch/releases.csv
	echo "<p>" > src/monitor/page.html
	printf '#include <stdio.h>\n#define FRAG_ENTRY(n) puts(#n);\nint main(void)\n{\n#include "policy_list.inc"\nreturn 0;\n}\n' > src/main.c
	echo 'extern int frag_x; int frag_x;' > src/base/base.c
	for name in first second; do echo "extern int frag_$name; int frag_$name;" > policies/$name.c; done
}

remake() { make --no-print-directory CUDA=0 "$@" > make.log 2>&1 || { cat make.log >&2; return 1; }; }

test_make_follows_new_and_deleted_files() {
	build_project
	remake && expect 'the first list' "$(build/release/cufrag)" $'first\nsecond' || return
	rm policies/second.c
	remake && expect 'the list after a deletion' "$(build/release/cufrag)" first || return
	expect 'the archive after a deletion' "$(ar t build/release/libcufrag.a | sort | tr '\n' ' ')" 'base.o first.o ' || return
	echo 'extern int frag_third; int frag_third;' > policies/third.c
	remake && expect 'the list after an addition' "$(build/release/cufrag)" $'first\nthird'
}

test_make_does_nothing_twice() {
	build_project
	remake && remake && ! grep -E '^ +(CC|AR|LD)' make.log
}

test_make_rebuilds_when_flags_change() {
	build_project
	remake && remake CFLAGS=-DX && expect 'objects rebuilt' "$(grep -c '^  CC' make.log)" 4
}

test_make_has_one_set_of_flags() {
	build_project
	echo '/* FRAG_VERSION */' >> src/main.c # which is compiled with a flag more
	remake build/release/obj/src/main.o && cp build/release/flags first && remake && cmp first build/release/flags
}

test_make_refuses_unknown_values() {
	build_project
	! make CUDA=yes > make.log 2>&1 && grep -q 'unknown CUDA=yes; use auto, 0 or 1' make.log &&
		! make BUILD=fast > make.log 2>&1 && grep -q 'unknown BUILD=fast; use release' make.log &&
		! make CUDA=1 NVCC= > make.log 2>&1 && grep -q 'CUDA=1 but no nvcc found' make.log
}

# ---- scripts/build/run_tests.sh: what counts as what

# A project whose only tests are programs that print what cmocka would.
tests_project() {
	mkdir -p scripts/build tests/unit b/tests/unit
	cp "$root/scripts/build/run_tests.sh" scripts/build/
	for name in agree cli fleet golden gpu json report scripts pretend view; do fake_script "$name" 'echo "0 passed, 0 failed, 0 skipped"'; done
}
fake_script() { # NAME BODY
	mkdir -p "tests/$1"
	printf '#!/bin/sh\n%s\n' "$2" > "tests/$1/run.sh"
	chmod +x "tests/$1/run.sh"
}
fake_test() { # NAME, then the body of a script
	touch "tests/unit/test_$1.c"
	printf '#!/bin/sh\n%s\n' "$2" > "b/tests/unit/test_$1"
	chmod +x "b/tests/unit/test_$1"
}
summary() { scripts/build/run_tests.sh b 2> err | tail -n 1; }

# kind of test, passed, failed, skipped, and the body of a test that must be counted so
test_results_are_counted() {
	local kind passed failed skipped body status
	while read -r kind passed failed skipped body; do
		rm -rf scripts tests b
		tests_project
		"fake_$kind" "cli" "$body"
		scripts/build/run_tests.sh b > said 2> err
		status=$?
		expect "summary of $body" "$(tail -n 1 said)" "$passed passed, $failed failed, $skipped skipped" || return
		expect "exit status after $body" $status $((failed > 0)) || return
	done <<-'END'
	test 2 0 1 printf '1..3\nok 1 - a\nok 2 - b\nnot ok 3 # SKIP c\n'
	test 1 1 0 printf '1..2\nok 1 - a\nnot ok 2 - b\n'; exit 1
	test 1 2 0 printf '1..3\nok 1 - a\n'; kill -SEGV $$
	test 0 1 0 kill -SEGV $$
	test 1 1 0 printf '1..1\nok 1 - a\n'; exit 99
	script 5 0 2 echo noise; echo '5 passed, 0 failed, 2 skipped'
	script 5 1 2 echo '5 passed, 0 failed, 2 skipped'; exit 3
	script 0 1 0 echo 'stopped halfway'
	END
	rm tests/cli/run.sh
	expect 'summary without the script' "$(summary)" '0 passed, 1 failed, 0 skipped'
}

test_each_test_says_how_long_it_took() {
	tests_project
	fake_test crash 'kill -SEGV $$'
	expect lines "$(scripts/build/run_tests.sh b 2> err | grep -c '^  unit/crash  *0 passed  *1 failed .* [0-9.]* s  *[0-9.]* s CPU$')" 1
}

test_count_a_hang_as_failure() {
	tests_project
	fake_test hang "printf '1..1\\n'; sleep 60"
	expect summary "$(TEST_TIMEOUT=1 summary)" '0 passed, 1 failed, 0 skipped'
}

test_nothing_run_is_a_failure() {
	tests_project
	expect summary "$(summary)" '0 passed, 0 failed, 0 skipped' && ! scripts/build/run_tests.sh b > /dev/null 2>&1
}

# ---- scripts/build/setup.sh, with a stand-in for apt-get and a PATH that lacks gnuplot

sparse_path() {
	local tool
	mkdir -p path bin
	for tool in bash env sh id gcc make pkg-config python3 awk sed cat ls chmod; do
		[ -e "$(command -v $tool)" ] && ln -s "$(command -v $tool)" path/
	done
	cat > path/apt-get <<-'END'
	#!/bin/sh
	echo "$*" >> apt.log
	case $* in *install*) echo > path/gnuplot; chmod +x path/gnuplot ;; esac
	END
	printf '#!/bin/sh\nexec "$@"\n' > path/sudo
	chmod +x path/apt-get path/sudo
}

test_setup_installs_what_is_missing_and_nothing_else() {
	sparse_path
	PATH=$PWD/path "$root/scripts/build/setup.sh" > out 2> err || { cat err >&2; return 1; }
	expect 'what it says' "$(cat err)" 'setup: installing gnuplot-nox' &&
		expect 'calls of apt-get' "$(grep -c . apt.log)" 2 &&
		expect 'packages' "$(sed -n 's/.*recommends //p' apt.log)" gnuplot-nox || return
	rm apt.log
	PATH=$PWD/path "$root/scripts/build/setup.sh" > out 2> err || return
	expect 'the second time' "$(cat out err; ls apt.log 2> /dev/null)" ''
}

test_setup_without_apt_names_the_packages() {
	sparse_path
	rm path/apt-get
	! PATH=$PWD/path "$root/scripts/build/setup.sh" > out 2> err && grep -q 'missing:.* gnuplot-nox' err
}

test_setup_that_installs_in_vain_fails() {
	sparse_path
	printf '#!/bin/sh\n' > path/apt-get
	! PATH=$PWD/path "$root/scripts/build/setup.sh" > out 2> err && grep -q 'still missing after the installation: gnuplot-nox' err
}

# ---- the README's first chart: requested and reserved after each of the four steps

test_four_steps_of_seeddemo() {
	[ -n "$program" ] || return $SKIP
	"$program" compare "$root/traces/seeddemo.default.cft" --policy pytorch --formats svg --out report > log 2>&1 || { cat log >&2; return 1; }
	expect 'event, requested, reserved (MiB)' "$(awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["state"] == "run" { print $at["event"], $at["requested_max_bytes"] / 1048576, $at["reserved_max_bytes"] / 1048576 }
		' report/memory.csv)" '0 400 400
1 0 400
2 200 400
3 0 400
4 0 0'
}

# ---- scripts/build/count_check.sh

counts() { (cd "$root" && COUNTS_EXPECTED=$scratch/counts.csv COUNTS_WORK=$scratch/counts scripts/build/count_check.sh "$@") > log 2>&1; }

test_counts_name_what_grew() {
	local b=${program%/cufrag}
	[ -z "${FRAG_TEST_QUICK:-}" ] && command -v valgrind > /dev/null || return $SKIP
	[ -n "$program" ] && ! grep -q -e -fsanitize -e '-O[01] ' "$b/flags" || return $SKIP
	counts "$b" read-pickle && grep -q '^counts: no counts for .*: skipped$' log || { cat log >&2; return 1; }
	counts --update "$b" read-pickle && counts "$b" read-pickle || { cat log >&2; return 1; }
	# a function had a twentieth less; the whole had that much less
	cp "$scratch/counts.csv" whole.csv
	awk -F, -v OFS=, 'NR == 1 || /libraries/ { print; next }
		$3 == "(total)" { total = $0; split($0, t, ","); next }
		!cut { cut = int($4 / 20); name = $3; $4 -= cut }
		{ rest[++n] = $0 }
		END { print t[1], t[2], t[3], t[4] - cut; for (i = 1; i <= n; i++) print rest[i]; print name > "name" }' \
		whole.csv > "$scratch/counts.csv"
	counts "$b" read-pickle && { cat log >&2; return 1; }
	grep -q 'GREW$' log && grep -qF "    $(cat name) " log || { cat log >&2; return 1; }
	# the same function, but others have become faster by as much
	sed "s/(total),.*/(total),$(sed -n 's/.*(total),//p' whole.csv)/" "$scratch/counts.csv" > x && mv x "$scratch/counts.csv"
	counts "$b" read-pickle || { cat log >&2; return 1; }
}

# ---- make install

make_install() {
	make -C "$root" --no-print-directory -o "$program" -o "${program%/cufrag}/libcufrag.a" -o "${program%/cufrag}/libcufrag_torch.so" B="${program%/cufrag}" "$@" \
		DESTDIR="$PWD/image" PREFIX="${prefix:-/usr}" > log 2>&1 || { cat log >&2; return 1; }
}

test_install_puts_everything_in_place() {
	[ -n "$program" ] || return $SKIP
	make_install install || return 1
	image/usr/bin/cufrag --help > /dev/null && test -s image/usr/share/cufrag/plot/style.gp &&
		image/usr/bin/cufrag-record-torch --help > /dev/null && test -s image/usr/share/doc/cufrag/README.md &&
		image/usr/bin/cufrag compare "$root/traces/gnn.default.cft" --policy native --out report > log 2>&1 &&
		test -s report/report.html || { cat log >&2; return 1; }
	XDG_CACHE_HOME=$PWD/cache image/usr/bin/cufrag run -- sh -c 'cd "$CUFRAG_PRETEND_HOME" && pwd' > said
	expect 'what enters programs' "$(cat said)" "$PWD/image/usr/share/cufrag/inject" || return 1
	if command -v python3 > /dev/null && nm -D image/usr/lib/cufrag/cufrag/libcufrag_torch.so > symbols && ! grep -qE '__asan|__tsan' symbols; then
		expect 'the package' "$(PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=image/usr/lib/cufrag python3 -c 'import cufrag; print(cufrag.torch.library().frag_live_abi())')" 3 || return 1
	fi
	# every picture that the README shows, every command its page
	sed -n 's/.*!\[[^]]*\](\([^)]*\)).*/\1/p' "$root/README.md" | while read -r picture; do
		test -s "image/usr/share/doc/cufrag/$picture" || { echo "no $picture" >&2; exit 1; }
	done || return 1
	for c in $("$program" help --format names); do
		test -s "image/usr/share/man/man1/cufrag-$c.1" || { echo "no page of $c" >&2; return 1; }
	done
	bash -n image/usr/share/bash-completion/completions/cufrag || return 1
	(. image/usr/share/bash-completion/completions/cufrag
	COMP_WORDS=("$program" replay --on-oom s) COMP_CWORD=3
	_cufrag && expect 'completion of a word' "${COMPREPLY[*]}" 'stop skip') || return 1
	if command -v groff > /dev/null; then
		groff -man -ww -T ascii -P -cbu image/usr/share/man/man1/cufrag-compare.1 > page 2> warnings && expect 'groff' "$(cat warnings)" '' &&
			grep -q -- '--on-oom' page || { cat warnings >&2; return 1; }
	fi
	make_install uninstall || return 1
	expect 'what is left' "$(find image ! -type d)" ''
}

# A blank parts no name in two, neither when it comes nor when it goes; whatever the umask, others may read.
test_install_where_names_have_blanks() {
	[ -n "$program" ] || return $SKIP
	mkdir -p image/my && echo > image/my/thesis.tex
	(umask 077 && prefix='/my tools' make_install install) || return 1
	expect 'what others cannot read' "$(find 'image/my tools' ! -perm -004)" '' &&
		'image/my tools/bin/cufrag' --version > log && grep -q '^prefix=/my tools$' 'image/my tools/lib/pkgconfig/cufrag.pc' || return 1
	(prefix='/my tools' make_install uninstall) && expect 'what is left' "$(find image ! -type d)" image/my/thesis.tex
}

# Debian's openmpi-bin brings mpicc, but not mpi.h.
test_parts_without_their_header_are_left_out() {
	mkdir path && printf '#!/bin/sh\nfor a; do [ "$a" = mpi.h ] && exit 1; done\nexec cc "$@"\n' > path/mpicc && chmod +x path/mpicc
	make -C "$root" -n MPICC="$PWD/path/mpicc" B="$PWD/b" > log 2>&1
	grep -q 'finds no mpi.h, mpirun is left out' log && ! grep -q 'cufrag_mpi.so' log || { tail -n 5 log >&2; return 1; }
}

test_outsiders_link_the_library() {
	[ -n "$program" ] && command -v pkg-config > /dev/null || return $SKIP
	nm "$program" > symbols # not into grep: it would end nm early, and the pipe with it
	grep -qE '__asan_init|__tsan_init' symbols && return $SKIP
	make_install install || return 1
	# shellcheck disable=SC2046 # the flags are words
	"${CC:-cc}" -std=c11 -Wall -Werror -o outside "$root/docs/external-device/counting.c" \
		$(PKG_CONFIG_PATH=$PWD/image/usr/lib/pkgconfig pkg-config --define-variable=prefix="$PWD/image/usr" --cflags --libs cufrag) > log 2>&1 ||
		{ cat log >&2; return 1; }
	./outside "$root/traces/gnn.default.cft" > said 2>&1 && grep -q '^cudaMalloc [1-9]' said || { cat said >&2; return 1; }
}

test_deb_installs_runs_and_goes() {
	[ -n "$program" ] && [ -z "${FRAG_TEST_QUICK:-}" ] || return $SKIP
	command -v dh > /dev/null && [ "$(id -u)" -eq 0 ] || { echo 'no debhelper, or not root' >&2; return $SKIP; }
	"$root/scripts/build/deb.sh" "${program%/cufrag}" 0.0.1 > log 2>&1 || { cat log >&2; return 1; }
	mkdir -p clean/var/lib/dpkg/info clean/var/lib/dpkg/updates clean/var/lib/dpkg/triggers
	: > clean/var/lib/dpkg/status
	dpkg --root="$PWD/clean" --force-depends --force-not-root --force-script-chrootless -i "${program%/cufrag}"/deb/cufrag_*.deb > log 2>&1 || { cat log >&2; return 1; }
	clean/usr/bin/cufrag verify "$root/traces/gnn.default.cft" > said && grep -qx 'verdict: identical' said || { cat said >&2; return 1; }
	dpkg --root="$PWD/clean" --force-not-root --force-script-chrootless --purge cufrag > log 2>&1 || { cat log >&2; return 1; }
	expect 'what is left' "$(find clean/usr ! -type d 2> /dev/null)" ''
}

# ---- the Python package

test_python_package_without_pytorch() {
	command -v python3 > /dev/null || return $SKIP
	python3 "$root/tests/python/test_package.py" "$root" > said 2>&1 || { cat said >&2; return 1; }
}

# notebook_python: the first Python with NumPy
notebook_python() {
	for python in ${PYTHON:-} python3 /usr/bin/python3 "${TORCH_ENV:-$root/build/torch-env}/bin/python"; do
		"$python" -c 'import numpy' > /dev/null 2>&1 && { command -v "$python"; return; }
	done
	return 1
}

test_recordings_as_arrays_in_python() {
	[ -n "$program" ] || return $SKIP
	python=$(notebook_python) || { echo 'no Python with NumPy' >&2; return $SKIP; }
	"$python" "$root/tests/python/test_recording.py" "$root" "$program" > said 2>&1 || { cat said >&2; return 1; }
}

# programs_for_a_wheel: those of `make wheel-programs`, which `make test` makes where there are static libraries
programs_for_a_wheel() {
	wheel_programs=${program%/*}/glibc-2.28
	[ -n "$program" ] && [ -z "${FRAG_TEST_QUICK:-}" ] && [ -e "${program%/*}/libcufrag_torch.so" ] || return $SKIP
	[ ! -x "$wheel_programs/cufrag" ] || return 0
	case $(gcc -print-file-name=libsqlite3.a) in /*) echo 'no programs for a wheel: see `make wheel-programs`' >&2; return 1 ;; esac
	return $SKIP
}

test_wheel_programs_start_on_glibc_2_28() {
	programs_for_a_wheel || return
	for file in "$wheel_programs"/cufrag "$wheel_programs"/lib*.so; do
		objdump -T "$file" | sed -n 's/.*(GLIBC_2\.\([0-9]*\).*/\1/p' | sort -n | tail -n 1 > newest
		[ -s newest ] && [ "$(cat newest)" -le 28 ] || { echo "$file wants glibc 2.$(cat newest)" >&2; return 1; }
		objdump -p "$file" | awk '/NEEDED/ { print $2 }' | grep -vxE '(libc|libm|ld-linux-x86-64)\.so\.[26]|lib(pthread\.so\.0|dl\.so\.2|rt\.so\.1)' > others
		expect "libraries that $file wants" "$(cat others)" ''
	done
	"$wheel_programs/cufrag" verify "$root/traces/gnn.default.cft" 2>&1 | tail -n 1 > verdict
	expect 'the verdict' "$(cat verdict)" 'verdict: identical' || return
	# what headers of glibc 2.38 and newer make of strtol and sscanf; constructors, which old ones do not call by themselves
	cat > newer.c <<-'END'
		#include <stdio.h>
		extern long __isoc23_strtol(const char *, char **, int);
		extern int __isoc23_sscanf(const char *, const char *, ...);
		static int constructed;
		__attribute__((constructor)) static void construct(void) { constructed++; }
		int main(void)
		{
			double d;
			int n = __isoc23_sscanf("7 2.5", "%*d %lf", &d);
			return printf("%ld %d %g %d\n", __isoc23_strtol("42x", NULL, 10), n, d, constructed) < 0;
		}
	END
	gcc -L "$wheel_programs/stubs" -o newer newer.c && expect 'a program from newer headers' "$(./newer)" '42 1 2.5 1'
}

test_wheel_installs_and_runs_without_a_network() {
	programs_for_a_wheel || return
	python3 -c 'import venv, ensurepip' 2> /dev/null || { echo 'no venv' >&2; return $SKIP; }
	"$root/scripts/build/wheel.sh" "${program%/cufrag}" "$(sed -n 's/^RELEASE := //p' "$root/Makefile")" > said || return
	wheel=$(tail -n 1 said)
	expect 'the tag' "${wheel##*-py3}" '-none-manylinux_2_28_x86_64.whl' || return
	python3 -m venv env && env/bin/pip install -q --no-index --no-deps --disable-pip-version-check "$wheel" > log 2>&1 ||
		{ cat log >&2; return 1; }
	env/bin/cufrag verify "$root/traces/gnn.default.cft" 2>&1 | tail -n 1 > verdict && expect 'the verdict' "$(cat verdict)" 'verdict: identical' &&
		expect 'the version' "$(env/bin/cufrag --version)" "$("$program" --version)" &&
		expect 'python -m' "$(env/bin/python -m cufrag --version)" "$("$program" --version)" &&
		env/bin/python -c 'import cufrag; assert cufrag.torch.policy() is None; assert cufrag.Kind.MARK == 6; cufrag.torch.library(); print(cufrag.torch.library_path())' > said &&
		case $(cat said) in "$PWD"/env/*) ;; *) cat said >&2; return 1 ;; esac
	[ $? -eq 0 ] || return
	XDG_CACHE_HOME=$PWD/cache env/bin/cufrag run -- sh -c 'ls "$CUFRAG_PRETEND_HOME"' > said && grep -qx sitecustomize.py said || return
	env/bin/python - > said <<-'END' || return
		import cufrag
		from importlib.metadata import files, metadata
		about = metadata("cufrag")
		text = about.get_payload() or about["Description"]
		assert cufrag.__version__ == about["Version"], (cufrag.__version__, about["Version"])
		assert about["Description-Content-Type"] == "text/markdown" and text.startswith("# cufrag\n"), text[:80]
		for at in files("cufrag"):
		    print(at)
	END
	grep -qx cufrag/py.typed said || { echo 'the wheel does not say that it is typed' >&2; return 1; }
	expect 'the chart scripts' "$(sed -n 's|^cufrag/share/cufrag/plot/|plot/|p' said | sort)" "$(cd "$root/scripts" && printf '%s\n' plot/*.gp | sort)" &&
		expect 'the licences' "$(sed -n 's|^cufrag/licenses/||p' said | sort | tr '\n' ' ')" 'cufrag jansson microhttpd nettle sqlite3 xxhash yaml zstd ' || return
	command -v gnuplot > /dev/null || return $SKIP
	env/bin/cufrag compare "$root/traces/seeddemo.default.cft" --out report > said 2>&1 && [ -s report/memory.svg ] || { cat said >&2; return 1; }
	mkdir bare && ln -s "$PWD/env/bin/python3" bare/ # where nothing is installed
	PATH=$PWD/bare env/bin/cufrag compare "$root/traces/seeddemo.default.cft" --out none > said 2>&1
	expect 'the status without gnuplot' $? 5 && grep -q 'cannot run gnuplot .*install it' said && [ ! -e none ]
}

# ---- charts

test_charts_of_explain_show_the_refusal_the_limit_and_reserved_memory() {
	[ -n "$program" ] && command -v gnuplot > /dev/null || return $SKIP
	"$program" explain "$root/traces/oomcap.default.cft" --out page > said 2>&1 || { cat said >&2; return 1; }
	for text in '[0-9.]* [MG]iB refused at [0-9.]* s' 'limit [0-9.]* [MG]iB' 'the refused request' reserved 'recorded time (s)'; do
		grep -qE ">${text//[()]/.}<" page/explain-live.svg || { echo "no '$text' in the chart" >&2; return 1; }
	done
	# many a recording does little for seconds: half of the events on a tenth of the axis are no chart
	"$program" explain "$root/traces/leak.frames.cft" --out leak > said 2>&1 && grep -q '>trace event (number)<' leak/explain-live.svg
}

# Stops of the chart are few, so on an axis of time a pause must begin with the current state, not with a peak near it.
test_charts_of_explain_show_what_was_held_during_a_pause() {
	[ -n "$program" ] && command -v gnuplot > /dev/null || return $SKIP
	awk 'BEGIN {
		print "action,id,size,stream,time_us\nalloc,0,52428800,0,0"
		for (i = 1; i <= 3000; i++) {
			t = i * 100 + (i > 1501) * 900000
			if (i == 1496) print "alloc,9000,20971520,0," t
			printf "alloc,%d,%d,0,%d\nfree,%d,,0,%d\n", i, 1048576 * (i == 1501 ? 999 : 1 + i % 40), t, i, t + 50
			if (i == 1510) print "free,9000,,0," t + 60
		}
	}' > pause.csv
	"$program" explain pause.csv --out page > said 2>&1 || { cat said >&2; return 1; }
	awk -F, '$2 == "reserved" { next } $4 < 0.16 { if ($4 != time) sum = 0; time = $4; sum += $5 } END { print sum }' \
		<(sort -t, -k4,4n page/explain-live.csv) > held
	expect 'what is live during the pause' "$(cat held)" 73400320
}

test_charts_give_policies_colours_of_their_own_and_legends_less_room_than_plots() {
	command -v gnuplot > /dev/null || return $SKIP
	gnuplot -e 'load "'"$root"'/scripts/plot/style.gp"; set print "-"; do for [i = 0:11] { print pcolor(i) }; do for [r = 1:40] { if (LEGEND_ROW * r >= 0.8 * tall(280, r)) { print "a legend of ", r } }' > said || return
	expect 'what is there twice' "$(sort said | uniq -d)" '' && expect 'how many colours' "$(wc -l < said)" 12
}

test_charts_explain_each_class_of_latency() {
	[ -n "$program" ] && command -v gnuplot > /dev/null || return $SKIP
	"$program" compare "$root/traces/seeddemo.default.cft" --out page --formats svg > said 2>&1 || { cat said >&2; return 1; }
	sed -n '/define FRAG_CLASS_LIST/,/^$/s/.*X([A-Z]*, "\([a-z]*\)").*/\1/p' "$root/src/include/frag/policy.h" > classes
	while read -r class; do
		grep -A3 'Time per call by how' page/report.html | grep -qiE "\b$class: " || { echo "'$class' is not explained" >&2; return 1; }
	done < classes
	expect 'how many classes' "$(wc -l < classes)" "$(sed -n '/define FRAG_CLASS_LIST/,/^$/p' "$root/src/include/frag/policy.h" | grep -c 'X([A-Z]')"
}

test_pictures_of_documents_are_whole() {
	command -v python3 > /dev/null || return $SKIP
	python3 - "$root" <<-'END'
		import glob, re, sys
		bad = 0
		for path in sorted(glob.glob(sys.argv[1] + "/docs/img/*.svg") + glob.glob(sys.argv[1] + "/results/**/img/*.svg", recursive=True)):
		    text = open(path, encoding="utf-8").read()
		    wide, high = (float(v) for v in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())
		    for x, y in re.findall(r'<g transform="translate\(([-\d.]+),([-\d.]+)\)[^>]*>\s*<text>', text):
		        if not (0 <= float(x) <= wide and 8 <= float(y) <= high - 4):
		            bad += 1
		            print("%s: a text at %s, %s of %g x %g" % (path, x, y, wide, high), file=sys.stderr)
		sys.exit(bad > 0)
	END
}

# ---- tables of the pretended card

test_tables_of_cudnn_are_of_the_plans_beside_their_generator() {
	command -v zstd > /dev/null || return $SKIP
	head=$(zstd -dcf "$root/scripts/cudnn/plans.csv.zst" | head -n 1)
	for table in trees workspaces; do
		expect "the head of cufrag_$table.csv" "$(head -n 1 "$root/src/pretend/python/cufrag_$table.csv")" "$head" || return
	done
}

# ---- the runner: each case in a folder of its own

program=${1:+$(realpath "$1")}
run_cases "${2:+$2\$}"
