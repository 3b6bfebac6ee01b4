#include "frameworks/python_recipe.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

void dump(const Imported& found) {
  found.scenario.dump();
  found.model.dump();
}

// Settings of a registry of torchtitan, a recipe of Megatron-Bridge, one of NeMo 2 and a script of OLMo-core,
// as settings.py prints them: each takes every answer. Python itself reads the file.
const Target kPython(
    "python",
    [](const std::string& input) {
      const Json answer = Json::parse(input, nullptr, false);
      if (answer.is_discarded() || !answer.is_object() || !answer.contains("result")) return;
      PythonSettings found;
      found.json = answer["result"];
      ImportRequest request;
      request.gpus = 16;
      take_open(found.json, "", found.open);
      if (!found.json.is_object()) return;
      takes([&] { dump(import_torchtitan_settings(found, "python.py", request, 32)); });
      takes([&] { dump(import_bridge_settings(found, "python.py", request)); });
      takes([&] { dump(import_nemo_settings(found, "python.py", request)); });
      takes([&] { dump(import_olmo_core_settings(found, "python.py", request)); });
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
