#include "model/family.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/data_path.h"
#include "base/names.h"

namespace rehearse {

namespace {

// Merges objects by key and appends arrays.
void add(Json& to, const Json& more) {
  if (more.is_array())
    for (const Json& value : more) to.push_back(value);
  else
    for (const auto& [key, value] : more.items()) to[key] = value;
}

// A row's own default replaces the implied value of its base row ("like").
Json with(Json row, const Json& more) {
  if (more.contains("absent") && row.contains("implied"))
    for (const auto& [part, value] : more["absent"].items()) row["implied"].erase(part);
  for (const auto& [key, value] : more.items()) {
    if (key == "like" || key.starts_with('_')) continue;
    if (key == "class" || key == "types" || key == "refused" || key == "reader")
      row[key] = value;
    else
      add(row[key], value);
  }
  return row;
}

class Rows {
 public:
  explicit Rows(const std::string& file) : file_(file), json_(read_json_file(file)) {
    for (const auto& [model_type, row] : json_.items())
      if (!model_type.starts_with('_')) families_.push_back(family(model_type));
  }
  std::vector<ModelFamily> all() && { return std::move(families_); }

 private:
  // A row may extend a row that stands before it ("like").
  Json whole(const std::string& model_type) {
    const JsonReader row(json_.at(model_type), file_, "/" + model_type);
    if (!row.has("like")) return with(json_.at("_common"), row.json());
    const std::string like = row.text("like");
    if (!whole_.contains(like)) row.fail("like", "must be a row before this one", like);
    return with(whole_.at(like), row.json());
  }

  ModelFamily family(const std::string& model_type) {
    const Json& row = whole_[model_type] = whole(model_type);
    const auto part = [&](const char* key, const Json& none) { return row.value(key, none); };
    ModelFamily family;
    family.model_type = model_type;
    family.refused = row.value("refused", "");
    family.reader = row.value("reader", "");
    const Json classes = part("class", Json::array());
    if (classes.is_string()) family.classes.push_back(classes.get<std::string>());
    if (classes.is_array()) family.classes = classes.get<std::vector<std::string>>();
    if (json_.at(model_type).contains("types"))
      family.types = json_.at(model_type)["types"].get<std::vector<std::string>>();
    family.names = part("names", Json::object());
    family.implied = part("implied", Json::object());
    family.absent = part("absent", Json::object());
    family.only = part("only", Json::object());
    family.cases = part("cases", Json::array());
    family.per_layer = part("per_layer", Json::array());
    family.approximated = part("approximated", Json::object());
    return family;
  }

  std::string file_;
  Json json_;
  std::map<std::string, Json> whole_;
  std::vector<ModelFamily> families_;
};

std::vector<std::string> known_types() {
  std::vector<std::string> known;
  for (const ModelFamily& family : families())
    if (family.refused.empty()) known.push_back(family.model_type);
  return known;
}

const ModelFamily* find_type(const std::string& model_type) {
  const auto found = std::ranges::find(families(), model_type, &ModelFamily::model_type);
  return found == families().end() ? nullptr : &*found;
}

const ModelFamily* find_class(const std::string& name) {
  const auto found = std::ranges::find_if(families(), [&](const ModelFamily& family) {
    return std::ranges::find(family.classes, name) != family.classes.end();
  });
  return found == families().end() ? nullptr : &*found;
}

std::string first_class(const JsonReader& config) {
  if (!config.has("architectures")) return "";
  const Json& classes = config.value("architectures");
  if (!classes.is_array() || classes.empty() || !classes.front().is_string())
    config.fail("architectures", "must be an array of class names", "found " + classes.dump());
  return classes.front().get<std::string>();
}

// Several classes may state one model type. The family of the file's class; nullptr: the type decides.
const ModelFamily* class_of_type(const JsonReader& config, const std::string& model_type) {
  const Json none = Json::array();
  const Json& classes = config.has("architectures") ? config.value("architectures") : none;
  if (!classes.is_array() || classes.empty() || !classes.front().is_string()) return nullptr;
  const ModelFamily* found = find_class(classes.front().get<std::string>());
  const bool states = found != nullptr && std::ranges::find(found->types, model_type) != found->types.end();
  return states ? found : nullptr;
}

std::string way_on(const std::string& as) {
  return fmt::format(
      "; --as {} reads the file as one of a known type, and lists the keys that are used, ignored and "
      "missing; model_type block_list describes layers block by block (docs/models.md)",
      as);
}

// The nearest class is suggested for a class, and the nearest type for a type.
[[noreturn]] void refuse_unknown(const JsonReader& config, const std::string& key, const std::string& name,
                                 const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  const ModelFamily* like = find_type(near) != nullptr ? find_type(near) : find_class(near);
  config.fail(key, "must be one of " + some_names(known, name) + way_on(like ? like->model_type : "llama"),
              fmt::format("found \"{}\"", name), near);
}

const ModelFamily& readable(const JsonReader& config, const std::string& key, const ModelFamily& family) {
  if (!family.refused.empty())
    config.fail(key, family.refused + way_on("llama"), fmt::format("found \"{}\"", family.model_type));
  return family;
}

}  // namespace

bool ModelFamily::reads_like(const ModelFamily& other) const {
  return implied == other.implied && absent == other.absent && names == other.names && only == other.only &&
         cases == other.cases && reader == other.reader && refused == other.refused;
}

const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> rows = Rows((data_directory() / kFamilyRows).string()).all();
  return rows;
}

const ModelFamily& family_of(const JsonReader& config) {
  if (config.has("model_type") || !config.has("architectures")) {
    const std::string name = config.text("model_type");
    if (const ModelFamily* found = class_of_type(config, name))
      return readable(config, "architectures/0", *found);
    if (const ModelFamily* found = find_type(name)) return readable(config, "model_type", *found);
    if (const ModelFamily* found = find_class(first_class(config))) {
      config.fail("model_type",
                  "must be one of " + some_names(known_types(), name) + way_on(found->model_type),
                  fmt::format("found \"{}\"", name), found->model_type);
    }
    refuse_unknown(config, "model_type", name, known_types());
  }
  const std::string name = first_class(config);
  if (const ModelFamily* found = find_class(name)) return readable(config, "architectures/0", *found);
  std::vector<std::string> known;
  for (const ModelFamily& family : families())
    known.insert(known.end(), family.classes.begin(), family.classes.end());
  refuse_unknown(config, "architectures/0", name, known);
}

const ModelFamily& family_named(const std::string& model_type, const std::string& file) {
  const ModelFamily* found = find_type(model_type);
  if (found != nullptr && found->refused.empty()) return *found;
  throw InputError({file, "as", "must be one of " + some_names(known_types(), model_type),
                    fmt::format("found \"{}\"", model_type), nearest_name(model_type, known_types())});
}

}  // namespace rehearse
