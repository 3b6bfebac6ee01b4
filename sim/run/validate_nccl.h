// How well are nccl-tests tables predicted?
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cost/nccl/table.h"
#include "cost/profile.h"

namespace rehearse {

// Sizes up to 32 KiB, up to 64 MiB, above, and all together.
enum class SizeClass : std::uint8_t { small, middle, large, all };
constexpr std::array<const char*, 4> kSizeClassNames = {"small", "middle", "large", "all"};

// Statistics of |predicted / measured - 1| over the rows of each class; none where a class has no row.
using ErrorBySize = std::array<std::optional<double>, 4>;

struct NcclRow {
  double bytes = 0;
  double measured_s = 0;
  double predicted_s = 0;
};

struct NcclTable {
  std::string file, cluster, op;
  int nodes = 0;
  int gpus_per_node = 0;
  bool irregular = false;
  std::string skipped;  // why nothing was predicted; empty: it was
  std::vector<NcclRow> rows;
  ErrorBySize median_abs;
};

struct NcclSummary {
  ErrorBySize median_abs, p90_abs;
  std::int64_t tables = 0, rows = 0;
};

struct NcclValidation {
  std::vector<NcclTable> tables;
  NcclSummary summary;  // without irregular and skipped tables
};

// A table on the cluster that it names. Its ranks are placed as in GroupShape, with NCCL_ALGO if its
// environment sets it. A table whose cluster is not known is skipped with the reason.
NcclTable validate_table(const nccl::Table& table, const nccl::Model& model);

// The table of a JSON file. Another JSON file is skipped with the reason. InputError for a file that is no
// JSON.
NcclTable validate_table(const std::string& file, const nccl::Model& model);

NcclValidation summed(std::vector<NcclTable> tables);

NcclValidation validate_nccl(const std::vector<std::string>& files, const nccl::Model& model);

}  // namespace rehearse
