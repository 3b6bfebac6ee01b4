#include "sweep/points_left.h"

#include <algorithm>
#include <memory>

namespace rehearse {

PointsLeft points_left(Point points, const Shard& shard, std::set<Point> known) {
  std::erase_if(known, [&](Point point) { return point >= points || !shard.has(point); });
  const Point first = shard.index - 1;
  const Point all = std::max<Point>(0, (points - first + shard.count - 1) / shard.count);
  const auto done = std::make_shared<const std::set<Point>>(std::move(known));
  return {all - static_cast<Point>(done->size()),
          [points, step = Point{shard.count}, done, at = first]() mutable -> std::optional<Point> {
            while (at < points && done->contains(at)) at += step;
            if (at >= points) return std::nullopt;
            const Point point = at;
            at += step;
            return point;
          }};
}

NextPoint first_points(Point points) {
  return points_left(points, {}, {}).next;
}

}  // namespace rehearse
