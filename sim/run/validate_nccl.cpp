#include "run/validate_nccl.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/json_reader.h"
#include "base/percentile.h"
#include "cost/nccl/table.h"
#include "cost/nccl/time_curve.h"

namespace rehearse {

namespace {

bool is_in(SizeClass size, double bytes) {
  return size == SizeClass::all || nccl::size_class(bytes) == static_cast<std::size_t>(size);
}

// |predicted / measured - 1| of the rows in each size class, ascending.
using SortedErrors = std::array<std::vector<double>, std::tuple_size_v<ErrorBySize>>;

SortedErrors errors_of(const std::vector<const NcclRow*>& rows) {
  SortedErrors errors;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    for (const NcclRow* row : rows) {
      if (is_in(static_cast<SizeClass>(i), row->bytes))
        errors[i].push_back(std::abs(row->predicted_s / row->measured_s - 1));
    }
    std::ranges::sort(errors[i]);
  }
  return errors;
}

ErrorBySize percentile_of(const SortedErrors& errors, double share) {
  ErrorBySize found;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!errors[i].empty()) found[i] = percentile(errors[i], share);
  return found;
}

std::vector<const NcclRow*> rows_of(const NcclTable& table) {
  std::vector<const NcclRow*> rows;
  for (const NcclRow& row : table.rows) rows.push_back(&row);
  return rows;
}

void predict(const nccl::Table& from, const nccl::Model& model, NcclTable& table) {
  const Cluster cluster = read_cluster(from.cluster);
  const GroupShape group = nccl::group_of(from, cluster);
  const nccl::TimeCurve curve(model, cluster, from.collective, group, from.forced);
  for (const nccl::Measured::Row& row : from.rows)
    table.rows.push_back({row.bytes, row.seconds, curve.at(row.bytes).total()});
}

NcclSummary summary_of(const std::vector<NcclTable>& tables) {
  NcclSummary summary;
  std::vector<const NcclRow*> rows;
  for (const NcclTable& table : tables) {
    if (table.irregular || !table.skipped.empty()) continue;
    ++summary.tables;
    for (const NcclRow& row : table.rows) rows.push_back(&row);
  }
  summary.rows = static_cast<std::int64_t>(rows.size());
  const SortedErrors errors = errors_of(rows);
  summary.median_abs = percentile_of(errors, 0.5);
  summary.p90_abs = percentile_of(errors, 0.9);
  return summary;
}

NcclTable skipped(const std::string& file, const std::string& reason) {
  NcclTable table;
  table.file = std::filesystem::path(file).filename().string();
  table.skipped = reason;
  return table;
}

}  // namespace

NcclTable validate_table(const nccl::Table& from, const nccl::Model& model) {
  NcclTable table;
  table.file = from.file;
  table.cluster = from.cluster;
  table.op = from.op;
  table.nodes = from.nodes;
  table.gpus_per_node = from.gpus_per_node;
  table.irregular = from.irregular;
  try {
    predict(from, model, table);
  } catch (const InputError& error) {
    table.rows.clear();
    table.skipped = error.what();
  }
  table.median_abs = percentile_of(errors_of(rows_of(table)), 0.5);
  return table;
}

NcclTable validate_table(const std::string& file, const nccl::Model& model) {
  const Json json = read_json_file(file);
  if (!json.is_object() || !json.contains("rows") || !json.contains("op"))
    return skipped(file, "is not an nccl-tests table: it has no op or rows");
  try {
    return validate_table(nccl::parse_table(JsonReader(json, file)), model);
  } catch (const InputError& error) {
    return skipped(file, error.what());
  }
}

NcclValidation summed(std::vector<NcclTable> tables) {
  NcclValidation validation{std::move(tables), {}};
  validation.summary = summary_of(validation.tables);
  return validation;
}

NcclValidation validate_nccl(const std::vector<std::string>& files, const nccl::Model& model) {
  std::vector<NcclTable> tables;
  for (const std::string& file : files) tables.push_back(validate_table(file, model));
  return summed(std::move(tables));
}

}  // namespace rehearse
