// Which flags does Megatron-LM know, and what does each mean for a scenario?
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rehearse {

enum class FlagValue { integer, number, text, on, off };

// A flag whose value is one field of the scenario.
struct DirectFlag {
  const char* name;
  const char* pointer;
  FlagValue value;
};
std::span<const DirectFlag> direct_flags();

// Flags that several fields follow from.
std::span<const char* const> combined_flags();

// Flags of the network's shape.
std::span<const char* const> shape_flags();

// Those among them that name the layers of a hybrid model and their sizes (megatron_hybrid.h).
std::span<const char* const> hybrid_flags();

// A flag that changes the cost of a step in a way that is not modelled.
struct UnmodelledFlag {
  const char* name;
  const char* counted;  // in its place
};
std::span<const UnmodelledFlag> unmodelled_flags();

// A flag that decides nothing where the command line gives the field.
struct Overridden {
  const char* name;
  const char* pointer;
};
std::span<const Overridden> overridden_flags();

// Flags that leave the time and memory of a step as they are: data, logging, checkpoints, optimizer
// constants, initialization, the launcher's own.
std::span<const char* const> costless_flags();

// All of them.
std::vector<std::string> known_megatron_flags();

}  // namespace rehearse
