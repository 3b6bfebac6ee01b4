#include "sweep/plot/fields.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/quantity.h"

namespace rehearse::plot {

namespace {

std::string label_of(const SweptField& field) {
  static const std::map<std::string, std::string> labels = {
      {"/plan/tp", "tensor parallel (tp)"},
      {"/plan/pp", "pipeline parallel (pp)"},
      {"/plan/vpp", "model chunks per pipeline rank (vpp)"},
      {"/plan/dp", "data-parallel replicas (dp)"},
      {"/plan/cp", "context parallel (cp)"},
      {"/plan/ep", "expert parallel (ep)"},
      {"/plan/micro_batch", "microbatch (sequences)"},
      {"/plan/global_batch", "global batch (sequences)"},
      {"/plan/seq", "sequence (tokens)"},
      {"/plan/zero", "ZeRO stage"},
      {"/gpus", "GPUs"},
      {"/cluster_changes/node/nics/bandwidth", "bandwidth of a NIC"},
      {"/cluster_changes/fabric/oversubscription", "oversubscription of the fabric"}};
  const auto found = labels.find(field.pointer);
  return found == labels.end() ? field.name : found->second;
}

// A number, or a quantity with its unit.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  for (const Dimension dimension :
       {Dimension::bytes_per_second, Dimension::bytes, Dimension::seconds, Dimension::flops})
    if (const auto quantity = parse_quantity(value.get<std::string>(), dimension)) return quantity;
  return std::nullopt;
}

}  // namespace

std::string text_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

FieldAxis axis_of(const SweptField& field) {
  constexpr double kWide = 4;
  FieldAxis axis{label_of(field), true, false, {}, {}};
  for (const Json& value : field.values) {
    axis.texts.push_back(text_of(value));
    const std::optional<double> number = number_of(value);
    axis.numeric = axis.numeric && number;
    axis.at.push_back(number.value_or(0));
  }
  if (!axis.numeric) {
    for (std::size_t i = 0; i < axis.at.size(); ++i) axis.at[i] = static_cast<double>(i);
  } else {
    const auto [least, most] = std::ranges::minmax(axis.at);
    axis.logarithmic = least > 0 && most > kWide * least;
  }
  return axis;
}

int field_at(const Grid& grid, const std::string& pointer) {
  for (std::size_t i = 0; i < grid.fields.size(); ++i)
    if (grid.fields[i].pointer == pointer) return static_cast<int>(i);
  return -1;
}

std::string values_in_words(const std::vector<Json>& values, const Grid& grid, const std::set<int>& but) {
  static const std::set<std::string> speaking = {"/model", "/cluster", "/plan/schedule", "/plan/precision",
                                                 "/plan/framework"};
  std::vector<std::string> words;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (but.contains(static_cast<int>(i))) continue;
    const SweptField& field = grid.fields[i];
    const std::string name = field.name.substr(field.name.rfind('.') + 1);
    words.push_back(speaking.contains(field.pointer) ? text_of(values[i]) : name + " " + text_of(values[i]));
  }
  return join(words);
}

}  // namespace rehearse::plot
