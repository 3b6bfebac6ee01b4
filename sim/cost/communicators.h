// Which communicators does a plan make NCCL open on a GPU, and what do they and CUDA's context hold of its
// memory beside PyTorch's allocator?
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/work.h"

namespace rehearse {

// Whether the cluster's GPUs are parts of one, within which messages stay.
bool are_parts_of_one_gpu(const Cluster& cluster);

// Bytes of the buffers of each communicator on one GPU, those of the one first that all ranks share
// ("world"), and of DeepEP or HybridEP, which rows of experts go through.
using CommunicatorBytes = std::vector<std::pair<std::string, double>>;

// Of the GPU of each pipeline rank that holds most: one for each group that the plan's collectives and
// messages need, as PyTorch makes one when a group is first used, of the NCCL that came with it when the
// plan's framework did. None where no NCCL runs (Profile::collectives), and between parts of one GPU.
// Where groups of a kind lie differently, those of the pipeline rank's first GPU stand for all. Pipeline
// ranks that are alike are looked at once.
std::vector<CommunicatorBytes> communicator_bytes(const Work& work, const Model& model, const Plan& plan,
                                                  const Cluster& cluster, const Profile& profile);

// CUDA's context with the kernels that are loaded into it. What nvidia-smi shows once PyTorch has made one
// element on a V100: 1343 MiB (Hugging Face Transformers 4.21, "Efficient training on a single GPU"); on an
// H100 beyond PyTorch's allocator before the first collective: 1.06 GB (NVIDIA/nccl issue 1685), kernels
// being loaded as they are used (CUDA 11.7). Parts of one GPU have one together, of which each counts an
// equal share. 0 for GPUs that are not NVIDIA's.
double context_bytes(const Cluster& cluster, const Plan& plan);

}  // namespace rehearse
