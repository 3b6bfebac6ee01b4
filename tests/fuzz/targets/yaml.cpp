#include "frameworks/kinds.h"
#include "frameworks/yaml_dialects.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// Each reader of YAML takes every file that is one.
const Target kYaml(
    "yaml",
    [](const std::string& input) {
      const YamlText yaml = read_yaml(input, "train.yaml");
      for (const LaunchKind& kind : launch_kinds()) {
        const std::string name = kind.name;
        if (name == "megatron" || name == "deepspeed" || name == "torchtitan") continue;
        takes([&] {
          const Imported imported =
              kind.read({"train.yaml", input}, {}, [](const std::string&) { return std::int64_t{32}; });
          imported.scenario.dump();
          imported.model.dump();
        });
      }
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
