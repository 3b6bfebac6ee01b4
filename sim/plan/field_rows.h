// How is a row of plan/fields.h written down?
#pragma once

#include <algorithm>
#include <limits>

#include "model/bounds.h"
#include "plan/fields.h"
#include "plan/limits.h"

namespace rehearse {

inline constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();

// A field for the enum at Member. Values are all of its values that may be named.
template <auto Member, const auto& Values>
ChoiceField choice() {
  ChoiceField field;
  for (const auto value : Values) field.words.push_back(to_string(value));
  field.get = [](const Plan& plan) {
    return static_cast<std::size_t>(std::ranges::find(Values, plan.*Member) - Values.begin());
  };
  field.set = [](Plan& plan, std::size_t index) { plan.*Member = Values[index]; };
  return field;
}

template <auto Member, const auto& Values>
ChoicesField choices(const char* unknown) {
  ChoicesField field;
  field.unknown = unknown;
  for (const auto value : Values) field.words.push_back(to_string(value));
  field.get = [](const Plan& plan) {
    std::vector<std::size_t> indices;
    for (const auto value : plan.*Member)
      indices.push_back(static_cast<std::size_t>(std::ranges::find(Values, value) - Values.begin()));
    return indices;
  };
  field.set = [](Plan& plan, const std::vector<std::size_t>& indices) {
    (plan.*Member).clear();
    for (const std::size_t index : indices) (plan.*Member).push_back(Values[index]);
  };
  return field;
}

inline IntegerField degree(int Plan::*member) {
  return {member, 1, kMaxDegree};
}

// Conditions under which a field matters.
inline bool always(const Plan&, const Model&) {
  return true;
}
inline bool has_experts(const Plan&, const Model& model) {
  return model.experts.has_value();
}
inline bool has_chunks(const Plan& plan, const Model&) {
  return plan.vpp > 1;
}
inline bool splits_tensors(const Plan& plan, const Model&) {
  return plan.tp > 1;
}

std::vector<PlanField> fields_of_layout();   // degrees, batch, schedule, recompute
std::vector<PlanField> fields_of_kernels();  // precision, fusion, overlap, launches
std::vector<PlanField> fields_of_state();  // sharding, framework, rank order, experts, collectives of a layer
std::vector<PlanField> fields_of_layers();  // shorthands for the layers of each stage

}  // namespace rehearse
