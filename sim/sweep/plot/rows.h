// Which data of a sweep's rows are drawn, and which facts do all rows share?
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sweep/fastest.h"
#include "sweep/grid.h"
#include "sweep/row.h"
#include "sweep/store.h"

namespace rehearse::plot {

// Parts of a whole, with a report's names. The colours can be distinguished with any colour vision.
struct NamedPart {
  const char* key;
  const char* name;
  const char* colour;
};
inline constexpr std::array<NamedPart, 10> kTimeParts = {
    {{"compute", "compute", "#56b4e9"},
     {"recompute", "recompute", "#0072b2"},
     {"optimizer", "optimizer", "#3c3c3c"},
     {"bubble", "bubble", "#d4d4d4"},
     {"exposed_tp", "exposed tensor parallel", "#e69f00"},
     {"exposed_pp", "exposed pipeline", "#009e73"},
     {"exposed_dp", "exposed data parallel", "#d55e00"},
     {"exposed_cp", "exposed context parallel", "#cc79a7"},
     {"exposed_ep", "exposed experts", "#f0e442"},
     {"exposed_offload", "exposed offload", "#8c6bb1"}}};

// Classes of links, with the names of the report's communication table for the bytes that one GPU sends.
inline constexpr std::array<NamedPart, 3> kLinkClasses = {{{"gpu_link_bytes", "GPU links", "#56b4e9"},
                                                           {"nic_bytes", "NICs", "#d55e00"},
                                                           {"host_bytes", "host link", "#8c6bb1"}}};

// Figures are 0 where there is no report.
struct PlotRow {
  std::vector<Json> values;  // one for each field of the grid
  RowState state = RowState::done;
  std::string reason;
  bool has_report = false;
  bool fastest = false;  // Store::fastest()
  double step_time_s = 0, tokens_per_s_per_gpu = 0, mfu = 0, bubble = 0, ideal_bubble = 0;
  double executed_step_time_s = 0, executed_bubble = 0;  // where the row was executed too
  double needed_bytes = 0, capacity_bytes = 0;           // of the fullest GPU, with all its memory
  double gpus = 0, microbatches = 0, global_batch = 0;
  std::array<double, kTimeParts.size()> time_s{};        // by part
  std::array<double, kLinkClasses.size()> sent_bytes{};  // by class of link

  bool fits() const { return state != RowState::does_not_fit; }
  RowSpeed speed() const { return {state, tokens_per_s_per_gpu, step_time_s}; }
};

struct PlotRows {
  std::vector<PlotRow> rows;  // by point
  std::string held;           // "Held fixed: llama3-70b; 512 x H100 (dgx-h100); tp 8, ..."
};
PlotRows read_rows(const Store& store, const Grid& grid);

// The reason why a row has no figures: "illegal: ...".
std::string refusal(const PlotRow& row);

// "tp 8, mbs 1: 4.12 s, 1990 tokens/s/GPU, idle 8.1 %, 61.2 GB", or the reason why there are no figures.
std::string hint_of(const PlotRow& row, const Grid& grid);

}  // namespace rehearse::plot
