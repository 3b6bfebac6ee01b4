// What do the messages of a measurement tell NCCL's cost model of this very cluster?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/nccl/model.h"

namespace rehearse {

// `base` (null: the model that ships) with the messages as what was measured on `cluster`: they outrank all
// that it holds of the same operation over the same ranks, and of its sizes replace what was measured before.
std::shared_ptr<const nccl::Model> with_measured(std::shared_ptr<const nccl::Model> base,
                                                 const Cluster& cluster,
                                                 const std::vector<MessageSample>& messages);

// The part of a profile's "collectives" that was measured: {"model": its name, "measured": [...]}.
Json collectives_json(const nccl::Model& model);

}  // namespace rehearse
