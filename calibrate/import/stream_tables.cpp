#include <algorithm>
#include <cmath>

#include "calibrate/import/tables.h"

namespace rehearse {

namespace {

struct Kind {
  std::string curve;
  double passes = 1;  // bytes that the kernel moves over those that the table counts
};

// Table's name of an operation -> curve. An unfused gated activation (SiLU, then multiply) moves five times
// the tensor, which the table counts as three.
std::map<std::string, Kind> kinds_of(const JsonReader& recipe) {
  std::map<std::string, Kind> kinds;
  for (const JsonReader& kind : recipe.objects("kinds")) {
    kinds[kind.text("operation")] = {kind.text("curve"), kind.number_or("moved_passes", 1, 1, 16) /
                                                             kind.number_or("counted_passes", 1, 1, 16)};
    kind.reject_unknown();
  }
  return kinds;
}

constexpr double kMaxBytes = 1e18;

// Rates by half octaves of bytes: {half octave -> rates}.
using Bins = std::map<int, std::vector<double>>;

std::vector<StreamSample> medians(const Bins& bins) {
  std::vector<StreamSample> samples;
  for (const auto& [half_octave, rates] : bins) {
    samples.push_back({rounded(std::exp2(half_octave / 2.0)), rounded(median(rates))});
  }
  return samples;
}

Streams from_vidur(const Json& table, const std::string& file, const JsonReader& recipe, const Gpu& gpu) {
  const std::size_t op = column(table, "op", file), time = column(table, "time_us", file),
                    rate = column(table, "effective_GBps", file);
  const std::map<std::string, Kind> kinds = kinds_of(recipe);
  std::map<std::string, Bins> bins;
  for (const Json& row : table.at("rows")) {
    const auto kind = kinds.find(row.at(op).get<std::string>());
    if (kind == kinds.end()) continue;
    const double bytes_per_s = row.at(rate).get<double>() * 1e9 * kind->second.passes;
    if (bytes_per_s > gpu.memory_bandwidth) continue;  // served by the cache, not by the memory
    const double bytes = bytes_per_s * row.at(time).get<double>() * 1e-6;
    if (!(bytes >= 1 && bytes < kMaxBytes))
      throw InputError({file, "/rows", "a row must have moved from 1 to 10^18 bytes", row.dump(), ""});
    const int half_octave = static_cast<int>(std::lround(2 * std::log2(bytes)));
    bins[kind->second.curve][half_octave].push_back(bytes_per_s);
  }
  Streams streams;
  for (const auto& [curve, rates] : bins) streams[curve] = medians(rates);
  return streams;
}

// Rates as printed; for a table of another GPU, scaled by memory bandwidth.
Streams from_rates(const Json& table, const std::string& file, const JsonReader& recipe, const Gpu& gpu) {
  const std::size_t of_gpu = column(table, "gpu", file), curve = column(table, "curve", file),
                    bytes = column(table, "bytes", file), rate = column(table, "GBps", file);
  const std::string wanted = recipe.text("curve"), from = recipe.text("gpu");
  const double share =
      recipe.has("bandwidth") ? gpu.memory_bandwidth / recipe.number("bandwidth", physical::kBandwidth) : 1;
  Streams streams;
  for (const Json& row : table.at("rows")) {
    if (row.at(of_gpu) != from || row.at(curve) != wanted) continue;
    streams[wanted].push_back({row.at(bytes), rounded(row.at(rate).get<double>() * 1e9 * share)});
  }
  if (streams.empty()) recipe.fail("curve", "no row of the table has this curve on this GPU", wanted);
  return streams;
}

// BabelStream's default arrays have 2^25 doubles; triad moves three of them.
Streams from_babelstream(const Json& table, const std::string& file, const std::string& gpu) {
  const std::size_t triad = column(table, "triad", file);
  for (const Json& row : table.at("rows")) {
    if (row.at("gpu") != gpu) continue;
    return {{"copy", {{3 * std::exp2(25) * 8, rounded(row.at("TBps").at(triad).get<double>() * 1e12)}}}};
  }
  throw InputError({file, "/rows", "needs a row of this GPU", gpu, ""});
}

}  // namespace

Streams import_streams(const Entry& entry, const Gpu& gpu, std::vector<Source>& sources) {
  const JsonReader& recipe = entry.recipe;
  const std::string format = recipe.text("format");
  if (format == "roofline") {
    sources.push_back({"stated memory bandwidth", "", recipe.text("note")});
    return {{"copy", {{1, gpu.memory_bandwidth}}}};
  }
  const Json table = read_table(entry);
  sources.push_back(source_of(table, recipe.text("note")));
  if (format == "rates") return from_rates(table, recipe.text("file"), recipe, gpu);
  if (format == "babelstream") return from_babelstream(table, recipe.text("file"), recipe.text("gpu"));
  return from_vidur(table, recipe.text("file"), recipe, gpu);
}

}  // namespace rehearse
