#include "cluster/nic_limits.h"

#include <algorithm>
#include <cmath>

#include "base/data_path.h"
#include "base/json_reader.h"

namespace rehearse {

// A NIC with an unlisted rate gets at most the throughput of the next faster listed one of its kind.
NicLimits read_nic_limits(const std::string& kind, double bandwidth) {
  constexpr double kSame = 1e-6;
  const std::string file = (data_directory() / "calibrate/data/nics.json").string();
  const Json list = read_json_file(file).value("nics", Json::array());
  NicLimits next;  // of the next faster one
  double next_rate = INFINITY;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonReader nic(list[i], file, "/nics/" + std::to_string(i));
    const std::string of_kind = nic.text("kind");
    const double rate = nic.quantity("bandwidth", physical::kBandwidth);
    const NicLimits limits{nic.number("efficiency", kSame, 1),
                           nic.number_or("messages_per_s", 0, physical::kMessageRate), nic.text("source")};
    nic.reject_unknown();
    if (of_kind != kind) continue;
    if (std::abs(rate / bandwidth - 1) < kSame) return limits;
    if (rate < bandwidth || rate > next_rate) continue;
    next = limits;
    next_rate = rate;
  }
  if (next_rate < INFINITY) next.efficiency = std::min(1.0, next.efficiency * next_rate / bandwidth);
  return next;
}

}  // namespace rehearse
