// Which points of a sweep still have to run? They are counted and handed out one by one, so that a sweep of
// 100 million points starts at once.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "sweep/grid.h"
#include "sweep/shard.h"

namespace rehearse {

// The next point, in order, until none is left. One call at a time.
using NextPoint = std::function<std::optional<Point>()>;

struct PointsLeft {
  Point count = 0;
  NextPoint next;
};

// The points 0 to `points` - 1 of the shard that are not in `known`.
PointsLeft points_left(Point points, const Shard& shard, std::set<Point> known);

// All points from 0 to `points` - 1.
NextPoint first_points(Point points);

}  // namespace rehearse
