// Which ranks, hosts and GPUs does a log of nccl-tests list?
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/import/nccl_log.h"

namespace rehearse::nccl {

// Content of the lines "#  Rank  0 Group  0 Pid 1000 on host device  0 [0x8d] NVIDIA H100".
struct RankLines {
  std::set<int> numbers, groups;
  std::set<std::string> hosts;
  std::vector<std::string> gpus;
  int count = 0;

  void add(const std::vector<std::string>& words, std::string_view line);
  void give(LogRun& run) const;
};

}  // namespace rehearse::nccl
