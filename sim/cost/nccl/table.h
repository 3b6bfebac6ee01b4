// Which times does one published nccl-tests table state, and where were its ranks placed?
#pragma once

#include "cost/nccl/model.h"

namespace rehearse::nccl {

// Times come from the out-of-place columns, or from the in-place ones where a table has no others.
struct Table {
  std::string file;
  std::string cluster;  // name of a topology
  std::string op;       // as nccl-tests name it
  CollectiveOp collective = CollectiveOp::all_reduce;
  int nodes = 1;
  int gpus_per_node = 1;
  bool irregular = false;           // a fabric that misbehaved, or no plain link: kept out of fits
  std::optional<Algorithm> forced;  // by NCCL_ALGO in the table's environment
  std::string source;
  std::vector<Measured::Row> rows;  // bytes above 0, in growing order
};

// InputError for a file that is no such table, or that holds an impossible time or size.
Table read_table(const std::string& path);
Table parse_table(const JsonReader& reader);

// Hosts that share one NVLink domain fill it. Other nodes hold gpus_per_node ranks each. InputError when a
// node of the cluster has fewer GPUs than the table's.
GroupShape group_of(const Table& table, const Cluster& cluster);

}  // namespace rehearse::nccl
