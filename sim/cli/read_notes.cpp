#include "cli/read_notes.h"

#include <algorithm>

namespace rehearse {

void read_notes(const JsonReader& scenario, std::vector<std::string>& notes) {
  if (!scenario.has("notes")) return;
  const Json& texts = scenario.value("notes");
  const bool are_texts =
      texts.is_array() && std::ranges::all_of(texts, [](const Json& text) { return text.is_string(); });
  if (!are_texts)
    scenario.fail("notes", "must be an array of texts", std::string("found ") + texts.type_name());
  for (const Json& text : texts) notes.push_back(text);
}

}  // namespace rehearse
