// What does a scenario count in place of an optimizer that is not Adam?
#pragma once

#include <string>

namespace rehearse {

// "" for Adam and its kin, which keep two moments of a parameter; else how its state and its step differ from
// those of Adam, which are counted. `where` names the setting.
std::string optimizer_note(const std::string& where, const std::string& optimizer);

}  // namespace rehearse
