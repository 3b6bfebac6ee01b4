#include "draw/cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/quantity.h"
#include "draw/canvas.h"

namespace rehearse {

namespace {

using namespace svg;

constexpr double kWidth = 960, kMargin = 24, kLabels = 230, kRow = 76, kBox = 26;
constexpr std::int64_t kMaxBoxes = 8;

// Okabe and Ito's colours, as in the other pictures.
constexpr const char* kGpuColour = "#009e73";
constexpr const char* kNicColour = "#e69f00";
constexpr const char* kSwitchColour = "#56b4e9";
constexpr const char* kLineColour = "#888888";
constexpr const char* kCore = "core";  // there is only one

struct Point {
  double x = 0, y = 0;
};

class ClusterPicture {
 public:
  ClusterPicture(const Cluster& cluster, std::int64_t nodes) : cluster_(cluster), nodes_(nodes) {}

  std::string run() {
    const std::string title = fmt::format("{}: {} node{} of {} {}", cluster_.name, nodes_,
                                          nodes_ == 1 ? "" : "s", cluster_.node.gpus, cluster_.gpu.name);
    boxes_.heading(kMargin, kWidth - 2 * kMargin, title, "");
    top_ = 60;
    if (nodes_ > 1) fabric();
    node();
    lines_.add(boxes_);
    return lines_.finish(kWidth, top_ + kMargin, title);
  }

 private:
  void box(Point at, double width, const char* colour, const std::string& label) {
    boxes_.put(R"(<rect x="{}" y="{}" width="{}" height="{}" rx="4" fill="{}" stroke="black"/>)",
               number(at.x - width / 2), number(at.y - kBox / 2), number(width), number(kBox), colour);
    boxes_.text(at.x, at.y + 4, 11, label, Anchor::middle);
  }

  void line(Point a, Point b, double width) {
    lines_.put(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="{}"/>)", number(a.x),
               number(a.y), number(b.x), number(b.y), kLineColour, number(width));
  }

  static std::vector<Point> row(std::int64_t count, double y) {
    const auto shown = static_cast<double>(std::min(count, kMaxBoxes));
    std::vector<Point> points;
    for (double i = 0; i < shown; ++i)
      points.push_back({kMargin + kLabels + (kWidth - 2 * kMargin - kLabels) * (i + 0.5) / shown, y});
    return points;
  }

  // Boxes of one level. Each is below the box above that serves it, and connected to it.
  std::vector<Point> level(const std::vector<Point>& above, std::int64_t count, std::int64_t below_each,
                           const std::string& name, const char* colour) {
    const std::vector<Point> points = row(count, top_);
    for (std::size_t i = 0; i < points.size(); ++i) {
      box(points[i], 74, colour, name == kCore ? name : fmt::format("{}{}", name, i));
      if (above.empty()) continue;
      const auto parent = static_cast<std::size_t>(static_cast<std::int64_t>(i) / below_each);
      line(above[std::min(parent, above.size() - 1)], points[i], 2);
    }
    top_ += kRow;
    return points;
  }

  void label(const std::string& first, const std::string& second) {
    boxes_.text(kMargin, top_ - 2, 12, first);
    boxes_.text(kMargin, top_ + 13, 11, second);
  }

  void fabric() {
    const Fabric& fabric = cluster_.fabric;
    std::vector<Point> above;
    if (fabric.kind == FabricKind::torus) {
      label("torus", fmt::format("links of {} each way", format_rate(fabric.link_bandwidth)));
      above = level({}, nodes_, 1, "router", kSwitchColour);
    } else {
      label(fmt::format("core ({})", to_string(fabric.kind)), "joins all");
      above = level({}, 1, 1, kCore, kSwitchColour);
    }
    std::int64_t above_nodes = nodes_;
    for (std::size_t i = fabric.levels.size(); i-- > 0;) {
      const FabricLevel& of = fabric.levels[i];
      const std::int64_t count = group_of(of, nodes_ - 1) + 1;
      label(fmt::format("{} x {}, {:g}:1{}", count, of.name, of.oversubscription,
                        fabric.rails && i == 0 ? fmt::format(", {} rails", cluster_.node.nics) : ""),
            fmt::format("{} nodes, up {}", of.nodes, format_rate(uplink_bandwidth(cluster_, i))));
      above = level(above, count, std::max<std::int64_t>(1, above_nodes / of.nodes), of.name, kSwitchColour);
      above_nodes = of.nodes;
    }
    label(fmt::format("{} nodes", nodes_),
          fmt::format("{} x {} {}", cluster_.node.nics, cluster_.node.nic_kind,
                      format_rate(cluster_.node.nic.bandwidth)));
    level(above, nodes_, fabric.kind == FabricKind::torus ? 1 : above_nodes, "node", "#dddddd");
  }

