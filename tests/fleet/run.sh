#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sweep and fleet end to end: the same bytes from any number of workers, ranks and shards; killed
# workers, ranks and sweeps; hostile and missing traces; a real mpirun where it is installed.
#	run.sh PROGRAM [TEST]
# Last line: N passed, N failed, N skipped.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${1:?usage: run.sh PROGRAM}")
root=$PWD
. tests/support/cases.sh
strict=1

trap 'rm -rf "$scratch"' EXIT

traces=()
for t in gnn.default serve.default mempool.default streams.default seeddemo.default modelpar.default; do
	traces+=("$root/traces/$t.cft")
done
sweep() { "$program" sweep --policies 'recorded;expandable;vmm' "$@"; }
whole=$scratch/whole.sqlite
sweep "${traces[@]}" --threads 1 -o "$whole" > /dev/null || { echo 'the first sweep failed'; echo '0 passed, 1 failed, 0 skipped'; exit 1; }

# ---- one machine

test_same_with_any_number_of_workers() {
	for n in 2 5; do
		sweep "${traces[@]}" --threads $n -o n.sqlite; cmp n.sqlite "$whole"
	done
	test ! -e n.sqlite.part
}

test_order_does_not_matter() {
	printf '%s\n' '# a list' '' "${traces[5]}" "${traces[4]}" "${traces[3]}" > list
	sweep "${traces[2]}" "${traces[1]}" "${traces[0]}" "${traces[0]}" --list list -o o.sqlite; cmp o.sqlite "$whole"
}

test_shards_make_the_whole() {
	for i in 0 1 2; do sweep "${traces[@]}" --shard $i/3 -o s.sqlite; done
	"$program" sweep --merge s.2-of-3.sqlite s.0-of-3.sqlite s.1-of-3.sqlite -o m.sqlite; cmp m.sqlite "$whole"
}

test_array_jobs_find_their_shard() {
	SLURM_ARRAY_TASK_ID=15 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_STEP=5 SLURM_ARRAY_TASK_COUNT=3 CUFRAG=$program \
		"$root/scripts/sweep_slurm.sh" "${traces[@]}" --policies buddy -o a.sqlite | grep -q 'wrote a.2-of-3.sqlite'
	JOB_COMPLETION_INDEX=1 sweep "${traces[@]}" --shard /3 -o k.sqlite | grep -q 'wrote k.1-of-3.sqlite'
	fails sweep "${traces[@]}" --shard /3 -o x.sqlite 2> err; grep -q 'SLURM_ARRAY_TASK_ID' err; test ! -e x.sqlite
}

# Each shard finds what the others have written, and does its own traces.
test_shards_write_where_they_read() {
	needs sqlite3
	for i in 1 2 3 4 5 6; do cp "${traces[4]}" t$i.cft; done
	for i in 0 1 2; do sweep . --shard $i/3 -o s.sqlite --csv s.csv; done
	"$program" sweep --merge s.*-of-3.sqlite -o s.sqlite
	test "$(sqlite3 s.sqlite 'SELECT count(*) FROM traces')" -eq 6
	sweep . --shard 1/3 -o s.sqlite --csv s.csv | grep -q '^answer: 2 traces' # after the merge, too
	ls s.0-of-3.csv s.1-of-3.csv s.2-of-3.csv
}

# What is missing is said, and in the end the whole is as if never parted.
test_missing_shards_are_named() {
	needs sqlite3
	local status=0
	for i in 0 1 2; do sweep "${traces[@]}" --shard $i/3 -o s.sqlite; done
	"$program" sweep --merge s.1-of-3.sqlite s.1-of-3.sqlite -o m.sqlite > out || status=$?
	test $status -eq 3; grep -qx 'results of shards are missing: 0, 2 of 3' out
	"$program" sweep --merge m.sqlite s.0-of-3.sqlite s.2-of-3.sqlite -o n.sqlite; cmp n.sqlite "$whole"
	sweep "${traces[@]:1}" --shard 0/3 -o other.sqlite
	fails "$program" sweep --merge other.0-of-3.sqlite s.1-of-3.sqlite -o x.sqlite 2> err
	grep -q 'other options or traces' err; test ! -e x.sqlite
}

