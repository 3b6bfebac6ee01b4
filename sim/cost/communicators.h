// Which communicators does a plan make NCCL open on a GPU? How much memory do they and CUDA's context take
// beside PyTorch's allocator?
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

// Buffer bytes of each communicator on one GPU, and of DeepEP or HybridEP, which carry the tokens of experts.
// The communicator of all ranks ("world") comes first.
using CommunicatorBytes = std::vector<std::pair<std::string, double>>;

// Communicators on one GPU of each pipeline rank, the GPU where they take most memory. PyTorch makes one
// communicator for each group that collectives and messages of the plan need, when the group is first used.
// The NCCL release is that of the PyTorch of the plan's framework. Empty where no NCCL runs
// (Profile::collectives), and between parts of one GPU.
//
// If groups of a kind are placed differently, those of the pipeline rank's first GPU stand for all. Equal
// pipeline ranks are computed once.
std::vector<CommunicatorBytes> communicator_bytes(const Work& work, const Model& model, const Plan& plan,
                                                  const Cluster& cluster, const Profile& profile);

// Bytes of CUDA's context with the kernels that are loaded into it. On a V100, nvidia-smi shows 1343 MiB once
// PyTorch has made one element (Hugging Face Transformers 4.21, "Efficient training on a single GPU"). On an
// H100, 1.06 GB are in use beyond PyTorch's allocator before the first collective (NVIDIA/nccl issue 1685),
// with kernels loaded when first used (CUDA 11.7). Parts of one GPU share one context; each counts an equal
// share. 0 for GPUs that are not NVIDIA's.
double context_bytes(const Cluster& cluster, const Plan& plan);

}  // namespace rehearse
