#include "cost/read_profile.h"
#include "cost/gemm_curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cost/measurement_json.h"
#include "cost/nccl/read_model.h"
#include "cost/slowest_gpu.h"

namespace rehearse {

namespace {

constexpr Bounds kWhole{Dimension::one, 1, 1LL << 40};  // sizes and counts
constexpr Bounds kFlag{Dimension::one, 0, 1};
constexpr int kMaxMultiprocessors = 1 << 14;

struct Column {
  const char* name;
  Bounds bounds;
};

// The GPU that the samples were taken on, and are checked against.
Gpu read_gpu(const JsonReader& reader) {
  const JsonReader own = reader.object("gpu");
  Gpu gpu;
  gpu.name = own.text("name");
  gpu.multiprocessors = static_cast<int>(own.integer_or("multiprocessors", 0, 1, kMaxMultiprocessors));
  gpu.memory_bandwidth = own.number("memory_bandwidth", physical::kBandwidth);
  const JsonReader peaks = own.object("peak_flops");
  for (const auto& item : peaks.json().items()) {
    gpu.peak_flops[item.key()] = peaks.number(item.key(), physical::kFlops);
  }
  own.reject_unknown();
  return gpu;
}

// The columns that the table names: `columns`, and "spread" where it was measured.
std::vector<Column> columns_of(const JsonReader& table, std::vector<Column> columns) {
  if (!table.has("columns")) table.fail("columns", "is required");
  const Json& names = table.value("columns");
  std::vector<std::string> expected;
  for (const Column& column : columns) expected.emplace_back(column.name);
  const std::string rule = "must name the columns " + join(expected) + ", and spread where it was measured";
  if (names.is_array() && names.size() > columns.size()) {
    columns.push_back({"spread", physical::kSpread});
    expected.emplace_back("spread");
  }
  if (names != Json(expected)) table.fail("columns", rule, "found " + names.dump());
  return columns;
}

// Rows of numbers below "rows". The last number of each is the spread, 0 where the table has none.
std::vector<std::vector<double>> read_table(const JsonReader& table, const std::vector<Column>& asked) {
  const std::vector<Column> columns = columns_of(table, asked);
  if (!table.has("rows")) table.fail("rows", "is required");
  const Json& rows = table.value("rows");
  if (!rows.is_array() || rows.empty()) table.fail("rows", "must be an array of at least one row");
  std::vector<std::vector<double>> numbers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    const std::string place = fmt::format("rows/{}", i);
    if (!row.is_array() || row.size() != columns.size())
      table.fail(place, fmt::format("must hold {} numbers", columns.size()), "found " + row.dump());
    std::vector<double>& read = numbers.emplace_back();
    for (std::size_t c = 0; c < columns.size(); ++c)
      read.push_back(
          table.within(fmt::format("{}/{} ({})", place, c, columns[c].name), row[c], columns[c].bounds));
    read.resize(asked.size() + 1, 0);
  }
  table.reject_unknown();
  return numbers;
}

[[noreturn]] void fail_row(const JsonReader& table, std::size_t row, const std::string& rule,
                           const std::string& values) {
  table.fail(fmt::format("rows/{}", row), rule, values);
}

std::int64_t whole(const JsonReader& table, std::size_t row, double number) {
  if (number != std::floor(number))
    fail_row(table, row, "sizes must be whole numbers from 1", fmt::format("found {:g}", number));
  return static_cast<std::int64_t>(number);
}

std::vector<GemmSample> read_gemms(const JsonReader& table, double peak) {
  std::vector<GemmSample> samples;
  const bool batched = table.has("columns") && table.value("columns").size() == 6;
  std::vector<Column> columns = {
      {"m", kWhole}, {"n", kWhole}, {"k", kWhole}, {"seconds", physical::kDuration}};
  if (batched) columns.push_back({"batch", kWhole});
  for (const auto& row : read_table(table, columns)) {
    const std::size_t i = samples.size();
    const GemmSample sample{whole(table, i, row[0]),
                            whole(table, i, row[1]),
                            whole(table, i, row[2]),
                            row[3],
                            batched ? whole(table, i, row[4]) : 1,
                            row.back()};
    const double rate = 2.0 * row[0] * row[1] * row[2] * static_cast<double>(sample.batch) / sample.seconds;
    if (rate > peak) {
      fail_row(table, i, "a GEMM above peak: no rate may exceed /gpu/peak_flops of its precision",
               fmt::format("{:.4g} TFLOPS against {:.4g}", rate * 1e-12, peak * 1e-12));
    }
    samples.push_back(sample);
  }
  return samples;
}

std::vector<AttentionSample> read_attention(const JsonReader& table, double peak) {
  std::vector<AttentionSample> samples;
  std::vector<Column> columns = {{"head_dim", kWhole},
                                 {"seq", kWhole},
                                 {"causal", kFlag},
                                 {"backward", kFlag},
                                 {"flops_per_s", physical::kFlops}};
  const bool tells_heads = table.has("columns") && table.value("columns").size() == 7;
  if (tells_heads) columns.push_back({"heads", kWhole});
  for (const auto& row : read_table(table, columns)) {
    const std::size_t i = samples.size();
    if (row[2] != std::floor(row[2]) || row[3] != std::floor(row[3])) {
      fail_row(table, i, "causal and backward are 0 or 1", fmt::format("found {:g}, {:g}", row[2], row[3]));
    }
    if (row[4] > peak) {
      fail_row(table, i, "flops_per_s must be at most the GPU's peak",
               fmt::format("{:.4g} TFLOPS against {:.4g}", row[4] * 1e-12, peak * 1e-12));
    }
    samples.push_back({whole(table, i, row[0]), whole(table, i, row[1]), row[2] == 1, row[3] == 1, row[4],
                       row.back(), tells_heads ? whole(table, i, row[5]) : 0});
  }
  return samples;
}

template <typename Tables>
std::vector<std::string> names_of(const Tables& tables) {
  std::vector<std::string> names;
  for (const auto& table : tables) names.push_back(table.first);
  return names;
}

// Each kernel with a concurrent slowdown must have a table in the profile.
void require_tables(const Profile& profile, const JsonReader& with_concurrent_ranks) {
  const auto require = [&](const std::string& key, const std::vector<std::string>& known) {
    if (!with_concurrent_ranks.has(key)) return;
    const JsonReader table = with_concurrent_ranks.object(key);
    for (const auto& item : table.json().items()) {
      if (std::find(known.begin(), known.end(), item.key()) == known.end())
        table.fail(item.key(), "must be a table of this profile", "found " + item.key(), join(known));
    }
  };
  require("gemm", names_of(profile.gemm));
  require("attention", {"forward", "backward"});
  require("stream", names_of(profile.stream));
  require("step", names_of(profile.stream));
}

std::vector<StreamSample> read_stream(const JsonReader& table, double memory_bandwidth) {
  std::vector<StreamSample> samples;
  for (const auto& row :
       read_table(table, {{"bytes", physical::kBytes}, {"bytes_per_s", physical::kBandwidth}})) {
    const std::size_t i = samples.size();
    if (row[1] > memory_bandwidth) {
      fail_row(table, i, "bytes_per_s must be at most /gpu/memory_bandwidth",
               fmt::format("bytes = {:g}, bytes_per_s = {:g}", row[0], row[1]));
    }
    if (!samples.empty() && row[0] <= samples.back().bytes) {
      fail_row(table, i, "bytes must grow from row to row", fmt::format("bytes = {:g}", row[0]));
    }
    samples.push_back({row[0], row[1], row[2]});
  }
  return samples;
}

How read_how(const JsonReader& reader) {
  return reader.choice<How>(
      "how", {{"measured", How::measured}, {"published", How::published}, {"modelled", How::modelled}});
}

LinkCost read_link(const JsonReader& reader) {
  LinkCost link;
  link.kind = reader.text("kind");
  link.op = reader.text("op");
  if (link.op != "ring" && link.op != "send") {
    reader.fail("op", "must be one of ring, send", "found \"" + link.op + "\"",
                nearest_name(link.op, {"ring", "send"}));
  }
  link.latency_s = reader.number("latency_s", physical::kLatency);
  link.step_latency_s = reader.number("step_latency_s", physical::kLatency);
  link.efficiency = reader.number("efficiency", 1e-6, 1);
  link.how = read_how(reader);
  reader.text("source");
  reader.reject_unknown();
  return link;
}

Source read_source(const JsonReader& reader) {
  const Source source{reader.text("title"), reader.text("license"), reader.text("note")};
  reader.reject_unknown();
  return source;
}

std::map<std::string, std::vector<StreamSample>> read_streams(const JsonReader& reader, const Gpu& gpu) {
  std::map<std::string, std::vector<StreamSample>> streams;
  for (const auto& item : reader.json().items())
    streams[item.key()] = read_stream(reader.object(item.key()), gpu.memory_bandwidth);
  return streams;
}

void read_samples(const JsonReader& reader, const Gpu& gpu, Profile& profile) {
  const JsonReader gemm = reader.object("gemm");
  for (const auto& item : gemm.json().items()) {
    const std::string precision = item.key().substr(0, item.key().find('/'));
    const auto peak = gpu.peak_flops.find(precision);
    if (peak == gpu.peak_flops.end()) {
      gemm.fail(item.key(), "needs a peak of this precision in /gpu/peak_flops");
    }
    const std::vector<std::string> keys = gemm_keys(precision);
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      gemm.fail(item.key(), "is not a kind of GEMM", "known are " + join(keys));
    profile.gemm[item.key()] = read_gemms(gemm.object(item.key()), peak->second);
  }
  double fastest = 0;
  for (const auto& [precision, peak] : gpu.peak_flops) fastest = std::max(fastest, peak);
  if (reader.has("attention")) profile.attention = read_attention(reader.object("attention"), fastest);
  if (reader.has("attention_of")) {
    const JsonReader kernels = reader.object("attention_of");
    for (const auto& item : kernels.json().items())
      profile.attention_of[item.key()] = read_attention(kernels.object(item.key()), fastest);
  }
  profile.stream = read_streams(reader.object("stream"), gpu);
  if (reader.has("stream_of")) {
    const JsonReader kernels = reader.object("stream_of");
    for (const auto& item : kernels.json().items())
      profile.stream_of[item.key()] = read_streams(kernels.object(item.key()), gpu);
  }
}

// The model that the profile names, with the profile's own measurements.
std::shared_ptr<const nccl::Model> read_collectives(const JsonReader& reader) {
  if (!reader.has("collectives")) return nullptr;
  const JsonReader own = reader.object("collectives");
  nccl::Model model = nccl::read_model(own.text("model"));
  std::vector<nccl::KnownSystem> systems;
  if (own.has("systems")) systems = nccl::read_systems(own);
  for (const JsonReader& each : own.objects("measured")) {
    nccl::Measured table = nccl::read_measured(each, systems);
    const nccl::KnownSystem& system = systems[table.system];
    table.system = nccl::add_system(model.systems, system.name, system.cluster);
    model.measured.push_back(std::move(table));
  }
  own.reject_unknown();
  return std::make_shared<const nccl::Model>(std::move(model));
}

// How many times as long some GEMMs take; 1 where the profile does not distinguish them.
double read_times(const JsonReader& reader, const char* key) {
  if (!reader.has(key)) return 1;
  const JsonReader of = reader.object(key);
  const double times = of.number("times", 1, 10);
  of.text("source");
  of.reject_unknown();
  return times;
}

}  // namespace

