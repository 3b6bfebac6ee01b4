#include "cost/profile.h"

#include <fmt/format.h>

#include "base/data_path.h"
#include "base/error.h"
#include "cost/read_profile.h"

namespace rehearse {

namespace {

constexpr const char* kFolder = "calibrate/profiles";

}  // namespace

std::string to_string(How how) {
  switch (how) {
    case How::measured:
      return "measured";
    case How::published:
      return "published";
    case How::modelled:
      return "modelled";
  }
  return "";
}

Profile read_profile(const std::string& name_or_path) {
  return parse_profile(JsonReader::open(find_data_file("profile", kFolder, name_or_path)));
}

std::vector<std::string> profile_names() {
  return data_names(kFolder);
}

void use_attention(Profile& profile, const std::string& kernel) {
  const auto found = profile.attention_of.find(kernel);
  if (found == profile.attention_of.end()) {
    std::string known;
    for (const auto& [name, samples] : profile.attention_of) known += (known.empty() ? "" : ", ") + name;
    throw MissingCalibration(fmt::format("profile {} has no attention by \"{}\"; it has its default{}{}",
                                         profile.name, kernel, known.empty() ? "" : ", ", known));
  }
  profile.attention = found->second;
  profile.name += ", attention by " + kernel;
}

}  // namespace rehearse
