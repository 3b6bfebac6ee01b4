// Which points of a sweep are still to be run? Counted and handed out one by one: a sweep of 100 million
// points begins with its first.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "sweep/grid.h"
#include "sweep/shard.h"

namespace rehearse {

// The next point, in order, until there is none. One call at a time.
using NextPoint = std::function<std::optional<Point>()>;

struct PointsLeft {
  Point count = 0;
  NextPoint next;
};

// Of the points 0 to `points` - 1 those of the shard that are not known.
PointsLeft points_left(Point points, const Shard& shard, std::set<Point> known);

// All of 0 to `points` - 1.
NextPoint first_points(Point points);

}  // namespace rehearse