Json profile_gpu_json(const Gpu& gpu) {
  Json json = {{"name", gpu.name}};
  if (gpu.multiprocessors > 0) json["multiprocessors"] = gpu.multiprocessors;
  json["memory_bandwidth"] = gpu.memory_bandwidth;
  json["peak_flops"] = gpu.peak_flops;
  return json;
}

Profile parse_profile(const JsonReader& reader) {
  if (const std::string schema = reader.text("schema"); schema != kProfileSchema) {
    reader.fail("schema", fmt::format("must be \"{}\"", kProfileSchema), "found \"" + schema + "\"",
                kProfileSchema);
  }
  Profile profile;
  profile.name = reader.text("name");
  profile.gpu = read_gpu(reader);
  profile.how = read_how(reader);
  for (const JsonReader& source : reader.objects("sources")) profile.sources.push_back(read_source(source));
  if (profile.sources.empty()) reader.fail("sources", "must name at least one source");
  read_samples(reader, profile.gpu, profile);
  for (const JsonReader& link : reader.objects("links")) profile.links.push_back(read_link(link));
  profile.collectives = read_collectives(reader);
  const JsonReader launch = reader.object("launch");
  profile.launch_s = launch.number("seconds", physical::kLatency);
  profile.host_launch_s = launch.number_or("host_seconds", 0, physical::kLatency);
  profile.host_collective_s =
      launch.number_or("host_collective_seconds", profile.host_launch_s, physical::kLatency);
  launch.text("source");
  launch.reject_unknown();
  profile.fp8_split_sums = read_times(reader, "fp8_split_sums");
  profile.fp8_blocks = read_times(reader, "fp8_blocks");
  if (reader.has("hidden_sums")) {
    const JsonReader hidden = reader.object("hidden_sums");
    profile.hidden_sums = hidden.number("share", 0, 1);
    hidden.text("source");
    hidden.reject_unknown();
  }
  if (reader.has("gpu_spread")) {
    const JsonReader spread = reader.object("gpu_spread");
    profile.gpu_spread = spread.number("deviation", 0, kMaxGpuSpread);
    spread.text("source");
    spread.reject_unknown();
  }
  if (reader.has("measurement")) {
    const JsonReader measurement = reader.object("measurement");
    profile.measurement = read_measurement(measurement);
    if (measurement.has("in_company")) require_tables(profile, measurement.object("in_company"));
  }
  reader.reject_unknown();
  return profile;
}

}  // namespace rehearse
