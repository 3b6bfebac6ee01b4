// Which kinds of values does a run of Python know, and which value do its operators return?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

inline constexpr const char* kPythonReference = "#";  // {"#": 3}, an object
inline constexpr const char* kPythonName = "@";       // {"@": "torch.float32"}, of another module
inline constexpr const char* kPythonUnknown = "?";    // {"?": "a // b"}, as it stands
inline constexpr const char* kPythonSpread = "**";    // the name of an argument "*x" or "**x"

bool is_python(const Json& value, const char* kind);
Json python_unknown(const std::string& text);
std::string python_text(const Json& value);

// Whether a value that is no object counts as true: 1, 0, or -1 where that is not known.
int python_truth(const Json& value);

// "+", "//", "**", ...; unknown where the values do not decide it.
Json python_computed(const Json& a, const std::string& op, const Json& b);

// "<", "in", "not in", ...
Json python_compared(const Json& a, const std::string& op, const Json& b);

// Names of other modules are compared by their text: two constants may have one value.
Json python_equal(const Json& a, const Json& b);

Json python_inverted(const Json& value, bool inverts);

}  // namespace rehearse
