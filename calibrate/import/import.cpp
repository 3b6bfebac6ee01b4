#include "calibrate/import/import.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "calibrate/import/carry_over.h"
#include "calibrate/import/tables.h"
#include "cost/read_profile.h"
#include "cost/slowest_gpu.h"

namespace rehearse {

namespace {

Gpu read_gpu(const JsonReader& reader) {
  Gpu gpu;
  gpu.name = reader.text("name");
  gpu.multiprocessors = static_cast<int>(reader.integer_or("multiprocessors", 0, 1, 1 << 14));
  gpu.memory_bandwidth = reader.number("memory_bandwidth", physical::kBandwidth);
  const JsonReader peaks = reader.object("peak_flops");
  for (const auto& item : peaks.json().items()) {
    gpu.peak_flops[item.key()] = peaks.number(item.key(), physical::kFlops);
  }
  reader.reject_unknown();
  return gpu;
}

Json gemm_table(std::vector<GemmSample>& samples) {
  std::sort(samples.begin(), samples.end(), [](const GemmSample& a, const GemmSample& b) {
    return std::tie(a.n, a.k, a.m, a.batch) < std::tie(b.n, b.k, b.m, b.batch);
  });
  const bool batched =
      std::any_of(samples.begin(), samples.end(), [](const GemmSample& s) { return s.batch > 1; });
  Json columns = {"m", "n", "k", "seconds"}, rows = Json::array();
  if (batched) columns.insert(columns.end(), {"batch", "spread"});
  for (const GemmSample& s : samples) {
    Json row = {s.m, s.n, s.k, s.seconds};
    if (batched) row.insert(row.end(), {s.batch, 0});
    rows.push_back(row);
  }
  return {{"columns", columns}, {"rows", rows}};
}

Json gemm_json(const JsonReader& recipe, const std::filesystem::path& data, const Gpu& gpu,
               std::vector<Source>& sources) {
  std::map<std::string, std::vector<GemmSample>> by_kind;
  std::map<std::string, std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>>> shapes;
  for (const JsonReader& entry : recipe.objects("gemm")) {
    const std::string precision = entry.text("precision"), kind = entry.text_or("kind", "forward");
    const std::string name = kind == "forward" ? precision : precision + "/" + kind;
    std::vector<GemmSample>& all = by_kind[name];
    const std::vector<GemmSample> samples =
        entry.text("format") == "quotient" ? import_quotients({entry, data}, gpu, by_kind[precision], sources)
                                           : import_gemms({entry, data}, gpu, sources);
    for (const GemmSample& sample : samples)
      if (shapes[name].emplace(sample.m, sample.n, sample.k, sample.batch).second) all.push_back(sample);
    entry.reject_unknown();
  }
  Json json = Json::object();
  for (auto& [kind, samples] : by_kind) json[kind] = gemm_table(samples);
  return json;
}

// Reads the entry, or the several entries, at `key`. The first entry with a shape wins.
Json attention_json(const JsonReader& of, const std::string& key, const std::filesystem::path& data,
                    const Gpu& gpu, std::vector<Source>& sources) {
  Json rows = Json::array();
  std::set<std::array<std::int64_t, 4>> seen;
  const std::vector<JsonReader> entries =
      of.value(key).is_array() ? of.objects(key) : std::vector{of.object(key)};
  for (const JsonReader& entry : entries) {
    for (const AttentionSample& s : import_attention({entry, data}, gpu, sources)) {
      const std::int64_t causal = s.causal ? 1 : 0, backward = s.backward ? 1 : 0;
      if (seen.insert({s.head_dim, s.seq, causal, backward}).second)
        rows.push_back({s.head_dim, s.seq, causal, backward, s.flops_per_s});
    }
    entry.reject_unknown();
  }
  return {{"columns", {"head_dim", "seq", "causal", "backward", "flops_per_s"}}, {"rows", rows}};
}

// Reads each kernel under `key` of the recipe; `make(kernels, name)` reads one.
template <typename Make>
Json by_kernel(const JsonReader& recipe, const char* key, Make&& make) {
  Json json = Json::object();
  if (!recipe.has(key)) return json;
  const JsonReader kernels = recipe.object(key);
  for (const auto& item : kernels.json().items()) json[item.key()] = make(kernels, item.key());
  return json;
}

Json stream_json(const std::vector<JsonReader>& entries, const std::filesystem::path& data, const Gpu& gpu,
                 std::vector<Source>& sources) {
  Streams streams;
  for (const JsonReader& entry : entries) {
    for (const auto& [kind, samples] : import_streams({entry, data}, gpu, sources)) {
      // A later entry replaces an earlier one from its smallest size on.
      std::vector<StreamSample>& all = streams[kind];
      const double smallest = samples.front().bytes;
      std::erase_if(all, [&](const StreamSample& s) { return s.bytes >= smallest; });
      all.insert(all.end(), samples.begin(), samples.end());
    }
    entry.reject_unknown();
  }
  Json json = Json::object();
  for (const auto& [kind, samples] : streams) {
    Json rows = Json::array();
    for (const StreamSample& s : samples) rows.push_back({s.bytes, s.bytes_per_s});
    json[kind] = {{"columns", {"bytes", "bytes_per_s"}}, {"rows", rows}};
  }
  return json;
}

Json links_json(const JsonReader& recipe) {
  Json json = Json::array();
  if (!recipe.has("links")) return json;
  for (const JsonReader& entry : recipe.objects("links")) {
    for (const Json& kind : entry.value("kinds")) {
      const ImportedLink link = import_link(entry, kind);
      json.push_back({{"kind", link.cost.kind},
                      {"op", link.cost.op},
                      {"latency_s", link.cost.latency_s},
                      {"step_latency_s", link.cost.step_latency_s},
                      {"efficiency", link.cost.efficiency},
                      {"how", to_string(link.cost.how)},
                      {"source", link.source}});
    }
    entry.reject_unknown();
  }
  return json;
}

// One entry for each title and note, in order of first use.
Json sources_json(const std::vector<Source>& sources) {
  std::set<std::pair<std::string, std::string>> seen;
  Json json = Json::array();
  for (const Source& source : sources) {
    if (!seen.emplace(source.title, source.note).second) continue;
    json.push_back({{"title", source.title}, {"license", source.license}, {"note", source.note}});
  }
  return json;
}

Json host_json(const JsonReader& recipe, const std::filesystem::path& data, std::vector<Source>& sources) {
  const HostTimes times = import_host_launch({recipe, data}, sources);
  recipe.reject_unknown();
  return {{"host_seconds", times.launch_s}, {"host_collective_seconds", times.collective_s}};
}

Json launch_json(const JsonReader& recipe, const std::filesystem::path& data, std::vector<Source>& sources) {
  Json launch = {{"seconds", recipe.number("seconds", physical::kLatency)},
                 {"source", recipe.text("source")}};
  if (recipe.has("host")) launch.update(host_json(recipe.object("host"), data, sources));
  recipe.reject_unknown();
  return launch;
}

// Adds a factor for GEMMs, with its source, where the recipe has it.
void add_number(const JsonReader& recipe, const char* key, const char* name, double least, double most,
                Json& profile) {
  if (!recipe.has(key)) return;
  const JsonReader of = recipe.object(key);
  profile[key] = {{name, of.number(name, least, most)}, {"source", of.text("source")}};
  of.reject_unknown();
}

// Factors on GEMM time that the tables do not contain.
void add_numbers(const JsonReader& recipe, Json& profile) {
  for (const char* key : {"fp8_split_sums", "fp8_blocks"}) add_number(recipe, key, "times", 1, 10, profile);
  add_number(recipe, "hidden_sums", "share", 0, 1, profile);
  add_number(recipe, "gpu_spread", "deviation", 0, kMaxGpuSpread, profile);
}

// Assumed rates of kernels that nobody timed: the recipe's "rates", else the GPU's full rates.
Gpu reached_gpu(const JsonReader& recipe) {
  if (!recipe.has("rates")) return read_gpu(recipe.object("gpu"));
  Json rates = recipe.object("rates").json();
  rates["name"] = recipe.object("gpu").text("name");
  return read_gpu(JsonReader(rates, recipe.file()));
}

Json make_profile(const JsonReader& recipe, const std::filesystem::path& data) {
  std::vector<Source> sources;
  const JsonReader gpu_recipe = recipe.object("gpu");
  read_gpu(gpu_recipe);
  const Gpu gpu = reached_gpu(recipe);
  const Json gemm = gemm_json(recipe, data, gpu, sources);
  const Json attention = attention_json(recipe, "attention", data, gpu, sources);
  const Json attention_of =
      by_kernel(recipe, "attention_of", [&](const JsonReader& of, const std::string& name) {
        return attention_json(of, name, data, gpu, sources);
      });
  const Json stream = stream_json(recipe.objects("stream"), data, gpu, sources);
  const Json stream_of = by_kernel(recipe, "stream_of", [&](const JsonReader& of, const std::string& name) {
    return stream_json(of.objects(name), data, gpu, sources);
  });
  const Json links = links_json(recipe);
  const Json launch = launch_json(recipe.object("launch"), data, sources);
  Json profile = {{"schema", kProfileSchema},
                  {"name", recipe.text("name")},
                  {"gpu", gpu_recipe.json()},
                  {"how", recipe.text("how")},
                  {"sources", sources_json(sources)},
                  {"launch", launch},
                  {"links", links},
                  {"attention", attention},
                  {"stream", stream},
                  {"gemm", gemm}};
  if (!attention_of.empty()) profile["attention_of"] = attention_of;
  if (!stream_of.empty()) profile["stream_of"] = stream_of;
  add_numbers(recipe, profile);
  // Where no model is named the links time collectives and messages.
  if (const std::string model = recipe.text_or("collectives", ""); !model.empty())
    profile["collectives"] = {{"model", model}, {"measured", Json::array()}};
  recipe.reject_unknown();
  parse_profile(JsonReader(profile, recipe.file()));  // the written profile can be read
  return profile;
}

// Measurements on the GPU itself replace the values carried over to it.
void add_own(const JsonReader& recipe, const std::filesystem::path& data, Json& profile) {
  std::vector<Source> sources;
  const Gpu gpu = read_gpu(recipe.object("gpu"));
  if (recipe.has("gemm")) {
    const Json own = gemm_json(recipe, data, gpu, sources);
    profile["gemm"].update(own);
  }
  if (recipe.has("stream")) {
    const Json own = stream_json(recipe.objects("stream"), data, gpu, sources);
    profile["stream"].update(own);
  }
  if (recipe.has("attention")) profile["attention"] = attention_json(recipe, "attention", data, gpu, sources);
  const Json kernels = by_kernel(recipe, "attention_of", [&](const JsonReader& of, const std::string& name) {
    return attention_json(of, name, data, gpu, sources);
  });
  for (const auto& [kernel, table] : kernels.items()) profile["attention_of"][kernel] = table;
  add_numbers(recipe, profile);
  if (recipe.has("host")) profile["launch"].update(host_json(recipe.object("host"), data, sources));
  for (const Json& source : sources_json(sources)) profile["sources"].push_back(source);
}

Json import_like(const JsonReader& recipe, const std::filesystem::path& data, std::set<std::string> likes);

Json carried_over(const JsonReader& recipe, const std::filesystem::path& data, std::set<std::string> likes) {
  const std::string like = recipe.text("like");
  if (!likes.insert(like).second) recipe.fail("like", "goes round in a circle", like);
  const std::string path = (data / ".." / "recipes" / (like + ".json")).string();
  Json profile = carry_over(recipe, import_like(JsonReader::open(path), data, std::move(likes)));
  add_own(recipe, data, profile);
  recipe.reject_unknown();
  parse_profile(JsonReader(profile, recipe.file()));
  return profile;
}

// `likes`: recipes that the chain of "like" has already visited.
Json import_like(const JsonReader& recipe, const std::filesystem::path& data, std::set<std::string> likes) {
  try {
    return recipe.has("like") ? carried_over(recipe, data, std::move(likes)) : make_profile(recipe, data);
  } catch (const nlohmann::json::exception& error) {
    throw InputError({recipe.file(), "",
                      "the recipe or one of its tables lacks a field or has one of another type",
                      error.what(), ""});
  }
}

}  // namespace

Json import_profile(const JsonReader& recipe, const std::filesystem::path& data) {
  return import_like(recipe, data, {});
}

}  // namespace rehearse
