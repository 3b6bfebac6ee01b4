#include "cost/profile.h"

#include "base/data_path.h"
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

}  // namespace rehearse
