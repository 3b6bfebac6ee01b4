#include "frameworks/python_recipe.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

void dump(const Imported& found) {
  found.scenario.dump();
  found.model.dump();
}

// A registry of torchtitan, a recipe of Megatron-Bridge and one of NeMo 2, whose function is called f, and a
// script of OLMo-core: each takes every file that is one.
const Target kPython(
    "python",
    [](const std::string& input) {
      ImportRequest request;
      request.gpus = 16;
      request.shell.arguments = {"f"};
      takes([&] { dump(import_torchtitan_python(input, "python.py", request, 32)); });
      takes([&] { dump(import_bridge_python(input, "python.py", request)); });
      takes([&] { dump(import_nemo_python(input, "python.py", request)); });
      takes([&] { dump(import_olmo_core(input, "python.py", request)); });
      request.shell.arguments.clear();
      takes([&] { dump(import_olmo_core(input, "python.py", request)); });
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
