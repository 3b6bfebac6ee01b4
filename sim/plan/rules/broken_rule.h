// Which rule does a plan break, and which changes may repair it?
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/rules/nearest.h"

namespace rehearse {

// A field of the plan, or "gpus", and its new value as a flag takes it: "8", "on", "torchtitan".
struct Setting {
  std::string field;
  std::string value;
};

using Settings = std::vector<Setting>;  // made together

// Changes of one field that satisfy the broken rule, on either side of the present value, nearest first. They
// may break other rules.
struct Remedy {
  std::vector<Settings> below, above;
};

// Numbers of one field that satisfy the broken rule. They are computed only on demand, because most broken
// rules are only counted.
struct ValueSearch {
  std::string field;
  std::function<Near()> find;
};

// Proposals of a rule: numbers, or words.
class Remedies {
 public:
  // "on", "zero = 1, or pp = 1", "off, or precision = fp8 with framework = megatron-core". A value alone
  // belongs to the rule's own field. "" proposes nothing.
  Remedies(const char* words) : words_(words) {}
  Remedies(std::string words) : words_(std::move(words)) {}
  Remedies(ValueSearch one) : searches_{std::move(one)} {}
  Remedies(std::vector<ValueSearch> searches) : searches_(std::move(searches)) {}

  std::vector<Remedy> of(const std::string& field) const;

 private:
  std::string words_;
  std::vector<ValueSearch> searches_;
};

struct BrokenRule {
  std::string file;   // empty: the reader of the plan knows it
  std::string field;  // "pp", "micro_batch", ... or "gpus"
  std::string rule;   // as a sentence
  std::string values;
  Remedies remedies;
};

ValueSearch exactly(const std::string& field, std::int64_t value);

// Like numbers_around() and multiples_around(). `legal` must capture by value, because it outlives its rule.
ValueSearch numbers_near(const std::string& field, std::int64_t wanted, std::int64_t most,
                         std::function<bool(std::int64_t)> legal);
ValueSearch multiples_near(const std::string& field, std::int64_t wanted, std::int64_t most,
                           std::int64_t unit);

}  // namespace rehearse
