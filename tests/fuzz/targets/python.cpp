#include "frameworks/python_recipe.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// A registry of torchtitan, a recipe of Megatron-Bridge and one of NeMo 2, whose function is called f.
const Target kPython("python", [](const std::string& input) {
  ImportRequest request;
  request.gpus = 16;
  request.shell.arguments = {"f"};
  for (const int kind : {0, 1, 2}) try {
      const Imported found = kind == 0   ? import_torchtitan_python(input, "python.py", request, 32)
                             : kind == 1 ? import_bridge_python(input, "python.py", request)
                                         : import_nemo_python(input, "python.py", request);
      found.scenario.dump();
    } catch (const InputError&) {  // the next kind may take it
    }
});

}  // namespace

}  // namespace rehearse::fuzz
