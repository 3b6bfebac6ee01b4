#include "scenario/read_field.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

namespace rehearse {

namespace {

std::map<std::string, std::size_t> indices(const std::vector<std::string>& words) {
  std::map<std::string, std::size_t> found;
  for (std::size_t i = 0; i < words.size(); ++i) found[words[i]] = i;
  return found;
}

// An array of names, or text with commas.
std::vector<std::string> names_at(const JsonReader& json, const std::string& key) {
  const Json& given = json.value(key);
  std::vector<std::string> names;
  if (given.is_string()) {
    std::istringstream list(given.get<std::string>());
    for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  } else if (given.is_array()) {
    for (const Json& entry : given)
      names.push_back(entry.is_string() ? entry.get<std::string>() : entry.dump());
  } else {
    json.fail(key, "must be an array of module names", "found " + given.dump());
  }
  return names;
}

struct ReadField {
  const JsonReader& json;
  const std::string key;
  Plan& plan;

  void operator()(const IntegerField& field) const {
    field.set(plan, json.integer_or(key, field.get(plan), field.min, field.max));
  }
  void operator()(const NumberField& field) const {
    plan.*field.member = json.number_or(key, plan.*field.member, field.min, field.max);
  }
  void operator()(const BytesField& field) const {
    if (json.has(key)) plan.*field.member = json.quantity(key, physical::kBytes);
  }
  void operator()(const SwitchField& field) const {
    plan.*field.member = json.boolean_or(key, plan.*field.member);
  }
  void operator()(const ChoiceField& field) const {
    if (json.has(key)) field.set(plan, json.choice(key, indices(field.words)));
  }

  void operator()(const ChoicesField& field) const {
    if (!json.has(key)) return;
    const std::map<std::string, std::size_t> known = indices(field.words);
    std::vector<std::size_t> chosen;
    for (const std::string& name : names_at(json, key)) {
      if (!known.contains(name)) {
        std::vector<std::string> words;
        for (const auto& entry : known) words.push_back(entry.first);
        json.fail(key, field.unknown, fmt::format("found \"{}\"", name), join(words));
      }
      chosen.push_back(known.at(name));
    }
    field.set(plan, chosen);
  }

  void operator()(const AxesField&) const {
    if (!json.has(key)) return;
    const std::string text = json.text(key);
    std::istringstream words(text);
    std::array<Axis, 5> order{};
    std::size_t count = 0;
    for (std::string word; std::getline(words, word, '-'); ++count) {
      const auto axis = std::ranges::find_if(kAxes, [&](Axis named) { return to_string(named) == word; });
      if (count >= order.size() || axis == kAxes.end()) count = order.size();
      if (count < order.size()) order[count] = *axis;
    }
    if (count != order.size())
      json.fail(key, "must name tp, cp, ep, dp and pp once each", fmt::format("found \"{}\"", text),
                "tp-cp-ep-dp-pp");
    plan.order = order;
  }

  void operator()(const LayersField&) const {}
  void operator()(ShorthandField) const {}
};

}  // namespace

void read_field(const JsonReader& json, const PlanField& field, Plan& plan) {
  std::visit(ReadField{json, field.key, plan}, field.type);
}

void read_field(const JsonReader& json, std::string_view key, Plan& plan) {
  read_field(json, plan_field(key), plan);
}

}  // namespace rehearse
