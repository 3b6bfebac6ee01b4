#include "calibrate/import/collectives.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/percentile.h"
#include "calibrate/import/nccl_errors.h"
#include "calibrate/import/nccl_fit.h"
#include "calibrate/import/tables.h"
#include "cost/nccl/read_model.h"

namespace rehearse::nccl {

namespace {

constexpr const char* kMethod =
    "log(measured / believed) of out-of-place times, the median of the rows about each size 4^i; corrected "
    "by GPU generation and link, by operation, by hardware, by hardware and operation, each time by the "
    "median of what was left, over n systems shrunk by n / (n + 4) for the first two, over n tables by "
    "n / (n + 0.5) for the others; then each system as measured, the median of its tables. Irregular tables "
    "are left out";

// The constants that the model reads, word for word.
Json kept_constants(const Json& file) {
  Json kept = Json::object();
  for (const char* key : {"base_latency_us", "hw_latency_us", "ll_max_bw_GBps", "per_channel_max_GBps",
                          "nvls_efficiency", "tree_correction_factor", "link_bw_GBps", "graph_search"}) {
    kept[key] = file.at(key);
  }
  return kept;
}

Json sources_of(const Json& constants, const std::vector<Sample>& samples) {
  const Json& source = constants.at("source");
  Json sources = Json::array();
  sources.push_back(fmt::format("constants: {} {} ({})", source.at("repo").get<std::string>(),
                                source.at("version").get<std::string>(),
                                source.at("license").get<std::string>()));
  std::set<std::string> seen;
  for (const Sample& sample : samples) {
    if (seen.insert(sample.table.source).second) sources.push_back(sample.table.source);
  }
  return sources;
}

Json constants_file(const std::filesystem::path& data) {
  return read_json_file((data / "nccl_model.json").string());
}

Constants constants_of(const Json& file) {
  return read_constants(JsonReader(file, "nccl_model.json"));
}

}  // namespace

namespace {

double percentile_90(std::vector<double> errors) {
  std::ranges::sort(errors);
  return errors.empty() ? 0 : rounded(percentile(errors, 0.9));
}

// Errors by size, of tables that were left out of the fit.
Json p90_of(const Constants& constants, const std::vector<Sample>& samples, LeftOut left_out) {
  std::array<std::vector<double>, 3> of_size;
  for (const RowError& row : errors(constants, samples, left_out))
    of_size[size_class(row.bytes)].push_back(std::abs(row.error));
  return {{"to_32_kib", percentile_90(std::move(of_size[0]))},
          {"to_64_mib", percentile_90(std::move(of_size[1]))},
          {"above", percentile_90(std::move(of_size[2]))}};
}

}  // namespace

Json import_model(const std::filesystem::path& data) {
  const Json file = constants_file(data);
  const Constants constants = constants_of(file);
  const std::vector<Sample> samples = read_samples(data / "nccl", constants);
  std::vector<const Sample*> all;
  std::size_t rows = 0;
  for (const Sample& sample : samples) {
    all.push_back(&sample);
    rows += sample.table.rows.size();
  }
  const Model model = fit(constants, all);
  Json json = {{"schema", kModelSchema},
               {"name", kDefaultModel},
               {"sources", sources_of(file, samples)},
               {"fit",
                {{"method", kMethod},
                 {"tables", samples.size()},
                 {"rows", rows},
                 {"left_out_p90", p90_of(constants, samples, LeftOut::table)},
                 {"system_left_out_p90", p90_of(constants, samples, LeftOut::hardware)}}},
               {"constants", kept_constants(file)},
               {"systems", Json::array()},
               {"corrections", Json::array()},
               {"measured", Json::array()}};
  for (const KnownSystem& each : model.systems) json["systems"].push_back(to_json(each));
  for (const Correction& each : model.corrections)
    json["corrections"].push_back(to_json(each, model.systems));
  for (const Measured& each : model.measured) json["measured"].push_back(to_json(each, model.systems));
  return json;
}

std::string import_errors(const std::filesystem::path& data) {
  const Constants constants = constants_of(constants_file(data));
  return error_table(constants, read_samples(data / "nccl", constants));
}

}  // namespace rehearse::nccl
