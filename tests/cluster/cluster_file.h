// A cluster written to a file of its own, to be read back as a user's would be.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/json_reader.h"
#include "cluster/cluster.h"
#include "scratch.h"

namespace rehearse {

inline std::string write_cluster(const std::string& text) {
  return scratch().write("cluster.json", text);
}

// The error of read_cluster for a bad cluster, or "" when it is accepted.
inline std::string complaint(const Json& cluster) {
  try {
    read_cluster(write_cluster(cluster.dump()));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Two nodes of four GPUs and two NICs.
inline Json small_cluster() {
  return Json::parse(R"({
    "schema": "rehearse.cluster/1",
    "source": "made up",
    "gpu": {"name": "G", "memory": "80GB", "memory_bandwidth": "2TB/s", "peak": {"bf16": "300TFLOPS"}},
    "node": {
      "gpus": 4,
      "gpu_link": {"kind": "nvswitch", "bandwidth": "300GB/s", "latency": "3us"},
      "nics": {"count": 2, "kind": "infiniband", "bandwidth": "200Gbps", "latency": "4us"}
    },
    "fabric": "fat tree",
    "max_nodes": 2,
    "profile": ""
  })");
}

}  // namespace rehearse
