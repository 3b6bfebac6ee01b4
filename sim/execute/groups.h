// With which ranks does a rank communicate, and about which data?
#pragma once

#include <memory>

#include "execute/training.h"
#include "kernels/communicator.h"

namespace rehearse {

// One communicator for each stream that uses one, so that no two streams share one. Null: a group of one.
struct Groups {
  using Communicator = std::unique_ptr<kernels::Communicator>;
  Communicator tensor;  // inside compute ops
  Communicator context;
  Communicator expert;         // all experts of a layer
  Communicator expert_tensor;  // one expert
  Communicator forward;        // activations between pipeline ranks; members by pipeline rank
  Communicator backward;       // their gradients
  // Ranks that hold the same parameters.
  struct Holders {
    Communicator gradients, parameters;
    Communicator replicas;  // of shards, where they are divided in groups
  };
  Holders dense, experts;
  Communicator tied;  // first and last stage
  Communicator step;  // all ranks, where they step together
};

// Every rank of the world calls this once. Blocks until all have called.
Groups connect_groups(const Training& training, kernels::World& world);

}  // namespace rehearse
