// rehearse-import: makes the profiles that ship with the program out of published measurements.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "base/error.h"
#include "calibrate/import/import.h"
#include "calibrate/import/profile_json.h"

namespace {

void write_profile(const std::string& recipe, const std::string& data, const std::filesystem::path& folder) {
  const rehearse::Json profile = rehearse::import_profile(rehearse::JsonReader::open(recipe), data);
  const std::filesystem::path path = folder / (profile.at("name").get<std::string>() + ".json");
  std::ofstream out(path, std::ios::binary);
  out << rehearse::to_text(profile);
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
  fmt::print("{}\n", path.string());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes profiles out of published measurements");
  std::vector<std::string> recipes;
  std::string data, folder;
  app.add_option("recipes", recipes, "recipes (calibrate/recipes/*.json)")->required();
  app.add_option("--data", data, "folder of the published tables")->required();
  app.add_option("-o,--output", folder, "folder for the profiles")->required();
  try {
    app.parse(argc, argv);
    for (const std::string& recipe : recipes) write_profile(recipe, data, folder);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const rehearse::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
