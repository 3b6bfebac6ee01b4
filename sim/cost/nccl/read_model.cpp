#include "cost/nccl/read_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/data_path.h"
#include "cluster/cluster_json.h"

namespace rehearse::nccl {

namespace {

constexpr Bounds kLogRatio{Dimension::one, -7, 7};
constexpr int kMaxMembers = 1 << 24;

const std::map<std::string, CollectiveOp> kOps = {
    {"all_reduce", CollectiveOp::all_reduce},         {"all_gather", CollectiveOp::all_gather},
    {"reduce_scatter", CollectiveOp::reduce_scatter}, {"alltoall", CollectiveOp::all_to_all},
    {"broadcast", CollectiveOp::broadcast},           {"reduce", CollectiveOp::broadcast},
    {"sendrecv", CollectiveOp::send_receive}};

template <typename Enum, std::size_t N>
Enum named(const JsonReader& reader, const std::string& key, const std::array<const char*, N>& names) {
  std::map<std::string, Enum> choices;
  for (std::size_t i = 0; i < N; ++i) choices[names[i]] = static_cast<Enum>(i);
  return reader.choice<Enum>(key, choices);
}

std::size_t read_system(const JsonReader& reader, const std::vector<KnownSystem>& systems) {
  const std::string name = reader.text("hardware");
  const auto found = std::ranges::find(systems, name, &KnownSystem::name);
  if (found == systems.end())
    reader.fail("hardware", "must be one of the systems that are described under \"systems\"",
                "found \"" + name + "\"",
                "describe it there, or import the log again: rehearse calibrate import LOG --cluster FILE");
  return static_cast<std::size_t>(found - systems.begin());
}

Correction read_correction(const JsonReader& reader, const std::vector<KnownSystem>& systems) {
  Correction correction;
  correction.across = reader.boolean_or("across", false);
  if (reader.has("op")) correction.op = op_of(reader.text("op"), reader);
  if (reader.has("generation"))
    correction.generation = named<Generation>(reader, "generation", kGenerationNames);
  correction.link = reader.text_or("link", "");
  if (reader.has("hardware")) correction.system = read_system(reader, systems);
  correction.tables = static_cast<int>(reader.integer("tables", 1, kMaxMembers));
  correction.first_octave = static_cast<int>(reader.integer("first_octave", 0, 64));
  correction.log_ratio = reader.numbers("log_ratio", kLogRatio);
  reader.reject_unknown();
  return correction;
}

std::vector<Measured::Row> read_rows(const JsonReader& reader) {
  if (!reader.has("rows")) reader.fail("rows", "is required");
  const Json& list = reader.value("rows");
  if (!list.is_array() || list.empty()) reader.fail("rows", "must be an array of at least one row");
  std::vector<Measured::Row> rows;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& row = list[i];
    const std::string place = fmt::format("rows/{}", i);
    if (!row.is_array() || row.size() != 2)
      reader.fail(place, "must hold a pair of bytes and seconds", "found " + row.dump());
    const Measured::Row next{reader.within(place + "/0 (bytes)", row[0], physical::kBytes),
                             reader.within(place + "/1 (seconds)", row[1], physical::kDuration)};
    if (!rows.empty() && next.bytes <= rows.back().bytes)
      reader.fail(place, "bytes must grow from row to row", "found " + row.dump());
    rows.push_back(next);
  }
  return rows;
}

}  // namespace

CollectiveOp op_of(const std::string& name, const JsonReader& reader) {
  const auto found = kOps.find(name);
  if (found != kOps.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, op] : kOps) names.push_back(known);
  reader.fail("op", "must be one of " + join(names), "found \"" + name + "\"", nearest_name(name, names));
}

std::string nccl_name(CollectiveOp op) {
  for (const auto& [name, known] : kOps) {
    if (known == op) return name;
  }
  return "";
}

std::vector<KnownSystem> read_systems(const JsonReader& reader) {
  std::vector<KnownSystem> systems;
  for (const JsonReader& each : reader.objects("systems")) {
    const std::string name = each.text("name");
    if (std::ranges::find(systems, name, &KnownSystem::name) != systems.end())
      each.fail("name", "must differ from system to system", "found \"" + name + "\"");
    systems.push_back({name, parse_cluster(each.object("cluster"), name)});
    each.reject_unknown();
  }
  return systems;
}

Json to_json(const KnownSystem& system) {
  return {{"name", system.name}, {"cluster", messages_json(system.cluster)}};
}

