#include "base/json_kind.h"

#include <fmt/core.h>

#include <array>
#include <optional>

namespace rehearse {

namespace {

struct KnownKind {
  JsonKind kind;
  const char* name;
  const char* reader;  // the command that reads such a file; {} is its name
};

constexpr std::array kKinds = {
    KnownKind{JsonKind::scenario, "a scenario", "rehearse simulate {}"},
    KnownKind{JsonKind::model, "a Hugging Face configuration of a model", "--model {}"},
    KnownKind{JsonKind::cluster, "a cluster", "--cluster {}"},
    KnownKind{JsonKind::profile, "a profile", "--profile {}"},
    KnownKind{JsonKind::report, "a report of a run", "rehearse compare {} OTHER.json"},
    KnownKind{JsonKind::trace, "a trace of a run", "rehearse compare {} OTHER.json"},
    KnownKind{JsonKind::plans, "an answer of `rehearse plan --json`", ""}};

const KnownKind& known(JsonKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

// The program's own files name their schema; other files are recognised by their keys.
std::optional<JsonKind> kind_of(const Json& json) {
  const auto has = [&](const char* key) { return json.contains(key); };
  if (has("schema") && json["schema"].is_string()) {
    const std::string schema = json["schema"].get<std::string>();
    for (const auto& [prefix, kind] :
         {std::pair{"rehearse.scenario/", JsonKind::scenario},
          std::pair{"rehearse.cluster/", JsonKind::cluster},
          std::pair{"rehearse.profile/", JsonKind::profile}, std::pair{"rehearse.report/", JsonKind::report}})
      if (schema.starts_with(prefix)) return kind;
  }
  if (has("traceEvents")) return JsonKind::trace;
  if (has("plans") && has("considered")) return JsonKind::plans;
  const bool is_scenario = has("model") || has("cluster");
  if (is_scenario) return has("plan") || has("gpus") ? std::optional(JsonKind::scenario) : std::nullopt;
  return has("model_type") || has("architectures") ? std::optional(JsonKind::model) : std::nullopt;
}

}  // namespace

void require_kind(const Json& json, const std::string& file, JsonKind wanted) {
  if (!json.is_object()) return;  // the reader of its keys refuses it
  const std::optional<JsonKind> kind = kind_of(json);
  if (!kind || *kind == wanted) return;
  const KnownKind& found = known(*kind);
  throw InputError({file, "", fmt::format("is {}, not {}", found.name, known(wanted).name), "",
                    fmt::format(fmt::runtime(found.reader), file)});
}

}  // namespace rehearse
