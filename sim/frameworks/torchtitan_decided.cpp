#include "frameworks/torchtitan_decided.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "frameworks/torchtitan_keys.h"

namespace rehearse {

namespace {

// Integers of torchtitan's dataclasses (torchtitan/config/configs.py), with the plan's field where it is
// that. Some are -1 where the framework decides.
struct IntegerOfRegistry {
  const char* key;
  const char* pointer;
  std::int64_t least = 1;
};
constexpr std::array kIntegersOfRegistry = {
    IntegerOfRegistry{"training.max_context_length", "/plan/seq"},
    IntegerOfRegistry{"training.seq_len", "/plan/seq"},
    IntegerOfRegistry{"training.num_tokens_per_microbatch_per_dp_rank", "/plan/micro_batch"},
    IntegerOfRegistry{"training.local_batch_size", "/plan/micro_batch"},
    IntegerOfRegistry{"training.num_tokens_per_train_step", "/plan/global_batch", -1},
    IntegerOfRegistry{"training.global_batch_size", "/plan/global_batch", -1},
    IntegerOfRegistry{"parallelism.tensor_parallel_degree", "/plan/tp"},
    IntegerOfRegistry{"parallelism.pipeline_parallel_degree", "/plan/pp"},
    IntegerOfRegistry{"parallelism.context_parallel_degree", "/plan/cp"},
    IntegerOfRegistry{"parallelism.expert_parallel_degree", "/plan/ep"},
    IntegerOfRegistry{"parallelism.data_parallel_replicate_degree", ""},
    IntegerOfRegistry{"parallelism.data_parallel_shard_degree", "", -1},
    IntegerOfRegistry{"parallelism.expert_tensor_parallel_degree", ""},
    IntegerOfRegistry{"parallelism.num_pp_microbatches", ""},
    IntegerOfRegistry{"parallelism.pipeline_parallel_microbatch_size", ""}};

// The command line decides what the file does not.
bool is_said(const std::string& path, const SaidOverFile& over) {
  return std::ranges::any_of(kIntegersOfRegistry, [&](const IntegerOfRegistry& each) {
    return path == each.key && over.contains(each.pointer);
  });
}

void require_integer(const IntegerOfRegistry& integer, const PythonSettings& found, const SaidOverFile& over,
                     const std::string& file, std::vector<Violation>& violations) {
  const Json* value = at_path(found.json, integer.key);
  if (value == nullptr || over.contains(integer.pointer)) return;
  const bool is_legal = value->is_number_integer() && *value >= integer.least && *value <= kMaxOfRegistry;
  if (is_legal) return;
  std::string pointer = std::string("/") + integer.key;
  std::ranges::replace(pointer, '.', '/');
  const auto line = found.lines.find(pointer);
  const std::string kind = value->is_number_integer() ? "an int"
                           : value->is_number_float() ? "a float"
                           : value->is_string()       ? "a str"
                           : value->is_null()         ? "None"
                                                      : value->type_name();
  const bool is_whole = value->is_number_float() &&
                        value->get<double>() == std::floor(value->get<double>()) &&
                        value->get<double>() >= static_cast<double>(integer.least) &&
                        value->get<double>() <= static_cast<double>(kMaxOfRegistry);
  violations.push_back(
      {file, line == found.lines.end() ? integer.key : fmt::format("line {}: {}", line->second, integer.key),
       fmt::format("must be an int from {} to {}, as torchtitan declares it", integer.least, kMaxOfRegistry),
       fmt::format("found {}, {}", value->dump().substr(0, 60), kind),
       is_whole ? std::to_string(value->get<std::int64_t>()) : ""});
}

}  // namespace

// Open values and values of another type never become defaults.
std::vector<std::string> require_decided_registry(const PythonSettings& found, const SaidOverFile& over,
                                                  const std::string& file) {
  std::vector<std::string> notes;
  std::vector<Violation> violations;
  for (const OpenSetting& each : found.open) {
    const std::string section = each.path.substr(0, each.path.find('.'));
    const std::string key = section == each.path ? "" : each.path.substr(section.size() + 1);
    const bool shapes = std::ranges::count(kSectionsOfRegistry, section) > 0
                            ? !is_torchtitan_free(section, key)
                            : section == "activation_checkpoint" || section == "model_converters" ||
                                  key.starts_with("converters") || section == "**";
    if (shapes && !is_said(each.path, over))
      violations.push_back(violation_of_open(each, file));
    else
      notes.push_back(note_on_open(each));
  }
  for (const char* name : kSectionsOfRegistry) {
    const std::string made = made_by(found.json.value(name, Json()));
    const bool is_needed = std::string_view(name) == "training" || std::string_view(name) == "parallelism";
    if (is_needed && found.json.contains(name) && !found.json[name].is_object())
      violations.push_back(
          {file, name, "must be a configuration", "found " + found.json[name].dump().substr(0, 60), ""});
    const bool is_known = made.empty() || is_python_class(made) || std::string_view(name) == "optimizer";
    const auto line = found.lines.find(std::string("/") + name);
    if (!is_known && !is_torchtitan_free(name, ""))
      violations.push_back(violation_of_open(
          {name, made + "() makes it", line == found.lines.end() ? 0 : line->second}, file));
  }
  for (const IntegerOfRegistry& each : kIntegersOfRegistry)
    require_integer(each, found, over, file, violations);
  if (!violations.empty()) throw InputError(std::move(violations));
  return notes;
}

}  // namespace rehearse
