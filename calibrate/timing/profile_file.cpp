#include "calibrate/timing/profile_file.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "calibrate/timing/measured_collectives.h"
#include "cost/measurement_json.h"
#include "cost/read_profile.h"

namespace rehearse {

namespace {

// Seven significant digits: more than the precision of any measurement.
double rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, 6 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

double short_spread(double spread) {
  return std::round(spread * 1e4) / 1e4;
}

Json table(std::vector<std::string> columns, Json rows) {
  return {{"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

Json gemm_rows(std::vector<GemmSample> samples) {
  std::sort(samples.begin(), samples.end(), [](const GemmSample& a, const GemmSample& b) {
    return std::tie(a.n, a.k, a.m, a.batch) < std::tie(b.n, b.k, b.m, b.batch);
  });
  Json rows = Json::array();
  for (const GemmSample& s : samples)
    rows.push_back({s.m, s.n, s.k, rounded(s.seconds), s.batch, short_spread(s.spread)});
  return rows;
}

// Without heads where some samples are older than that field.
Json attention_table(std::vector<AttentionSample> samples) {
  std::sort(samples.begin(), samples.end(), [](const AttentionSample& a, const AttentionSample& b) {
    return std::tie(a.head_dim, a.seq, a.causal, a.backward) <
           std::tie(b.head_dim, b.seq, b.causal, b.backward);
  });
  const bool with_heads =
      std::all_of(samples.begin(), samples.end(), [](const AttentionSample& s) { return s.heads > 0; });
  Json rows = Json::array();
  for (const AttentionSample& s : samples) {
    Json row = {s.head_dim, s.seq, s.causal ? 1 : 0, s.backward ? 1 : 0, rounded(s.flops_per_s)};
    if (with_heads) row.push_back(s.heads);
    row.push_back(short_spread(s.spread));
    rows.push_back(std::move(row));
  }
  std::vector<std::string> columns = {"head_dim", "seq", "causal", "backward", "flops_per_s"};
  if (with_heads) columns.emplace_back("heads");
  columns.emplace_back("spread");
  return table(std::move(columns), std::move(rows));
}

Json stream_rows(std::vector<StreamSample> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const StreamSample& a, const StreamSample& b) { return a.bytes < b.bytes; });
  Json rows = Json::array();
  for (const StreamSample& s : samples)
    rows.push_back({s.bytes, rounded(s.bytes_per_s), short_spread(s.spread)});
  return rows;
}

Json links_json(const std::vector<LinkCost>& links) {
  Json json = Json::array();
  for (const LinkCost& link : links) {
    json.push_back({{"kind", link.kind},
                    {"op", link.op},
                    {"latency_s", rounded(link.latency_s)},
                    {"step_latency_s", rounded(link.step_latency_s)},
                    {"efficiency", rounded(link.efficiency)},
                    {"how", to_string(link.how)},
                    {"source", "fitted to the messages of this profile's measurement"}});
  }
  return json;
}

}  // namespace

Json profile_json(const Profile& profile, const Gpu& gpu) {
  Json sources = Json::array();
  for (const Source& source : profile.sources)
    sources.push_back({{"title", source.title}, {"license", source.license}, {"note", source.note}});
  Json json = {
      {"schema", kProfileSchema},
      {"name", profile.name},
      {"gpu", profile_gpu_json(gpu)},
      {"how", to_string(profile.how)},
      {"sources", sources}};
  if (profile.measurement) json["measurement"] = to_json(*profile.measurement);
  json["launch"] = {{"seconds", rounded(profile.launch_s)},
                    {"source", "measured: calls that do next to nothing"}};
  if (profile.host_launch_s > 0) {
    json["launch"]["host_seconds"] = rounded(profile.host_launch_s);
    json["launch"]["source"] = "measured: calls that do next to nothing; the host launching what was timed";
  }
  if (profile.gpu_spread > 0)
    json["gpu_spread"] = {{"deviation", rounded(profile.gpu_spread)},
                          {"source", "measured: a product on all GPUs at once"}};
  json["links"] = links_json(profile.links);
  if (profile.collectives) json["collectives"] = collectives_json(*profile.collectives);
  if (!profile.attention.empty()) json["attention"] = attention_table(profile.attention);
  json["stream"] = Json::object();
  for (const auto& [kind, samples] : profile.stream)
    json["stream"][kind] = table({"bytes", "bytes_per_s", "spread"}, stream_rows(samples));
  json["gemm"] = Json::object();
  for (const auto& [precision, samples] : profile.gemm)
    json["gemm"][precision] = table({"m", "n", "k", "seconds", "batch", "spread"}, gemm_rows(samples));
  return json;
}

}  // namespace rehearse