test_outputs_replace_no_trace() {
	mkdir tr; for i in 1 2 3; do printf 'alloc,1,512\nfree,1\n' > tr/t$i.csv; done
	cat tr/* > before
	cp tr/t1.csv x.csv; echo x.csv > list
	fails "$program" sweep tr -o r.sqlite --csv tr/t1.csv 2> err; grep -q "'tr/t1.csv' is one of the traces" err
	fails "$program" sweep tr -o tr/t3.csv 2> err
	fails "$program" sweep --list list -o r.sqlite --csv x.csv 2> err
	fails "$program" sweep './x*.csv' -o x.csv 2> err
	cat tr/* | cmp - before; cmp x.csv tr/t1.csv
	"$program" sweep tr --policies buddy -o tr/r.sqlite --csv tr/r.csv; "$program" sweep tr --policies buddy -o tr/r.sqlite --csv tr/r.csv
}

test_part_is_no_link() {
	ln -s nowhere l.sqlite.part
	fails sweep "${traces[4]}" -o l.sqlite 2> err; grep -q "cannot write 'l.sqlite.part'" err
	test ! -e nowhere; test ! -e l.sqlite
}

test_names_reach_no_terminal_raw() {
	local name=$'esc\x1b]0;owned\x07\x1b[31m.csv'
	printf 'alloc,1,536870912\nfree,1\n' > "$name"
	"$program" sweep "$name" --policies 'buddy;caching' -o e.sqlite --csv e.csv > out 2>&1
	"$program" fleet e.sqlite > fleet 2>&1
	test -z "$(grep -l $'\x1b' out e.csv fleet)"
	grep -q '^esc?' e.csv; grep -q 'esc?' fleet
}

# 8,000 jobs with the times and curves of one: once minutes to hours.
test_many_jobs_take_seconds() {
	needs sqlite3
	"$program" sweep "${traces[4]}" -o j.sqlite > /dev/null
	python3 - <<-'END'
	import json, random, sqlite3
	random.seed(1)
	db = sqlite3.connect("j.sqlite")
	names = [c[1] for c in db.execute("pragma table_info(traces)")]
	items = [c[1] for c in db.execute("pragma table_info(items)")]
	trace = db.execute("select * from traces").fetchone()
	rows = db.execute("select * from items").fetchall()
	db.execute("delete from traces")
	db.execute("delete from items")
	def insert(table, columns, row, **new):
	    values = [new.get(c, v) for c, v in zip(columns, row)]
	    db.execute("insert into %s values(%s)" % (table, ",".join("?" * len(values))), values)
	for i in range(8000):
	    insert("traces", names, trace, path="j%d" % i, trace="%032x" % i, duration_us=3600 * 10**6,
	           start_us=17 * 10**14 + random.randrange(86400 * 10**6))
	    for k, row in enumerate(rows):
	        peak = random.randrange(1 << 30, 60 << 30)
	        curve = json.dumps([[j * 10**7, peak if j == 7 else random.randrange(peak)] for j in range(100)])
	        insert("items", items, row, item="%d-%d" % (i, k), trace="%032x" % i, peak_reserved_bytes=peak, curve=curve)
	db.commit()
	END
	(ulimit -t 120; exec "$program" fleet j.sqlite) > out
	grep -q '^8000 jobs\|8,000 jobs\|8000' out
}

test_numbers_of_others_are_checked() {
	needs sqlite3
	for set in peak_reserved_bytes=-1 peak_reserved_bytes=9223372036854775807; do
		cp "$whole" h.sqlite; sqlite3 h.sqlite "update items set $set"
		local status=0
		"$program" fleet h.sqlite > out 2> err || status=$?
		test $status -eq 3; grep -q 'holds a number that no sweep writes' err
	done
	cp "$whole" h.sqlite; sqlite3 h.sqlite "update items set curve='[[5,1],[0,-1],[18446744073709551616,1]]'"
	"$program" fleet h.sqlite > out
}

# The sweep itself is killed after the first results: it goes on, and the end is the same.
test_killed_sweep_goes_on() {
	"$program" sweep --policies 'recorded;expandable;vmm' "${traces[@]}" --threads 1 -o k.sqlite > /dev/null &
	local pid=$!
	until [ "$(stat -c %s k.sqlite.part-wal 2> /dev/null || echo 0)" -gt 60000 ] || ! kill -0 $pid 2> /dev/null; do :; done
	kill -KILL $pid 2> /dev/null || true
	wait $pid || true
	[ ! -e k.sqlite ] || skip 'the sweep ended before it could be killed'
	fails "$program" sweep "${traces[@]}" --policies buddy -o k.sqlite 2> err; grep -q 'a sweep with other options' err
	cp k.sqlite.part new.sqlite.part; sweep "${traces[@]}" --fresh -o new.sqlite > out; fails grep 'already there' out
	sweep "${traces[@]}" -o k.sqlite | grep 'already there'
	cmp k.sqlite "$whole"; cmp new.sqlite "$whole"; test ! -e k.sqlite.part
}

# A worker that is killed loses the trace in hand, which is done again.
test_killed_worker_is_replaced() {
	"$program" sweep --policies 'recorded;expandable;vmm' "${traces[@]}" --threads 2 -o w.sqlite &
	local pid=$!
	until pkill -KILL -P $pid -o || ! kill -0 $pid 2> /dev/null; do sleep 0.01; done
	wait $pid
	cmp w.sqlite "$whole"
}

test_hostile_traces_fail_alone() {
	needs sqlite3
	printf 'cuFragT!garbage' > bad.cft
	head -c 5000 "${traces[0]}" > cut.cft
	mkdir d; cp "${traces[4]}" d/; echo text > d/README
	local status=0
	sweep bad.cft cut.cft d -o h.sqlite > out 2> err || status=$?
	test $status -eq 3; grep -q "cut.cft' failed: " err; grep -q '1 file in folders is not a trace' out
	test "$(sqlite3 h.sqlite "SELECT count(*) FROM items WHERE status='completed'")" -eq 3
	# a worker that may not have the memory says so, and the others go on
	status=0
	sweep "${traces[@]}" --memory 96M -o m.sqlite > out 2> err || status=$?
	test "$(sqlite3 m.sqlite 'SELECT count(*) FROM traces WHERE error IS NULL')" -gt 0
}

# Files that earlier versions could not take (../shared/repro): each alone, named, within a worker's memory.
test_hostile_recordings_fail_alone() {
	needs sqlite3
	[ -d "$root/../shared/repro" ] || skip 'no ../shared/repro here'
	local status=0 files=("$root"/../shared/repro/*)
	sweep "$root/../shared/repro" "${traces[4]}" --memory 1G -o r.sqlite > out 2> err || status=$?
	test $status -eq 3
	grep -q "amp_big.pickle.xz' failed: .*implausibly" err; grep -q "x202.cft' failed: .*not possible" err
	fails grep -q $'\x1b' err out
	test "$(sqlite3 r.sqlite "SELECT count(*) FROM items WHERE status='completed' AND trace IN
		(SELECT trace FROM traces WHERE name='seeddemo.default')")" -eq 3
	test "$(sqlite3 r.sqlite 'SELECT count(*) FROM traces')" -eq ${#files[@]} # README is none, one is bundled
}

test_links_to_recordings_are_followed() {
	mkdir d; ln -s "${traces[4]}" d/a.cft; ln -s d e
	sweep e -o l.sqlite | grep -q '^answer: 1 trace, 3 results'
}

test_usage_errors() {
	fails sweep "${traces[0]}" 2> err; grep -q 'no results file' err
	fails sweep "${traces[0]}" --shard 3/3 -o x 2> err; grep -q 'shard' err
	fails sweep "${traces[0]}" --gpu nosuch -o x 2> err; grep -q "unknown gpu 'nosuch'" err
	fails "$program" sweep "${traces[0]}" --policies nosuch -o x 2> err; grep -q 'unknown policy' err
	fails sweep missing.cft -o x 2> err; grep -q 'missing.cft' err
	fails sweep 'no*match' -o x 2> err; grep -q 'nothing matches' err
	echo text > text
	fails "$program" sweep --merge text -o x 2> err
	fails "$program" fleet text 2> err
	test ! -e x; test ! -e x.part
}

test_results_hold_what_replay_says() {
	needs sqlite3
	local db csv
	db=$(sqlite3 "$whole" "SELECT peak_reserved_bytes FROM items JOIN traces USING(trace) WHERE name='gnn.default' AND policy='vmm'")
	csv=$("$program" replay "${traces[0]}" --policy vmm --json - | python3 -c 'import json,sys; print(json.load(sys.stdin)["results"][0]["peak_reserved_bytes"])')
	test "$db" -eq "$csv"
}

# ---- MPI

has_mpi() { needs mpirun; [ -e "$(dirname "$program")/cufrag_mpi.so" ] || skip 'cufrag_mpi.so was not built'; }
# what Open MPI itself keeps is no leak of ours
ranks() { ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 mpirun --allow-run-as-root --oversubscribe "$@"; }

test_mpirun_gives_the_same() {
	has_mpi
	ranks -n 4 "$program" sweep --policies 'recorded;expandable;vmm' "${traces[@]}" -o r.sqlite; cmp r.sqlite "$whole"
}

# One of four ranks is killed: whatever mpirun does then, what was done stays, and the rest follows.
test_killed_rank() {
	not_quick
	has_mpi
	ranks -n 4 "$program" sweep --policies 'recorded;expandable;vmm' "${traces[@]}" -o r.sqlite > out 2>&1 &
	local pid=$! victim=''
	until [ -n "$victim" ] || ! kill -0 $pid 2> /dev/null; do
		victim=$(pgrep -P $pid -n -f "$program sweep" || true)
		sleep 0.01
	done
	[ -n "$victim" ] && kill -KILL "$victim" || true
	wait $pid || true
	test -e r.sqlite || sweep "${traces[@]}" -o r.sqlite
	cmp r.sqlite "$whole"
}

# ---- fleet

test_plan_adds_up() {
	"$program" fleet "$whole" --json plan.json --csv jobs.csv --out page > out || [ $? -eq 1 ]
	python3 - <<-'END'
	import csv, json
	plan = json.load(open("plan.json"))
	rows = list(csv.DictReader(open("jobs.csv")))
	assert len(rows) == len(plan["jobs"]) == 6
	assert sum(int(r["ranks"]) for r in rows) == 7 # modelpar has two devices
	for job in plan["jobs"]:
	    assert job["best"]["need_bytes"] >= job["lower_bound_bytes"] > 0
	for pack in (plan["shared_today"], plan["shared_best"]):
	    assert pack["lower_bound"] <= pack["cards"] <= pack["ranks"] == 7
	    assert pack["cards_measured"] is None or pack["cards_measured"] <= pack["cards"]
	END
	grep -q '<h1>Capacity plan of a fleet</h1>' page/fleet.html
	for chart in fleet_need fleet_cards fleet_settings; do test -s page/$chart.svg; test -s page/$chart.csv; done
}

# Every figure speaks of the same jobs: those with a card today; what the plan adds is apart, the rest in no sum.
test_sums_agree() {
	printf 'name,memory,price_per_hour\nC,5G,0.3\nB,10G,0.7\nA,15G,1\n' > cards.csv
	"$program" fleet "$whole" --cards cards.csv --json plan.json --out page > out
	"$program" fleet "$whole" --cards cards.csv --share A --json shared.json > shared
	python3 - <<-'END'
	import csv, json
	plan, shared = json.load(open("plan.json")), json.load(open("shared.json"))
	prices = {"C": 0.3, "B": 0.7, "A": 1}
	near = lambda x, y: abs(x - y) < 1e-6
	jobs = plan["jobs"]
	had = [j for j in jobs if j["today"]["card"]]
	gained = [j for j in jobs if j["best"]["card"] and not j["today"]["card"]]
	moved = [j for j in had if j["best"]["card"] != j["today"]["card"]]
	assert gained and moved, (gained, moved)
	price = lambda list, which: sum(j["ranks"] * prices[j[which]["card"]] for j in list)
	assert plan["jobs_moved"] == len(moved) and plan["jobs_gained"] == len(gained) == plan["gained"]["jobs"]
	assert plan["today"]["jobs"] == plan["best"]["jobs"] == len(had)
	assert near(plan["today"]["price_per_hour"], price(had, "today")) and near(plan["best"]["price_per_hour"], price(had, "best"))
	assert near(plan["gained"]["price_per_hour"], price(gained, "best"))
	assert near(plan["price_saved"], plan["today"]["price_per_hour"] - plan["best"]["price_per_hour"])
	for s in plan["settings"]:
	    assert s["jobs_moved"] <= len(moved) and s["price_per_hour_saved"] <= plan["price_saved"] + 1e-6
	saved = [s["price_per_hour_saved"] for s in plan["settings"]]
	assert saved == sorted(saved, reverse=True)
	# of what saves the same, the line to paste comes first
	assert [s["policy"] for s in plan["settings"]].index("expandable") < [s["policy"] for s in plan["settings"]].index("vmm")
	assert all(j["best"]["policy"] != "vmm" for j in moved), moved
	drawn = list(csv.DictReader(open("page/fleet_settings.csv")))
	assert int(drawn[0]["reserved_bytes"]) == plan["today"]["reserved_bytes"]
	assert len(list(csv.DictReader(open("page/fleet_need.csv")))) == plan["today"]["cards"]
	# sharing is offered only where it costs less than a card each
	assert plan["shared_best"] is None or plan["shared_best"]["price_per_hour"] < plan["shared_best"]["own_price_per_hour"]
	pack = shared["shared_best"]
	assert near(pack["own_price_per_hour"], price([j for j in jobs if j["best"]["card"]], "best")), pack
	dear = pack["price_per_hour"] >= pack["own_price_per_hour"]
	assert dear == ("which saves nothing" in shared["answers"][0])
	END
}

# Recorded without a GPU: the sweep keeps it, the plan says it of this job and of no other.
test_estimates_are_marked() {
	"$program" help layout > /dev/null 2>&1 || skip 'built without the pretended card'
	printf 'cp %q "$CUFRAG_RECORD/1.pickle"' "${traces[0]}" > program
	XDG_CACHE_HOME=$PWD/cache "$program" record --no-gpu -o run.cft -- sh program
	sweep run.cft "${traces[4]}" -o e.sqlite
	test "$(sqlite3 e.sqlite 'SELECT name, estimate FROM traces ORDER BY name' | tr '\n' ' ')" = 'run|1 seeddemo.default|0 '
	"$program" fleet e.sqlite --json plan.json --csv jobs.csv --out page > out
	grep -q '^1 job was recorded without a GPU: what it needs is an estimate' out; grep -q '1 job was .*is an estimate' page/fleet.html
	python3 - <<-'END'
	import csv, json
	assert {j["job"] for j in json.load(open("plan.json"))["jobs"] if j["estimate"]} == {"run.cft"}
	assert {r["job"] for r in csv.DictReader(open("jobs.csv")) if r["estimate"] == "true"} == {"run.cft"}
	END
}

test_own_cards_and_prices() {
	printf 'name,memory,price_per_hour\nsmall,8G,1\nslice-20,20G,2\nbig,80G,5\n' > cards.csv
	"$program" fleet "$whole" --cards cards.csv --share big > out
	grep -q 'an hour' out; grep -q 'on 2 big' out # of one job ranks share no card
	fails "$program" fleet "$whole" --share nosuch 2> err; grep -q 'not among the cards' err
	fails "$program" fleet "$whole" --setting nosuch 2> err; grep -q 'is not in this sweep' err
}

test_jobs_without_a_card_say_why() {
	printf 'name,memory\ntiny,2G\n' > cards.csv
	local status=0
	"$program" fleet "$whole" --cards cards.csv > out || status=$?
	test $status -eq 1; grep -q 'the program needs it' out
}

# What docs/choose.md shows under "$ command" is what these commands print.
test_docs_are_true() {
	not_quick
	mkdir -p work; ln -s "$root/traces" work/traces; ln -s "$root/docs" work/docs
	awk '/^<!-- checked by tests\/fleet -->/ { on = 1 } on && /^```$/ { exit } on && !/^(<!--|```)/' "$root/docs/choose.md" > want
	mkdir bin; ln -s "$program" bin/cufrag
	grep '^\$ ' want | sed 's/^\$ //' > commands
	test "$(wc -l < commands)" -eq 2
	while read -r command; do
		echo "$ $command"
		(cd work && PATH=$PWD/../bin:$PATH COLUMNS=200 bash -c "$command") || true # what it prints counts
	done < commands > got
	diff want got
	grep -q 'Our fleet' work/plan/fleet.html; grep -q 'The owner' work/plan/fleet.html; grep -q 'a100\|A100-80' work/plan/results.csv
}

test_ranks_are_one_job() {
	cp "${traces[4]}" run.rank0.cft; cp "${traces[2]}" run.rank1.cft
	sweep run.rank0.cft run.rank1.cft -o r.sqlite; "$program" fleet r.sqlite > out
	grep -q '1 jobs, 2 ranks' out; grep -q 'run.rank\*.cft' out
}

run_cases "${2:-}"
