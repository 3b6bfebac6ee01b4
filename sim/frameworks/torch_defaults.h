// Which defaults do PyTorch programs for transformers have where their files state no value?
#pragma once

#include "frameworks/imported.h"

namespace rehearse {

// Effects that several readers state.
inline constexpr const char* kUncompiled =
    "the kernel times of the profile are used, without a compiler's fusions";
inline constexpr const char* kOffloadsAll =
    "moves parameters and gradients too: those are counted on the GPU";
inline constexpr const char* kOffloadChanges = "less memory, more time";

// Kernels of a network that transformers runs without a compiler: an operation each for norms, rotary
// positions, activation and loss (modeling_llama.py). A note says so.
void add_eager_transformers(Imported& imported, Json& plan);

// DistributedDataParallel under torch.autocast: weights and gradients are fp32, in memory and on the wire.
// Nothing changes where weights are sharded, or where the precision is another.
void add_autocast(Json& plan);

}  // namespace rehearse
