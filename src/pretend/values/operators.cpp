// SPDX-License-Identifier: Apache-2.0
/* What an operator is: from its schema, and from the rows of operators.csv that name it. */
#include "values.h"

struct Row {
	std::string name, overload, flags;
	bool means(const c10::FunctionSchema &schema) const
	{
		return !fnmatch(name.c_str(), schema.name().c_str(), 0) &&
		       !fnmatch(overload.c_str(), schema.overload_name().c_str(), 0);
	}
};

static std::vector<Row> rows;

static const struct {
	const char *word;
	int Info::*member;
	int value;
} WORDS[] = {
#define F(flag) { #flag, &Info::flag, 1 },
	VALUES_FLAGS(F)
#undef F
#define K(kind, value) { #kind "=" #value, &Info::kind, kind##_##value },
		VALUES_KINDS(K)
#undef K
};

static bool begins(const std::string &name, const char *with)
{
	return name.rfind(with, 0) == 0;
}

/* False: there is no such word. */
static bool take_word(Info &f, const std::string &word)
{
	for (const auto &w : WORDS)
		if (word == w.word)
			return f.*w.member = w.value, true;
	if (!begins(word, "per_cycle="))
		return false;
	f.per_cycle = atof(word.c_str() + strlen("per_cycle="));
	return true;
}

static bool take_row(Info &f, const Row &r)
{
	bool all = true;

	for (size_t at = 0, end; at < r.flags.size(); at = end + 1) {
		end = std::min(r.flags.find(' ', at), r.flags.size());
		all &= take_word(f, r.flags.substr(at, end - at));
	}
	return all;
}

static bool read_operators(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];
	bool all = true;

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		std::string text(line, strcspn(line, "\n"));
		size_t first = text.find(','), second = text.find(',', first + 1);
		if (line[0] == '#' || second == std::string::npos)
			continue;
		Row r{ text.substr(0, first), text.substr(first + 1, second - first - 1),
		       text.substr(second + 1) };
		Info probe;
		all &= take_row(probe, r);
		rows.push_back(r);
	}
	return !fclose(f) && all;
}

static bool gives_view(const c10::FunctionSchema &schema)
{
	for (const auto &r : schema.returns())
		if (r.alias_info() && !r.alias_info()->isWrite())
			return true;
	return false;
}

/* Returns no tensor; the operators it calls are computed themselves (allclose,
 * _linalg_check_errors). */
static bool gives_no_tensor(const c10::FunctionSchema &schema)
{
	for (const auto &r : schema.returns())
		if (r.type()->isSubtypeOf(*c10::TensorType::get()) ||
		    r.type()->kind() == c10::TypeKind::ListType)
			return false;
	return true;
}

static void take_arguments(Info &f, const c10::FunctionSchema &schema)
{
	for (size_t i = 0; i < schema.arguments().size(); i++) {
		const auto &a = schema.arguments()[i];
		bool w = a.alias_info() && a.alias_info()->isWrite();
		f.mutates |= w;
		f.writes.push_back(w);
		f.given.push_back(w && a.kwarg_only());
		if (a.name() == "is_causal")
			f.causal = i + 1;
		else if (a.name() == "beta" && f.first_added)
			f.beta = i + 1;
	}
}

static Info describe(const c10::OperatorHandle &op)
{
	const auto &schema = op.schema();
	Info f;

	f.name = schema.name();
	for (const Row &r : rows)
		if (r.means(schema))
			take_row(f, r);
	take_arguments(f, schema);
	f.skip |= gives_view(schema) && !f.mutates;
	f.skip |= op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
		  !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA); /* unlike _fused_rms_norm */
	f.skip |= gives_no_tensor(schema) && !f.scalar && !f.mutates;
	f.part |= f.part_in_full && in_full;
	f.over |= f.part;
	f.seeded = op.hasTag(at::Tag::nondeterministic_seeded);
	f.pointwise |= op.hasTag(at::Tag::pointwise);
	f.each |= f.pointwise;
	f.instead = instead_of(f, schema.overload_name());
	return f;
}

static Info &info(const c10::OperatorHandle &op)
{
	static std::unordered_map<const void *, Info *> infos;
	std::lock_guard<std::mutex> g(mutex);
	Info *&entry = infos[&op.schema()];

	return *(entry ? entry : entry = new Info(describe(op)));
}
