// How does an optimizer other than Adam differ from the Adam that a scenario counts?
#pragma once

#include <string>

namespace rehearse {

// The note states how state and step differ from those of Adam, which are counted. It is "" for Adam and its
// kin, which keep two moments of a parameter. `where` names the setting.
std::string optimizer_note(const std::string& where, const std::string& optimizer);

}  // namespace rehearse
