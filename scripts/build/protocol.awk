# SPDX-License-Identifier: Apache-2.0
# What is made of src/pretend/protocol.def: awk -v as=c|python|table -f protocol.awk protocol.def
BEGIN {
	made = "made from src/pretend/protocol.def"
	if (as == "c")
		printf "/* Names of variables, %s. */\n", made
	else if (as == "python")
		printf "\"\"\"NAME is the value of the variable CUFRAG_<NAME> now; %s.\"\"\"\nimport os\n\nROWS = {\n", made
	else
		printf "# Variables of the environment\n\nThis page was %s.\n\n| name | type | written by | read by | meaning |\n|---|---|---|---|---|\n", made
}
/^CUFRAG_/ {
	split($2, type, "=")
	name = $1; writers = $4; readers = $5
	if (as == "c" && name !~ /\*/)
		printf "#define %s \"%s\"\n", name, name
	if (as == "python" && name !~ /\*/)
		printf "    \"%s\": (%s, \"%s\"),\n", substr(name, 8), type[1] == "int" ? "int" : type[1] == "flag" ? "bool" : "str",
			type[2] == "" && type[1] == "int" ? 0 : type[2]
	if ($3 == "run")
		of_a_run = of_a_run "    \"" name "\",\n"
}
/^\t/ && as == "table" {
	gsub(",", ", ", writers); gsub(",", ", ", readers)
	printf "| `%s` | %s | %s | %s | %s |\n", name, type[1], writers, readers, substr($0, 2)
}
END {
	if (as == "python")
		printf "}\nOF_A_RUN = frozenset((\n%s))\n\n\ndef __getattr__(name):\n    if name not in ROWS:\n" \
			"        raise AttributeError(name)\n    kind, default = ROWS[name]\n" \
			"    return kind(os.environ.get(\"CUFRAG_\" + name) or default)\n", of_a_run
}
