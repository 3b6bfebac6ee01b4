// Suggestions for a refused plan: each value was tried, and has the effect that the message states.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "scenario/rules.h"
#include "scenario/scenario.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kOfRule = " (for this rule)";
constexpr int kPlans = 1000;  // most break several rules at once, so that few values are legal by themselves

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

void set(ScenarioSource& source, const std::string& name, const std::string& value) {
  for (const Flag& flag : scenario_flags())
    if (flag.name == "--" + name) {
      source.json[Json::json_pointer(flag.pointer)] = parse_value(flag, value);
      return;
    }
  ADD_FAILURE() << "no flag --" << name;
}

// "pp = 2 or 4, or precision = fp8 with framework = megatron-core": three sources.
std::vector<ScenarioSource> with_each(const ScenarioSource& source, std::string nearest) {
  if (nearest.ends_with(kOfRule)) nearest.resize(nearest.size() - kOfRule.size());
  std::vector<ScenarioSource> changed;
  for (const std::string& alternative : split(nearest, ", or ")) {
    const std::vector<std::string> settings = split(alternative, " with ");
    const std::vector<std::string> last = split(settings.back(), " = ");
    if (last.size() != 2) {
      ADD_FAILURE() << "no setting: " << alternative;
      continue;
    }
    for (const std::string& value : split(last[1], " or ")) {
      ScenarioSource& next = changed.emplace_back(source);
      for (std::size_t i = 0; i + 1 < settings.size(); ++i) {
        const std::vector<std::string> setting = split(settings[i], " = ");
        set(next, setting[0], setting.back());
      }
      set(next, last[0], value);
    }
  }
  return changed;
}

Inputs& inputs() {
  static Inputs all;
  return all;
}

std::vector<Violation> refusal(const ScenarioSource& source) {
  Replaced replaced;
  replaced.inputs = &inputs();
  replaced.without_profile = true;
  try {
    read_scenario(source, replaced);
  } catch (const InputError& error) {
    return error.violations();
  }
  return {};
}

std::vector<BrokenRule> unmet(const ScenarioSource& source) {
  Replaced replaced;
  replaced.inputs = &inputs();
  replaced.without_profile = replaced.without_rules = true;
  return unmet_rules(read_scenario(source, replaced));
}

// The violation names the field by its flag.
bool has_rule(const std::vector<BrokenRule>& broken, const Violation& violation) {
  std::string pointer;
  for (const Flag& flag : scenario_flags())
    if (flag.name == violation.pointer) pointer = flag.pointer;
  return std::ranges::any_of(broken, [&](const BrokenRule& rule) {
    return rule.rule == violation.rule && pointer.ends_with("/" + rule.field);
  });
}

class RandomPlan {
 public:
  explicit RandomPlan(unsigned seed) : random_(seed) {}

  ScenarioSource draw() {
    ScenarioSource source;
    set(source, "model",
        any({"llama3-8b", "llama3-70b", "mixtral-8x7b", "gpt2", "deepseek-v3", "nemotron-h-8b"}));
    set(source, "cluster", any({"dgx-h100", "selene"}));
    set(source, "gpus", any({"8", "16", "24", "64", "96", "100", "128", "512"}));
    for (const auto& [name, most] : {std::pair{"tp", 9},
                                     {"pp", 9},
                                     {"vpp", 4},
                                     {"cp", 4},
                                     {"ep", 8},
                                     {"dp", 16},
                                     {"mbs", 4},
                                     {"gbs", 1100},
                                     {"zero", 3},
                                     {"zero-shard", 8}})
      if (chance(name == std::string("gbs") ? 1.0 : 0.35))
        set(source, name, std::to_string(1 + random_() % most));
    if (chance(0.3)) set(source, "seq", any({"1000", "1024", "4096", "6000"}));
    for (const auto& [name, values] : kNamed)
      if (chance(0.12)) set(source, name, any(values));
    return source;
  }

