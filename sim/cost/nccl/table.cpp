#include "cost/nccl/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cost/nccl/read_model.h"

namespace rehearse::nccl {

namespace {

constexpr int kMaxNodes = 1 << 20, kMaxTableRanks = 1 << 20;
constexpr double kMicrosecond = 1e-6;

// NCCL_ALGO=NAME anywhere in the environment; lists of several leave NCCL the choice.
std::optional<Algorithm> forced_by(const Json& environment) {
  const std::string text = environment.is_string() ? environment.get<std::string>() : environment.dump();
  for (std::size_t a = 0; a < kAlgorithms; ++a) {
    const std::string setting = fmt::format("NCCL_ALGO={}", kAlgorithmNames[a]);
    const std::size_t at = text.find(setting);
    if (at == std::string::npos) continue;
    const std::size_t end = at + setting.size();
    if (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == ','))
      continue;
    return static_cast<Algorithm>(a);
  }
  return {};
}

double time_of(const JsonReader& row) {
  const char* key = row.has("time_us") ? "time_us" : "time_us_inplace";
  return row.number(key, physical::kMessageTime) * kMicrosecond;
}

std::vector<Measured::Row> read_rows(const JsonReader& table) {
  std::vector<Measured::Row> rows;
  for (const JsonReader& row : table.objects("rows")) {
    const double bytes = row.number("bytes", physical::kMessage);
    if (bytes > 0) rows.push_back({bytes, time_of(row)});
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return rows;
}

}  // namespace

Table read_table(const std::string& path) {
  return parse_table(JsonReader::open(path));
}

Table parse_table(const JsonReader& reader) {
  Table table;
  table.file = std::filesystem::path(reader.file()).filename().string();
  table.cluster = reader.text("cluster");
  table.op = reader.text("op");
  table.collective = op_of(table.op, reader);
  table.nodes = static_cast<int>(reader.integer("n_nodes", 1, kMaxNodes));
  table.gpus_per_node = static_cast<int>(reader.integer("gpus_per_node", 1, kMaxNodes));
  if (std::int64_t{table.nodes} * table.gpus_per_node > kMaxTableRanks)
    reader.fail("n_nodes", fmt::format("times gpus_per_node is at most {}", kMaxTableRanks),
                fmt::format("{} x {}", table.nodes, table.gpus_per_node));
  table.irregular = reader.boolean_or("irregular", false);
  if (reader.has("env")) table.forced = forced_by(reader.value("env"));
  if (reader.has("source")) table.source = reader.object("source").text_or("title", "");
  table.rows = read_rows(reader);
  return table;
}

GroupShape group_of(const Table& table, const Cluster& cluster) {
  const int members = table.nodes * table.gpus_per_node;
  int nodes = table.nodes;
  if (cluster.nccl.host_gpus > 0 && table.gpus_per_node <= cluster.nccl.host_gpus)
    nodes = (members + cluster.node.gpus - 1) / cluster.node.gpus;
  const int local = (members + nodes - 1) / nodes;
  if (local > cluster.node.gpus) {
    throw InputError({table.file, "/gpus_per_node",
                      fmt::format("a node of {} has {} GPUs", cluster.name, cluster.node.gpus),
                      fmt::format("found {}", local), std::to_string(cluster.node.gpus)});
  }
  std::vector<int> ranks;
  for (int i = 0; i < members; ++i) ranks.push_back(i / local * cluster.node.gpus + i % local);
  return group_shape(cluster, ranks);
}

}  // namespace rehearse::nccl
