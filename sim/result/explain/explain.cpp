#include "result/explain/explain.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rehearse {

const std::vector<Topic>& topics() {
  static const std::vector<Topic> list = {
      {"bubble", "why pipeline ranks wait, and for how long at least", explain_bubble},
      {"schedule", "which rank does what in which order, and which layers it holds", explain_schedule},
      {"messages", "the bytes that pass from stage to stage", explain_messages},
      {"tensor", "the bytes that tensor parallelism moves in a layer", explain_tensor},
      {"experts", "which rows travel to experts, and what their layers take", explain_experts},
      {"batch", "how micro batch, accumulation and global batch relate", explain_batch},
      {"flops", "what a model FLOP is, MFU and HFU", explain_flops},
      {"memory", "where each byte of a GPU comes from", explain_memory},
      {"recompute", "memory saved for forward work done twice", explain_recompute},
      {"zero", "bytes a parameter when state is sharded over replicas", explain_zero},
      {"kernels", "which kernels take the time, and at which rates", explain_kernels}};
  return list;
}

std::string explain(const std::string& topic, const Explained& run) {
  std::vector<std::string> names;
  for (const Topic& known : topics()) {
    if (known.name == topic) return known.text(run);
    names.push_back(known.name);
  }
  const std::string near = nearest_name(topic, names);
  throw InputError({"command line", "TOPIC", "there is no such topic", fmt::format("found \"{}\"", topic),
                    near.empty() ? join(names) : near});
}

}  // namespace rehearse
