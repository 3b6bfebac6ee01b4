// How is each field of a Plan named, bounded and explained, and when does it matter? The command line, the
// scenario reader, reports, schemas, notes on exports and random plans of tests loop over these rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bounds.h"
#include "plan/plan.h"

namespace rehearse {

// Section of the option in --help, in the order of the headings.
enum class HelpGroup {
  inputs,
  parallelism,
  batch,
  pipeline,
  memory,
  precision,
  overlap,
  kernels,
  experts,
  imperfections,
  output
};
std::string_view heading(HelpGroup group);  // "Model and cluster", "Parallelism", ...

// How a setting is written and explained, in files and on the command line.
struct FieldText {
  const char* key;                   // in JSON: "micro_batch"
  const char* flag;                  // "--mbs"
  std::vector<std::string> aliases;  // Megatron-LM's long names
  HelpGroup group;
  bool daily;         // --help shows it; --help-all shows all
  const char* value;  // placeholder of the value in the help: "N"; "": follows from the type
  const char* help;
  const char* by_default =
      "";  // in words; "": the value in a fresh Plan, or the framework's where they differ
};

struct IntegerField {
  std::variant<int Plan::*, std::int64_t Plan::*> member;
  std::int64_t min, max;  // both legal

  std::int64_t get(const Plan& plan) const;
  void set(Plan& plan, std::int64_t value) const;
};

struct NumberField {
  double Plan::*member;
  double min, max;
};

// Written with a unit in scenarios: "160MB". Reports state bytes, and add "_bytes" to the key.
struct BytesField {
  double Plan::*member;
};

struct SwitchField {
  bool Plan::*member;
};

struct ChoiceField {
  std::vector<std::string> words;
  std::size_t (*get)(const Plan&);  // index into words
  void (*set)(Plan&, std::size_t);
};

// Several words: an array in JSON, separated by commas on the command line.
struct ChoicesField {
  std::vector<std::string> words;
  std::vector<std::size_t> (*get)(const Plan&);
  void (*set)(Plan&, const std::vector<std::size_t>&);
  const char* unknown;  // the rule that another word breaks
};

// "tp-cp-ep-dp-pp"; an array in reports.
struct AxesField {};

// Layers of each stage, or "auto".
struct LayersField {};

// Another way to write fields that have rows of their own, such as Megatron-LM's layout of layers.
enum class ShorthandField { integer, on_off, text };

using FieldType = std::variant<IntegerField, NumberField, BytesField, SwitchField, ChoiceField, ChoicesField,
                               AxesField, LayersField, ShorthandField>;

struct PlanField : FieldText {
  FieldType type;
  bool (*matters)(const Plan&, const Model&);  // else the step is the same for every value

  bool differs(const Plan& a, const Plan& b) const;
};

// In the order of a report's "plan".
const std::vector<PlanField>& plan_fields();

// The field with this key; std::logic_error for an unknown key.
const PlanField& plan_field(std::string_view key);

// The value as a flag takes it: "8", "on", "core_attn,mlp"; "" for a shorthand.
std::string value_text(const PlanField& field, const Plan& plan);

// The default as --help states it: "1", "on", "the framework's", or by_default.
std::string default_text(const PlanField& field);

}  // namespace rehearse
