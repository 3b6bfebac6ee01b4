// Which grid do tests of sweeps use where any grid will do?
#pragma once

#include "sweep/grid.h"

namespace rehearse {

// 3 x 2 points: mbs 1, 2, 4 and schedule gpipe, 1f1b.
inline Grid small_grid() {
  return {{{"mbs", "/plan/micro_batch", {1, 2, 4}}, {"schedule", "/plan/schedule", {"gpipe", "1f1b"}}}};
}

}  // namespace rehearse
