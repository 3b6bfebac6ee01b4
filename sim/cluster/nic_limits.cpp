#include "cluster/nic_limits.h"

#include <cmath>

#include "base/data_path.h"
#include "base/json_reader.h"

namespace rehearse {

NicLimits read_nic_limits(const std::string& kind, double bandwidth) {
  constexpr double kSame = 1e-6;
  const std::string file = (data_directory() / "calibrate/data/nics.json").string();
  const Json list = read_json_file(file).value("nics", Json::array());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonReader nic(list[i], file, "/nics/" + std::to_string(i));
    const std::string of_kind = nic.text("kind");
    const double rate = nic.quantity("bandwidth", physical::kBandwidth);
    const NicLimits limits{nic.number("efficiency", kSame, 1),
                           nic.number_or("messages_per_s", 0, physical::kMessageRate), nic.text("source")};
    nic.reject_unknown();
    if (of_kind == kind && std::abs(rate / bandwidth - 1) < kSame) return limits;
  }
  return {};
}

}  // namespace rehearse
