// Which option of the user is not counted, and in which direction would it change memory and step time?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// An effect above 10 % of memory or step time. Smaller ones are notes alone.
struct OmittedEffect {
  std::string option;                // as the file spells it, with its value
  std::string counted;               // in its place: "all parameters are counted as trained"
  std::vector<std::string> changes;  // of kCostChanges
  bool has(const std::string& change) const;
};

inline constexpr const char* kLessMemory = "less memory";
inline constexpr const char* kMoreMemory = "more memory";
inline constexpr const char* kLessTime = "less time";
inline constexpr const char* kMoreTime = "more time";
const std::vector<std::string>& cost_changes();

// "less memory, more time" of a table's row. std::logic_error for other words.
std::vector<std::string> changes_of(const std::string& words);

bool any_has(const std::vector<OmittedEffect>& effects, const std::string& change);

// "not a verdict: adapter lora (less memory, less time) is not counted, ..."; "" where there are none.
std::string in_words(const std::vector<OmittedEffect>& effects);

}  // namespace rehearse