  // GPUs on a ring, switches inside it, NICs outside beside their first GPU.
  void node() {
    const std::vector<NodeLink> links = links_of(cluster_.node);
    const double radius = std::max(150.0, cluster_.node.gpus * 7.0);
    const Point centre{kMargin + kLabels + (kWidth - 2 * kMargin - kLabels) / 2, top_ + radius + 110};
    std::map<std::string, Point> points;
    const auto on_ring = [&](double turn, double r) {
      const double angle = 2 * std::numbers::pi * turn - std::numbers::pi / 2;
      return Point{centre.x + r * std::cos(angle), centre.y + r * std::sin(angle)};
    };
    for (int gpu = 0; gpu < cluster_.node.gpus; ++gpu)
      points[fmt::format("gpu{}", gpu)] = on_ring(static_cast<double>(gpu) / cluster_.node.gpus, radius);
    place_beside(links, points, centre, radius);
    join(links, points);
    for (const auto& [name, at] : points)
      box(at, std::max(44.0, text_width(name, 11) + 10),
          is_gpu(name)   ? kGpuColour
          : is_nic(name) ? kNicColour
                         : kSwitchColour,
          name);
    legend(links);
    top_ = centre.y + radius + 130;
  }

  using Points = std::map<std::string, Point>;

  // Switches connected to some GPUs are drawn behind them, NICs behind those, switches of switches inside the
  // ring.
  static void place_beside(const std::vector<NodeLink>& links, Points& points, Point centre, double radius) {
    place_ends(links, points, centre, radius + 58, false);
    place_ends(links, points, centre, radius + 115, true);
    place_ends(links, points, centre, radius * 0.3, false);
    for (const NodeLink& link : links) {
      points.try_emplace(link.from, centre);
      points.try_emplace(link.to, centre);
    }
  }

  // Places each end without a place in the direction of the placed ends that it is connected to.
  static void place_ends(const std::vector<NodeLink>& links, Points& points, Point centre, double distance,
                         bool nics) {
    Points sums;
    for (const NodeLink& link : links) {
      for (const auto& [end, other] : {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
        if (points.contains(end) || !points.contains(other) || is_nic(end) != nics) continue;
        const Point at = points.at(other);
        Point& sum = sums[end];
        sum = {sum.x + at.x - centre.x, sum.y + at.y - centre.y};
      }
    }
    for (const auto& [name, sum] : sums) {
      const double length = std::hypot(sum.x, sum.y);
      const double scale = length < 1 ? 0 : distance / length;
      points[name] = {centre.x + scale * sum.x, centre.y + scale * sum.y};
    }
  }

  void join(const std::vector<NodeLink>& links, const std::map<std::string, Point>& points) {
    double widest = 0;
    for (const NodeLink& link : links) widest = std::max(widest, link.bandwidth);
    for (const NodeLink& link : links)
      line(points.at(link.from), points.at(link.to), 1 + 4 * std::sqrt(link.bandwidth / widest));
  }

  void legend(const std::vector<NodeLink>& links) {
    std::map<std::pair<std::string, double>, int> counts;
    for (const NodeLink& link : links) ++counts[{link.kind, link.bandwidth}];
    boxes_.text(kMargin, top_ + 20, 13, "One node");
    double y = top_ + 40;
    for (const auto& [kind, count] : counts) {
      boxes_.text(kMargin, y, 11, fmt::format("{} x {} {}", count, kind.first, format_rate(kind.second)));
      y += 16;
    }
    boxes_.text(kMargin, y, 11, "each way");
  }

  const Cluster& cluster_;
  std::int64_t nodes_;
  double top_ = 0;
  Canvas lines_, boxes_;
};

}  // namespace

std::string draw_cluster(const Cluster& cluster, std::int64_t nodes) {
  return ClusterPicture(cluster, nodes).run();
}

}  // namespace rehearse
