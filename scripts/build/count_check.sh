#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Has something become slower? Instructions of fixed runs (tests/counts/runs) under callgrind,
# against those in tests/counts/expected.csv:
#	count_check.sh [--update] BUILD_FOLDER [RUN...]
# A run fails if the whole of it takes TOLERANCE percent (3) more instructions, or one of its
# functions that matters (2 % of the run) does and the others do not make up for half of that; the
# functions that grew are named with what they had and have. --update writes the rows of this compiler anew.
#
# Instructions of our own code only, less those of an empty run: neither start-up nor libc is
# in them. They follow the compiler, so the rows are kept by it, as it is named in the program;
# for one without rows, and without valgrind, the check says so and is skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C

update=0
[ "${1:-}" = --update ] && { update=1; shift; }
b=${1:?usage: count_check.sh [--update] BUILD_FOLDER [RUN...]}
shift
cufrag=$b/cufrag
expected=${COUNTS_EXPECTED:-tests/counts/expected.csv}
tolerance=${TOLERANCE:-3}
work=${COUNTS_WORK:-$b/counts}
[ -x "$cufrag" ] || { echo "counts: no program '$cufrag'" >&2; exit 2; }

skip() { echo "counts: $1: skipped"; exit 0; }
command -v valgrind > /dev/null || skip 'no valgrind'
if grep -q -e -fsanitize -e '-O[01] ' "$b/flags" 2> /dev/null; then skip "'$b' is no release build"; fi

# "gcc-12.2.0-x86_64": the compiler that left its name in the program, the second one if there
# are two, because the start-up files of gcc are in what clang links.
compiler=$(readelf -p .comment "$cufrag" | sed -n '
	s/^ *\[ *[0-9a-f]*\] *GCC: ([^)]*) \([0-9.]*\).*/2 gcc-\1/p
	s/^ *\[ *[0-9a-f]*\] *.*clang version \([0-9.]*\).*/1 clang-\1/p' | sort | sed -n '1s/^. //p')
compiler=${compiler:?what compiler made it?}-$(uname -m)
if [ $update = 0 ] && ! grep -q "^$compiler," "$expected" 2> /dev/null; then
	skip "no counts for $compiler in $expected (make counts-update writes them)"
fi