Measured read_measured(const JsonReader& reader, const std::vector<KnownSystem>& systems) {
  Measured table;
  table.system = read_system(reader, systems);
  table.op = op_of(reader.text("op"), reader);
  table.nodes = static_cast<int>(reader.integer("nodes", 1, kMaxMembers));
  table.members = static_cast<int>(reader.integer("members", 1, kMaxMembers));
  if (reader.has("algorithm")) table.forced = named<Algorithm>(reader, "algorithm", kAlgorithmNames);
  table.how = reader.choice<How>("how", {{"measured", How::measured}, {"published", How::published}});
  for (const Json& file : reader.value("tables")) {
    if (!file.is_string()) reader.fail("tables", "must be a list of names", "found " + file.dump());
    table.tables.push_back(file.get<std::string>());
  }
  table.rows = read_rows(reader);
  reader.reject_unknown();
  return table;
}

Json to_json(const Measured& measured, const std::vector<KnownSystem>& systems) {
  Json json = {{"hardware", systems.at(measured.system).name},
               {"op", nccl_name(measured.op)},
               {"nodes", measured.nodes},
               {"members", measured.members}};
  if (measured.forced) json["algorithm"] = kAlgorithmNames[index(*measured.forced)];
  json["how"] = rehearse::to_string(measured.how);
  json["tables"] = measured.tables;
  json["rows"] = Json::array();
  for (const Measured::Row& row : measured.rows) json["rows"].push_back({row.bytes, row.seconds});
  return json;
}

Json to_json(const Correction& correction, const std::vector<KnownSystem>& systems) {
  Json json = {{"across", correction.across}};
  if (correction.op) json["op"] = nccl_name(*correction.op);
  if (correction.generation) json["generation"] = kGenerationNames[index(*correction.generation)];
  if (!correction.link.empty()) json["link"] = correction.link;
  if (correction.system) json["hardware"] = systems.at(*correction.system).name;
  json["tables"] = correction.tables;
  json["first_octave"] = correction.first_octave;
  json["log_ratio"] = correction.log_ratio;
  return json;
}

namespace {

bool same_class(const Correction& a, const Correction& b) {
  return std::tie(a.across, a.op, a.generation, a.link, a.system) ==
         std::tie(b.across, b.op, b.generation, b.link, b.system);
}

void add_correction(const JsonReader& reader, Model& model) {
  Correction next = read_correction(reader, model.systems);
  for (const Correction& other : model.corrections) {
    if (same_class(next, other)) reader.fail("", "corrects a class of systems that another entry corrects");
  }
  model.corrections.push_back(std::move(next));
}

}  // namespace

namespace {

BySize read_errors(const JsonReader& fit, const char* key) {
  BySize errors{};
  if (!fit.has(key)) return errors;
  const JsonReader by_size = fit.object(key);
  const std::array<const char*, 3> sizes = {"to_32_kib", "to_64_mib", "above"};
  for (std::size_t i = 0; i < sizes.size(); ++i) errors[i] = by_size.number(sizes[i], 0, 1e6);
  by_size.reject_unknown();
  return errors;
}

void read_fit(const JsonReader& fit, Model& model) {
  fit.text("method");
  fit.integer("tables", 0, 1000000);
  fit.integer("rows", 0, 1000000000);
  model.left_out_p90 = read_errors(fit, "left_out_p90");
  model.system_left_out_p90 = read_errors(fit, "system_left_out_p90");
  fit.reject_unknown();
}

}  // namespace

Model parse_model(const JsonReader& reader) {
  if (const std::string schema = reader.text("schema"); schema != kModelSchema) {
    reader.fail("schema", fmt::format("must be \"{}\"", kModelSchema), "found \"" + schema + "\"",
                kModelSchema);
  }
  Model model;
  model.name = reader.text("name");
  reader.value("sources");
  read_fit(reader.object("fit"), model);
  model.constants = read_constants(reader.object("constants"));
  model.systems = read_systems(reader);
  for (const JsonReader& each : reader.objects("corrections")) add_correction(each, model);
  for (const JsonReader& each : reader.objects("measured"))
    model.measured.push_back(read_measured(each, model.systems));
  reader.reject_unknown();
  return model;
}

Model read_model(const std::string& name_or_path) {
  return parse_model(
      JsonReader::open(find_data_file("collectives model", "calibrate/collectives", name_or_path)));
}

}  // namespace rehearse::nccl
