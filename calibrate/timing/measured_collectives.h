// How do measured messages update NCCL's cost model for this cluster?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/nccl/model.h"

namespace rehearse {

// `base` (null: the built-in model) with the messages as measurements on `cluster`. They take precedence over
// all entries for the same operation on the same ranks, and replace earlier measurements of the same sizes.
std::shared_ptr<const nccl::Model> with_measured(std::shared_ptr<const nccl::Model> base,
                                                 const Cluster& cluster,
                                                 const std::vector<MessageSample>& messages);

// The measured part of a profile's "collectives": {"model": its name, "measured": [...]}.
Json collectives_json(const nccl::Model& model);

}  // namespace rehearse