 private:
  using Values = std::vector<std::string>;
  const std::vector<std::pair<std::string, Values>> kNamed = {
      {"schedule", {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v"}},
      {"framework", {"megatron-core", "megatron-2021", "deepspeed", "fsdp", "torchtitan"}},
      {"precision", {"bf16", "fp16", "fp8", "fp32"}},
      {"recompute", {"none", "selective", "full"}},
      {"recompute-num-layers", {"0", "2", "500"}},
      {"sequence-parallel", {"on", "off"}},
      {"overlap-grad-reduce", {"on", "off"}},
      {"overlap-param-gather", {"on", "off"}},
      {"overlap-p2p", {"on", "off"}},
      {"tp-comm-overlap", {"on"}},
      {"overlap-experts", {"on"}},
      {"offload", {"optimizer", "activations"}},
      {"cp-comm-type", {"a2a", "allgather"}},
      {"layers-per-stage", {"8,8", "40,40", "1,2,3", "auto"}},
      {"microbatch-group", {"3", "5"}}};

  bool chance(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }
  std::string any(const Values& values) { return values[random_() % values.size()]; }

  std::mt19937 random_;
};

// A cause is reported once, without its consequences. With its suggested value no more rules are broken,
// though it may break another rule in place of its own.
void expect_causes_first(const ScenarioSource& source, const std::vector<Violation>& refused) {
  const std::vector<BrokenRule> broken = unmet(source);
  EXPECT_LE(refused.size(), broken.size());
  for (const Violation& violation : refused) EXPECT_TRUE(has_rule(broken, violation)) << to_string(violation);
  const std::string& nearest = refused.front().nearest;
  if (nearest.empty() || refused.size() == 1) return;
  std::size_t left = broken.size();
  for (const ScenarioSource& changed : with_each(source, nearest))
    left = std::min(left, unmet(changed).size());
  EXPECT_LE(left, broken.size()) << to_string(refused.front());
}

void expect_true(const ScenarioSource& source, const std::vector<Violation>& refused) {
  for (const Violation& violation : refused) {
    if (violation.nearest.empty()) continue;
    SCOPED_TRACE(to_string(violation));
    const bool of_rule = violation.nearest.ends_with(kOfRule);
    for (const ScenarioSource& changed : with_each(source, violation.nearest)) {
      const std::vector<BrokenRule> after = unmet(changed);
      EXPECT_FALSE(has_rule(after, violation)) << changed.json.dump();
      EXPECT_TRUE(of_rule || refusal(changed).empty()) << changed.json.dump();
    }
    EXPECT_TRUE(of_rule || refused.size() == 1);
  }
}

TEST(Nearest, ValuesKeepWhatTheMessageSaysOfThem) {
  RandomPlan plans(20);
  int refused = 0, legal_values = 0, of_rules = 0, without = 0;
  for (int i = 0; i < kPlans; ++i) {
    const ScenarioSource source = plans.draw();
    SCOPED_TRACE(source.json.dump());
    try {
      if (unmet(source).empty()) continue;
    } catch (const InputError&) {
      continue;  // refused before any rule is asked
    }
    const std::vector<Violation> violations = refusal(source);
    ASSERT_FALSE(violations.empty());
    ++refused;
    for (const Violation& violation : violations)
      ++(violation.nearest.empty()              ? without
         : violation.nearest.ends_with(kOfRule) ? of_rules
                                                : legal_values);
    expect_true(source, violations);
    expect_causes_first(source, violations);
    if (HasFailure()) return;
  }
  std::printf("%d plans refused: %d causes with legal values, %d with values for their rule, %d without\n",
              refused, legal_values, of_rules, without);
  // Random plans break several rules at once, and no value of one field repairs all of them. Fully legal
  // values exist where a single rule is broken.
  EXPECT_GT(refused, kPlans / 3);
  EXPECT_GT(legal_values, refused / 20);
  EXPECT_LT(without, refused / 8);
}

ScenarioSource given(const std::vector<std::pair<std::string, std::string>>& flags) {
  ScenarioSource source;
  for (const auto& [name, value] : flags) {
    set(source, name, value);
    for (const Flag& flag : scenario_flags())
      if (flag.name == "--" + name) source.flag_of[flag.pointer] = flag.name;
  }
  return source;
}

std::vector<std::string> said(const std::vector<std::pair<std::string, std::string>>& flags) {
  std::vector<std::string> lines;
  for (const Violation& violation : refusal(given(flags)))
    lines.push_back(violation.pointer + ": " + violation.rule + "; " + violation.nearest);
  return lines;
}

using Flags = std::vector<std::pair<std::string, std::string>>;
const Flags kLlama = {{"model", "llama3-70b"}, {"cluster", "dgx-h100"}};

Flags with(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(Nearest, OfLayersThatDoNotDivideFitTheGpus) {
  EXPECT_THAT(
      said(with(kLlama, {{"gpus", "512"}, {"tp", "8"}, {"pp", "16"}, {"vpp", "2"}, {"gbs", "1024"}})),
      ElementsAre("--pp: the layers must divide evenly over pp x vpp stages (or give layers per stage); "
                  "pp = 8, or vpp = 1 or 5"));
}

TEST(Nearest, OfOneWrongDegreeIsThatDegreeAlone) {
  EXPECT_THAT(
      said(with(kLlama, {{"gpus", "128"}, {"tp", "8"}, {"pp", "3"}, {"gbs", "64"}})),
      ElementsAre("--pp: the layers must divide evenly over pp x vpp stages (or give layers per stage); "
                  "pp = 2 or 4"));
  EXPECT_THAT(said(with(kLlama, {{"gpus", "128"}, {"tp", "6"}, {"pp", "4"}, {"gbs", "64"}})),
              ElementsAre("--tp: tp must divide the attention heads; tp = 4 or 8"));
}

TEST(Nearest, OfTwoMistakesSatisfyTheirRules) {
  const std::vector<std::string> lines =
      said(with(kLlama, {{"gpus", "128"}, {"tp", "6"}, {"pp", "4"}, {"gbs", "64"}, {"zero", "3"}}));
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("(for this rule)"));
}

}  // namespace
}  // namespace rehearse
