// How does an optimizer other than Adam differ from the Adam that a scenario counts?
#pragma once

#include <string>

#include "frameworks/imported.h"

namespace rehearse {

// The note states how state and step differ from those of Adam, which are counted. It is "" for Adam and its
// kin, which keep two moments of a parameter. `where` names the setting.
std::string optimizer_note(const std::string& where, const std::string& optimizer);

// Adds that note, and the effect where it can decide the answer.
void note_optimizer(const std::string& where, const std::string& optimizer, Imported& imported);

}  // namespace rehearse
