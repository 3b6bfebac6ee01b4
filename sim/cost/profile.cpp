#include "cost/profile.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/data_path.h"
#include "base/error.h"
#include "base/json_kind.h"
#include "cost/read_profile.h"

namespace rehearse {

namespace {

constexpr const char* kFolder = "calibrate/profiles";

// Samples of the kernel named `kernel`. `what` names the operation in errors; `known`: kernels other than the
// default.
template <typename Samples>
const Samples& find_kernel(const Profile& profile, const std::string& what,
                           const std::map<std::string, Samples>& known, const std::string& kernel) {
  const auto found = known.find(kernel);
  if (found != known.end()) return found->second;
  std::string names;
  for (const auto& [name, samples] : known) names += ", " + name;
  throw MissingCalibration(
      fmt::format("profile {} has no {} of \"{}\"; available: default{}", profile.name, what, kernel, names));
}

}  // namespace

double median_spread(const Profile& profile) {
  if (!profile.measurement) return 0;
  std::vector<double> spreads;
  const auto take = [&](const auto& samples) {
    for (const auto& sample : samples) spreads.push_back(sample.spread);
  };
  for (const auto& [precision, samples] : profile.gemm) take(samples);
  take(profile.attention);
  for (const auto& [curve, samples] : profile.stream) take(samples);
  if (spreads.empty()) return 0;
  const auto middle = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
  std::ranges::nth_element(spreads, middle);
  return *middle;
}

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
  const JsonReader reader = JsonReader::open(find_data_file("profile", kFolder, name_or_path));
  require_kind(reader.json(), reader.file(), JsonKind::profile);
  return parse_profile(reader);
}

std::vector<std::string> profile_names() {
  return data_names(kFolder);
}

void use_attention(Profile& profile, const std::string& kernel) {
  profile.attention = find_kernel(profile, "attention", profile.attention_of, kernel);
  profile.name += ", attention by " + kernel;
}

void use_norm(Profile& profile, const std::string& kernel) {
  const auto curves = find_kernel(profile, "norm", profile.stream_of, kernel);
  for (const auto& [curve, own] : curves) {
    std::vector<StreamSample>& samples = profile.stream[curve];
    const double smallest = own.front().bytes;
    std::erase_if(samples, [smallest](const StreamSample& sample) { return sample.bytes >= smallest; });
    samples.insert(samples.end(), own.begin(), own.end());
  }
  profile.name += ", norms by " + kernel;
}

}  // namespace rehearse
