# Trends by hand (Mann-Kendall of 12 rising values: S = 66, variance 12 * 11 * 29 / 18; of pairs of
# equal ones S = 60, and ties take 6 * 2 * 9 of 12 * 11 * 29), and what is a leak: stairs and noise
# that rise; not what fills up, is full or falls back.
series() { # NAME COUNT VALUE, of i
	awk "BEGIN { print \"time_s,used_bytes\"; for (i = 0; i < $2; i++) print i \",\" int(1e8 * ($3)) }" > "$1.csv"
	echo "$1: $("$CUFRAG" diagnose "$1.csv" --json - | sed -n '1,/"verdict"/s/ *"verdict": "\(.*\)",/\1/p; s/,$//; s/ *"mann_kendall_z": / z /p' | tr -d '\n')"
}
series rising 12 '20 + i'
series pairs 12 '20 + int(i / 2)'
series stairs 60 '100 + 3 * int(i / 3)'
series noise 60 '100 + 3 * i + 9 * (i * 7 % 11)'
series late 60 '400 + (i < 30 ? 0 : 10 * (i - 30))'
series fills 60 '100 * (1 - exp(-i / 8))'
series full 60 'i < 30 ? 300 + 10 * i : 600'
series teeth 60 '300 + i % 20 * 10'
