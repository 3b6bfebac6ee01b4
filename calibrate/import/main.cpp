// rehearse-import: makes the profiles and the collectives model that ship with the program, out of published
// measurements.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "base/error.h"
#include "calibrate/import/collectives.h"
#include "calibrate/import/import.h"
#include "calibrate/import/profile_json.h"

namespace {

// Into folder/NAME.json by the name inside.
void write(const rehearse::Json& json, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / (json.at("name").get<std::string>() + ".json");
  std::ofstream out(path, std::ios::binary);
  out << rehearse::to_text(json);
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
  fmt::print("{}\n", path.string());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes profiles out of published measurements");
  std::vector<std::string> recipes;
  std::string data, folder;
  bool collectives = false, errors = false;
  app.add_option("recipes", recipes, "recipes (calibrate/recipes/*.json)");
  app.add_flag("--collectives", collectives, "make the collectives model out of the nccl-tests tables");
  app.add_flag("--errors", errors, "print how well those tables are predicted, seen and left out");
  app.add_option("--data", data, "folder of the published tables")->required();
  app.add_option("-o,--output", folder, "folder for the results");
  try {
    app.parse(argc, argv);
    if (folder.empty() && (collectives || !recipes.empty())) throw CLI::RequiredError("--output");
    if (errors) fmt::print("{}", rehearse::nccl::import_errors(data));
    if (collectives) write(rehearse::nccl::import_model(data), folder);
    for (const std::string& recipe : recipes)
      write(rehearse::import_profile(rehearse::JsonReader::open(recipe), data), folder);
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
