#include "frameworks/python_recipe.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// A registry of torchtitan and a recipe of Megatron-Bridge, whose function is called f.
const Target kPython("python", [](const std::string& input) {
  ImportRequest request;
  request.gpus = 16;
  request.shell.arguments = {"f"};
  import_torchtitan_python(input, "python.py", request, 32).scenario.dump();
  import_bridge_python(input, "python.py", request).scenario.dump();
});

}  // namespace

}  // namespace rehearse::fuzz