# One profile to "file:function instructions", the parts that gcc splits off put back, and what
# belongs to others as "(libraries)".
sum_up() {
	awk -v program="$(realpath "$cufrag")" '
		function named(text,  id) { # "(12) name" or "(12)"
			id = substr(text, 1, index(text, ")"))
			if (length(text) > length(id)) name[kind id] = substr(text, length(id) + 2)
			return name[kind id]
		}
		/^ob=/ { kind = "o"; object = named(substr($0, 4)); next }
		/^cob=/ { kind = "o"; named(substr($0, 5)); next }
		/^f[lie]=/ { kind = "f"; text = named(substr($0, 4)); if (/^fl/) file = text; next }
		/^cf[il]=/ { kind = "f"; named(substr($0, 5)); next }
		/^cfn=/ { kind = "n"; named(substr($0, 5)); next }
		/^fn=/ {
			kind = "n"
			fn = named(substr($0, 4))
			sub(/\x27[0-9]+$/, "", fn)
			sub(/\.(constprop|isra|part|cold|lto_priv).*/, "", fn)
			where = file
			sub(/.*\//, "", where)
			key = object == program ? where ":" fn : "(libraries)"
			next
		}
		/^calls=/ { getline; next }
		/^[0-9+*-]/ { self[key] += $2 }
		END { for (k in self) printf "%s %d\n", k, self[k] }
	' "$1" | sort
}

profile() { # NAME ARGUMENT...
	local name=$1
	shift
	valgrind --tool=callgrind --callgrind-out-file="$work/$name.callgrind" "$cufrag" "$@" \
		> "$work/$name.log" 2>&1 || { echo "counts: run '$name' failed:" >&2; tail -n 5 "$work/$name.log" >&2; return 1; }
	sum_up "$work/$name.callgrind" > "$work/$name.self"
	rm -f "$work/$name.callgrind" "$work/$name.out"
}

# The run less the empty one, as rows of the table.
rows() {
	awk -v run="$1" -v compiler="$compiler" '
		NR == FNR { empty[$1] = $2; next }
		{ n = $2 - empty[$1]; if (n <= 0) next; self[$1] = n; if ($1 != "(libraries)") total += n }
		END {
			printf "%s,%s,(total),%d\n", compiler, run, total
			for (f in self)
				if (f == "(libraries)" || self[f] >= total / 200) printf "%s,%s,%s,%d\n", compiler, run, f, self[f]
		}' "$work/empty.self" "$work/$1.self" | sort -t , -k 4,4nr -k 3,3
}

rm -rf "$work"
mkdir -p "$work"
names=()
profile empty --version
while IFS=: read -r name arguments; do
	case $name in '#'* | '') continue ;; esac
	[ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
	names+=("$name")
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || exit 1; done
	# shellcheck disable=SC2086 # words
	profile "$name" ${arguments//OUT/$work/$name.out} &
done < tests/counts/runs
[ ${#names[@]} -gt 0 ] || { echo "counts: no run '$*' in tests/counts/runs" >&2; exit 2; }
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do wait -n || exit 1; done
for name in "${names[@]}"; do rows "$name"; done > "$work/now.csv"

if [ $update = 1 ]; then
	{
		echo 'compiler,run,function,instructions'
		[ ! -e "$expected" ] || sed 1d "$expected" | grep -v "^$compiler," || true
		cat "$work/now.csv"
	} > "$work/expected.csv"
	mv "$work/expected.csv" "$expected"
	echo "counts: wrote ${#names[@]} runs of $compiler to $expected"
	exit 0
fi

awk -F , -v compiler="$compiler" -v tolerance="$tolerance" '
	function percent(n, m) { return sprintf("%+.1f %%", 100 * (n - m) / m) }
	FNR == 1 { nth++ }
	nth == 1 {
		if ($1 != compiler) next
		before[$2, $3] = $4
		if ($3 == "(total)") total[$2] = $4
		next
	}
	{
		now[$2, $3] = $4
		if (!($2 in seen)) { seen[$2] = 1; order[++runs] = $2 }
		functions[$2] = functions[$2] SUBSEP $3
	}
	END {
		for (i = 1; i <= runs; i++) {
			run = order[i]
			n = now[run, "(total)"]
			m = total[run]
			if (!m) { printf "counts: %-14s has no counts yet: make counts-update\n", run; bad++; continue }
			failed = 100 * (n - m) > tolerance * m
			text = ""
			count = split(functions[run], f, SUBSEP)
			for (k = 2; k <= count; k++) {
				was = before[run, f[k]]
				is = now[run, f[k]]
				if (f[k] ~ /^\(/ || 100 * (is - was) <= tolerance * was) continue
				# a function that was below the half percent, or is new
				if (!was && 200 * is < 2 * m) continue
				text = text sprintf("    %-52s %14d -> %14d  %s\n", f[k], was, is, was ? percent(is, was) : "new")
				if (50 * was >= m && 2 * (n - m) >= is - was) failed = 1
			}
			printf "counts: %-14s %14d -> %14d  %s, libraries %s%s\n", run, m, n, percent(n, m), \
				before[run, "(libraries)"] ? percent(now[run, "(libraries)"], before[run, "(libraries)"]) : "none", \
				(failed ? "  GREW" : (100 * (m - n) > tolerance * m) ? "  less: make counts-update" : "")
			if (failed) { printf "%s", text; bad++ }
		}
		printf "counts: %d runs, %d grew (tolerance %s %%)\n", runs, bad, tolerance
		exit bad > 0
	}' "$expected" "$work/now.csv"
