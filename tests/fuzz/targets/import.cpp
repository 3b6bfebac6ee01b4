#include "calibrate/import/import.h"

#include "fuzz/folder.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// The text before the next line of dashes, which is removed from `rest`.
std::string next_part(std::string& rest) {
  constexpr const char* kBetween = "\n---\n";
  const std::size_t end = rest.find(kBetween);
  std::string part = rest.substr(0, end);
  rest = end == std::string::npos ? "" : rest.substr(end + 5);
  return part;
}

// A recipe, the table that it may name table.json, and the recipe base, which it may be like.
const Target kImport("import", [](const std::string& input) {
  static const Folder folder;
  std::string rest = input;
  folder.write("recipes/recipe.json", next_part(rest));
  folder.write("data/table.json", next_part(rest));
  folder.write("recipes/base.json", next_part(rest));
  import_profile(JsonReader::open(folder / "recipes/recipe.json"), folder / "data").dump();
});

}  // namespace

}  // namespace rehearse::fuzz
