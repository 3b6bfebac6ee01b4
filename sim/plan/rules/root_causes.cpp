#include "plan/rules/root_causes.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace rehearse {

namespace {

constexpr int kMaxProbes = 400;
constexpr std::size_t kMaxTries = 8;  // of one side of a remedy

using RuleList = std::vector<BrokenRule>;

bool is_same(const BrokenRule& a, const BrokenRule& b) {
  return a.field == b.field && a.rule == b.rule;
}

bool has(const RuleList& rules, const BrokenRule& rule) {
  return std::ranges::any_of(rules, [&](const BrokenRule& other) { return is_same(other, rule); });
}

bool is_subset(const RuleList& part, const RuleList& whole) {
  return std::ranges::all_of(part, [&](const BrokenRule& rule) { return has(whole, rule); });
}

// Alternatives in the order of the rule: "pp = 2 or 4, or vpp = 1".
class Words {
 public:
  explicit Words(const FieldName& name) : name_(name) {}

  void add(const std::vector<Settings>& sides) {
    std::vector<const Settings*> fresh;
    for (const Settings& settings : sides)
      if (met_.insert(in_words(settings)).second) fresh.push_back(&settings);
    const auto is_one = [](const Settings& settings) { return settings.size() == 1; };
    if (fresh.size() == 2 && is_one(*fresh[0]) && is_one(*fresh[1]) &&
        fresh[0]->front().field == fresh[1]->front().field)
      return all_.push_back(in_words(*fresh[0]) + " or " + fresh[1]->front().value);
    for (const Settings* settings : fresh) all_.push_back(in_words(*settings));
  }

  std::string take() const { return join(all_, ", or "); }

 private:
  std::string in_words(const Settings& settings) const {
    std::vector<std::string> words;
    for (const Setting& setting : settings)
      words.push_back(fmt::format("{} = {}", name_(setting.field), setting.value));
    return join(words, " with ");
  }

  const FieldName& name_;
  std::vector<std::string> all_;
  std::set<std::string> met_;
};

class Causes {
 public:
  Causes(const RuleList& broken, const Probe& probe, const FieldName& name)
      : broken_(broken), probe_(probe), name_(name) {}

  std::vector<Violation> find() {
    RuleList left = broken_;
    Settings made;
    bool is_mended = true;
    std::vector<const BrokenRule*> causes;
    while (!left.empty() && is_mended) {
      const std::optional<Mended> mended = best(left, made);
      is_mended = mended.has_value();
      if (!is_mended) break;
      causes.push_back(original(mended->rule));
      made = mended->made;
      left = mended->left;
    }
    for (const BrokenRule& rule : left) causes.push_back(original(rule));
    std::vector<Violation> violations;
    for (const BrokenRule* cause : causes)
      violations.push_back({cause->file, cause->field, cause->rule, cause->values,
                            nearest(*cause, is_mended && causes.size() == 1)});
    return violations;
  }

 private:
  struct Mended {
    BrokenRule rule;
    bool by_own_field = false;
    Settings made;
    RuleList left;

    bool is_better_than(const Mended& other) const {
      if (left.size() != other.left.size()) return left.size() < other.left.size();
      return by_own_field && !other.by_own_field;
    }
  };

  std::optional<RuleList> after(const Settings& settings) {
    if (probes_ == kMaxProbes) return std::nullopt;
    ++probes_;
    return probe_(settings);
  }

  // A change may move a rule's values, but the rule keeps its sentence.
  const BrokenRule* original(const BrokenRule& rule) const {
    for (const BrokenRule& other : broken_)
      if (is_same(other, rule)) return &other;
    return &broken_.front();
  }

  std::optional<Mended> best(const RuleList& left, const Settings& made) {
    std::optional<Mended> best;
    for (const BrokenRule& rule : left)
      for (const Remedy& remedy : rule.remedies.of(rule.field))
        for (const std::vector<Settings>* side : {&remedy.below, &remedy.above})
          take_better(best, first_gain(rule, *side, left, made));
    return best;
  }

  static void take_better(std::optional<Mended>& best, std::optional<Mended> next) {
    if (next && (!best || next->is_better_than(*best))) best = std::move(next);
  }

  // The nearest value that repairs the rule and breaks no other.
  std::optional<Mended> first_gain(const BrokenRule& rule, const std::vector<Settings>& side,
                                   const RuleList& left, const Settings& made) {
    for (std::size_t i = 0; i < std::min(side.size(), kMaxTries); ++i) {
      Mended mended{rule, side[i].size() == 1 && side[i][0].field == rule.field, made, {}};
      mended.made.insert(mended.made.end(), side[i].begin(), side[i].end());
      std::optional<RuleList> then = after(mended.made);
      if (!then || has(*then, rule) || !is_subset(*then, left)) continue;
      mended.left = std::move(*then);
      return mended;
    }
    return std::nullopt;
  }

  std::string nearest(const BrokenRule& rule, bool alone) {
    const auto legal = [](const RuleList& then) { return then.empty(); };
    const auto satisfies = [&](const RuleList& then) { return !has(then, rule) && is_subset(then, broken_); };
    const auto only_satisfies = [&](const RuleList& then) { return !has(then, rule); };
    if (alone) return tried(rule, legal);
    std::string words = tried(rule, satisfies);
    if (words.empty()) words = tried(rule, only_satisfies);
    return words.empty() ? "" : words + " (for this rule)";
  }

  template <typename Accepts>
  std::string tried(const BrokenRule& rule, const Accepts& accepts) {
    Words words(name_);
    for (const Remedy& remedy : rule.remedies.of(rule.field)) {
      std::vector<Settings> sides;
      for (const std::vector<Settings>* side : {&remedy.below, &remedy.above})
        for (std::size_t i = 0; i < std::min(side->size(), kMaxTries); ++i) {
          const std::optional<RuleList> then = after((*side)[i]);
          if (!then || !accepts(*then)) continue;
          sides.push_back((*side)[i]);
          break;
        }
      words.add(sides);
    }
    return words.take();
  }

  const RuleList& broken_;
  const Probe& probe_;
  const FieldName& name_;
  int probes_ = 0;
};

}  // namespace

std::vector<Violation> root_causes(const std::vector<BrokenRule>& broken, const Probe& probe,
                                   const FieldName& name) {
  return Causes(broken, probe, name).find();
}

std::vector<Violation> as_violations(const std::vector<BrokenRule>& broken) {
  const FieldName same = [](const std::string& field) { return field; };
  std::vector<Violation> violations;
  for (const BrokenRule& rule : broken) {
    Words words(same);
    for (const Remedy& remedy : rule.remedies.of(rule.field)) {
      std::vector<Settings> sides;
      for (const std::vector<Settings>* side : {&remedy.below, &remedy.above})
        if (!side->empty()) sides.push_back(side->front());
      words.add(sides);
    }
    violations.push_back({rule.file, rule.field, rule.rule, rule.values, words.take()});
  }
  return violations;
}

}  // namespace rehearse
