#include "model/repository.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/names.h"
#include "model/read.h"

namespace rehearse {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHost = "huggingface.co/";

struct Repository {
  std::string owner, name;
  std::string id() const { return owner + "/" + name; }
};

// Characters that Hugging Face allows (huggingface_hub, utils/_validators.py, validate_repo_id).
bool is_word_of_id(const std::string& word) {
  constexpr std::size_t kLongest = 96;
  const auto fits = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
  };
  return !word.empty() && word.size() <= kLongest && !word.starts_with('.') && !word.starts_with('-') &&
         std::ranges::all_of(word, fits);
}

// The last two words of `text`. A scenario puts its own folder in front of a path, and that folder exists. A
// folder with the owner's name does not exist.
std::optional<Repository> repository_of(std::string text) {
  const std::size_t host = text.find(kHost);
  const bool is_address = host != std::string::npos;
  if (is_address) text.erase(0, host + kHost.size());
  const fs::path path(text);
  Repository found{path.parent_path().filename().string(), path.filename().string()};
  if (!is_word_of_id(found.owner) || !is_word_of_id(found.name) || text.ends_with(".json")) return {};
  std::error_code error;
  const fs::path before = path.parent_path().parent_path();
  if (is_address ? !before.empty() : fs::exists(path.parent_path(), error)) return {};
  return before.empty() || fs::is_directory(before, error) ? std::optional(found) : std::nullopt;
}

// The name in lower case, without the endings of variants of the same shape and without "meta-" after the
// owner.
std::string shape_of(const std::string& id) {
  std::string name = in_lower_case(id);
  for (const char* ending : {"-instruct", "-chat", "-base", "-hf"})
    if (name.ends_with(ending)) name.erase(name.size() - std::string_view(ending).size());
  if (const std::size_t meta = name.find("/meta-"); meta != std::string::npos) name.erase(meta + 1, 5);
  return name;
}

// The repository that a shipped model was taken from; "": another source.
std::string source_of(const std::string& model) {
  const Json json = read_json_file(model_file(model));
  const std::string source = json.value("_source", "");
  if (!source.starts_with(kHost)) return "";
  return source.substr(kHost.size(), source.find_first_of(" ,;", kHost.size()) - kHost.size());
}

std::string shipped_as(const Repository& repository) {
  for (const std::string& model : model_names()) {
    const std::string source = source_of(model);
    if (!source.empty() && shape_of(source) == shape_of(repository.id()))
      return fmt::format("--model {}, which ships with the program (from {})", model, source);
  }
  return "";
}

}  // namespace

void refuse_repository(const std::string& name_or_path) {
  const std::optional<Repository> repository = repository_of(name_or_path);
  if (!repository) return;
  const std::string id = repository->id(), &name = repository->name;
  throw InputError(
      {"", "model",
       fmt::format("no such file or folder. To get the configuration of the Hugging Face repository {0}: `hf "
                   "download {0} config.json --local-dir {1}`, or `curl -fL --create-dirs -o {1}/config.json "
                   "https://huggingface.co/{0}/resolve/main/config.json` (with -H \"Authorization: Bearer "
                   "$HF_TOKEN\" where access is granted on request). Then --model ./{1}",
                   id, name),
       fmt::format("asked for \"{}\"", name_or_path), shipped_as(*repository)});
}

}  // namespace rehearse
