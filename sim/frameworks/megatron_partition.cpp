#include "frameworks/megatron_partition.h"

#include <fmt/core.h>

#include "base/names.h"

namespace rehearse {

// Stages have as many layers of the named types (deepspeed/runtime/pipe/module.py, _partition_layers). Input
// embedding and output are layers of type EmbeddingPipe (Megatron-DeepSpeed, megatron/model/gpt_model.py).
void add_partition(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes) {
  const std::string method = in_lower_case(flags.text_or("--pp-partition-method", "type:transformer"));
  if (method == "type:transformer") return;
  const auto names = [&](const char* type) { return method.find(type) != std::string::npos; };
  if (method.starts_with("type:") && names("transformer") && names("embedding"))
    plan["embedding_as_layer"] = plan["loss_as_layer"] = true;
  else
    notes.push_back(
        fmt::format("--pp-partition-method {} is ignored: stages have equal numbers of layers", method));
}

}  // namespace rehearse
