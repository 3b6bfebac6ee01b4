#include "result/explain/explain.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rehearse {

const std::vector<Topic>& topics() {
  static const std::vector<Topic> list = {
      {"bubble", "why pipeline ranks are idle, and the ideal bubble", explain_bubble},
      {"schedule", "order of ops on each pipeline rank, and layers of each stage", explain_schedule},
      {"messages", "bytes of the activations between pipeline stages", explain_messages},
      {"tensor", "bytes that tensor parallelism sends per layer", explain_tensor},
      {"experts", "token dispatch and combine, and time of the expert layers", explain_experts},
      {"batch", "relation of micro batch, gradient accumulation and global batch", explain_batch},
      {"flops", "model FLOPs, hardware FLOPs, MFU and HFU", explain_flops},
      {"memory", "memory of a GPU by category", explain_memory},
      {"recompute", "memory that recompute saves, and FLOPs that it adds", explain_recompute},
      {"zero", "bytes per parameter at each ZeRO stage", explain_zero},
      {"kernels", "slowest kernels, with time and rate", explain_kernels}};
  return list;
}

std::string explain(const std::string& topic, const Explained& run) {
  std::vector<std::string> names;
  for (const Topic& known : topics()) {
    if (known.name == topic) return known.text(run);
    names.push_back(known.name);
  }
  const std::string near = nearest_name(topic, names);
  throw InputError({"command line", "TOPIC", "unknown topic", fmt::format("found \"{}\"", topic),
                    near.empty() ? join(names) : near});
}

}  // namespace rehearse
