#include "plan/fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "plan/field_rows.h"
#include "plan/frameworks/traits.h"

namespace rehearse {

namespace {

std::string on_or_off(bool value) {
  return value ? "on" : "off";
}

// The value as a flag takes it; "" for a shorthand, which has none.
struct ValueText {
  const Plan& plan;

  std::string operator()(const IntegerField& field) const { return std::to_string(field.get(plan)); }
  std::string operator()(const NumberField& field) const { return fmt::format("{:g}", plan.*field.member); }
  std::string operator()(const BytesField& field) const { return fmt::format("{:.0f}B", plan.*field.member); }
  std::string operator()(const SwitchField& field) const { return on_or_off(plan.*field.member); }
  std::string operator()(const ChoiceField& field) const { return field.words[field.get(plan)]; }
  std::string operator()(const ChoicesField& field) const {
    std::vector<std::string> words;
    for (const std::size_t index : field.get(plan)) words.push_back(field.words[index]);
    return join(words, ",");
  }
  std::string operator()(const AxesField&) const {
    std::vector<std::string> words;
    for (const Axis axis : plan.order) words.push_back(to_string(axis));
    return join(words, "-");
  }
  std::string operator()(const LayersField&) const {
    std::vector<std::string> words;
    for (const int layers : plan.layers_per_stage) words.push_back(std::to_string(layers));
    return join(words, ",");
  }
  std::string operator()(ShorthandField) const { return ""; }
};

// A plan on which the user has stated nothing except the framework.
Plan untold_plan(Framework framework) {
  Plan plan;
  plan.framework = framework;
  apply_framework(plan);
  return plan;
}

}  // namespace

std::string_view heading(HelpGroup group) {
  constexpr std::array<std::string_view, 11> kHeadings = {
      "Model and cluster", "Parallelism",        "Batch",   "Pipeline",      "Memory", "Precision",
      "Overlap",           "Kernels and fusion", "Experts", "Imperfections", "Output"};
  return kHeadings[static_cast<std::size_t>(group)];
}

std::int64_t IntegerField::get(const Plan& plan) const {
  return std::visit([&](auto field) { return static_cast<std::int64_t>(plan.*field); }, member);
}

void IntegerField::set(Plan& plan, std::int64_t value) const {
  std::visit(
      [&](auto field) { plan.*field = static_cast<std::remove_reference_t<decltype(plan.*field)>>(value); },
      member);
}

bool PlanField::differs(const Plan& a, const Plan& b) const {
  if (const auto* number = std::get_if<NumberField>(&type)) return a.*number->member != b.*number->member;
  if (const auto* bytes = std::get_if<BytesField>(&type)) return a.*bytes->member != b.*bytes->member;
  return value_text(*this, a) != value_text(*this, b);
}

const std::vector<PlanField>& plan_fields() {
  static const std::vector<PlanField> fields = [] {
    std::vector<PlanField> all;
    for (const auto& group : {fields_of_layout, fields_of_kernels, fields_of_state, fields_of_layers})
      std::ranges::move(group(), std::back_inserter(all));
    return all;
  }();
  return fields;
}

const PlanField& plan_field(std::string_view key) {
  const auto found = std::ranges::find(plan_fields(), key, &PlanField::key);
  if (found == plan_fields().end()) throw std::logic_error(fmt::format("no field of a plan is \"{}\"", key));
  return *found;
}

std::string value_text(const PlanField& field, const Plan& plan) {
  return std::visit(ValueText{plan}, field.type);
}

std::string default_text(const PlanField& field) {
  if (*field.by_default != '\0') return field.by_default;
  const std::string text = value_text(field, untold_plan(Framework::megatron_core));
  const bool agree = std::ranges::all_of(
      kFrameworks, [&](Framework framework) { return value_text(field, untold_plan(framework)) == text; });
  if (!agree) return "the framework's";
  const auto* bytes = std::get_if<BytesField>(&field.type);
  return bytes == nullptr ? text : format_bytes(Plan{}.*bytes->member);
}

}  // namespace rehearse
