#include "calibrate/import/nccl_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "calibrate/import/hardware.h"
#include "calibrate/import/tables.h"
#include "cost/nccl/read_model.h"

namespace rehearse::nccl {

namespace {

// One system has little weight for others; one table of a system has much weight for its other tables. Both
// values were chosen among 0, 1/4, 1/2, 1, 2, 4 and 8 by the error on tables and clusters left out.
constexpr double kShrinkClass = 4;
constexpr double kShrinkHardware = 0.5;
constexpr double kWidestGap = 4;  // between two rows of a table that interpolation may join

Curve curve_of(const Sample& sample, const Constants& constants) {
  const Model bare{"", constants, {}, {}, {}};
  const System system(bare, sample.cluster, sample.group, sample.table.collective, sample.table.forced);
  std::map<int, std::vector<double>> found;
  for (const Measured::Row& row : sample.table.rows) {
    const int step = static_cast<int>(std::lround(std::log2(row.bytes) / kOctaves));
    found[step].push_back(std::log(row.seconds / system.believed(row.bytes).seconds(row.bytes)));
  }
  Curve curve;
  for (const auto& [step, ratios] : found) curve[step] = median(ratios);
  return curve;
}

// A level of corrections: the class of each sample, and the weights of its members.
struct Level {
  std::function<Correction(const Sample&)> class_of;
  bool over_hardware = false;
};

// The system that a sample counts for: its own cluster, or the one that it is named after.
std::size_t system_of(const Sample& sample, std::vector<KnownSystem>& systems) {
  const bool is_its_own = sample.hardware == sample.cluster.name;
  const Cluster cluster = is_its_own ? sample.cluster : read_cluster(sample.hardware);
  return add_system(systems, sample.hardware, cluster);
}

std::vector<Level> levels(std::vector<KnownSystem>& systems) {
  const auto across = [](const Sample& sample) {
    Correction correction;
    correction.across = sample.group.nodes > 1;
    return correction;
  };
  const auto by_op = [across](const Sample& sample) {
    Correction correction = across(sample);
    correction.op = family(sample.table.collective);
    return correction;
  };
  const auto by_link = [across](const Sample& sample) {
    Correction correction = across(sample);
    correction.generation = generation_of(sample.cluster);
    correction.link = link_kind(sample.cluster, sample.group);
    return correction;
  };
  const auto by_hardware = [across, &systems](const Sample& sample) {
    Correction correction = across(sample);
    correction.system = system_of(sample, systems);
    return correction;
  };
  const auto by_both = [by_op, &systems](const Sample& sample) {
    Correction correction = by_op(sample);
    correction.system = system_of(sample, systems);
    return correction;
  };
  return {{by_link, true}, {by_op, true}, {by_hardware, false}, {by_both, false}};
}

std::string key_of(const Correction& c, const std::vector<KnownSystem>& systems) {
  return fmt::format("{} {} {} {} {}", c.across, c.op ? static_cast<int>(*c.op) : -1,
                     c.generation ? static_cast<int>(*c.generation) : -1, c.link,
                     c.system ? systems[*c.system].name : "");
}

// The members of a class, by index, each with the residual of its curve.
struct Members {
  std::vector<const Sample*> samples;
  std::vector<Curve*> left;
};

bool tells_of_itself(const Sample& sample) {
  return sample.group.nodes > 1 && sample.cluster.nccl.is_its_own();
}

// One value for each voter: a table, or a hardware whose tables are combined first.
std::vector<double> voices(const Members& members, int step, bool over_hardware) {
  std::map<std::string, std::vector<double>> values;
  for (std::size_t i = 0; i < members.samples.size(); ++i) {
    const auto found = members.left[i]->find(step);
    if (found == members.left[i]->end() || (over_hardware && tells_of_itself(*members.samples[i]))) continue;
    const std::string voice = over_hardware ? members.samples[i]->hardware : members.samples[i]->table.file;
    values[voice].push_back(found->second);
  }
  std::vector<double> medians;
  for (const auto& [voice, each] : values) medians.push_back(median(each));
  return medians;
}

Curve median_curve(const Members& members, bool over_hardware) {
  Curve curve;
  for (const Curve* left : members.left) {
    for (const auto& point : *left) curve[point.first] = 0;
  }
  for (auto& [step, ratio] : curve) {
    const std::vector<double> all = voices(members, step, over_hardware);
    if (over_hardware && all.size() < 2) continue;  // one system is no class
    const double n = static_cast<double>(all.size());
    ratio = median(all) * n / (n + (over_hardware ? kShrinkClass : kShrinkHardware));
  }
  return curve;
}

void set_points(const Curve& curve, Correction& correction) {
  const int first = curve.begin()->first, last = curve.rbegin()->first;
  correction.first_octave = first * kOctaves;
  for (int step = first; step <= last; ++step) {
    const auto above = curve.lower_bound(step);
    double ratio = above->second;
    if (above->first != step) {
      const auto below = std::prev(above);
      const double share = static_cast<double>(step - below->first) / (above->first - below->first);
      ratio = below->second * (1 - share) + above->second * share;
    }
    correction.log_ratio.push_back(ratio == 0 ? 0 : rounded(ratio));
  }
}

void add_level(const Level& level, const std::vector<const Sample*>& samples, std::vector<Curve>& left,
               Model& model) {
  std::map<std::string, Members> classes;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Members& members = classes[key_of(level.class_of(*samples[i]), model.systems)];
    members.samples.push_back(samples[i]);
    members.left.push_back(&left[i]);
  }
  for (const auto& [key, members] : classes) {
    Correction correction = level.class_of(*members.samples.front());
    correction.tables = static_cast<int>(members.samples.size());
    set_points(median_curve(members, level.over_hardware), correction);
    const bool says_nothing = std::all_of(correction.log_ratio.begin(), correction.log_ratio.end(),
                                          [](double ratio) { return ratio == 0; });
    if (says_nothing) continue;
    for (Curve* curve : members.left) {
      for (auto& [step, ratio] : *curve)
        ratio -= correction.log_ratio[static_cast<std::size_t>(step - correction.first_octave / kOctaves)];
    }
    model.corrections.push_back(std::move(correction));
  }
}

// Seconds at a size within the table's range, interpolated in log-log; nothing beyond.
std::vector<double> seconds_at(const std::vector<const Sample*>& samples, double bytes) {
  std::vector<double> found;
  for (const Sample* sample : samples) {
    const std::vector<Measured::Row>& rows = sample->table.rows;
    if (bytes < rows.front().bytes || bytes > rows.back().bytes) continue;
    const auto above =
        std::lower_bound(rows.begin(), rows.end(), bytes,
                         [](const Measured::Row& row, double size) { return row.bytes < size; });
    if (above->bytes == bytes) {
      found.push_back(std::log(above->seconds));
      continue;
    }
    const auto below = std::prev(above);
    if (above->bytes > kWidestGap * below->bytes) continue;
    const double share = std::log(bytes / below->bytes) / std::log(above->bytes / below->bytes);
    found.push_back(std::log(below->seconds) * (1 - share) + std::log(above->seconds) * share);
  }
  return found;
}

std::vector<Measured::Row> median_rows(const std::vector<const Sample*>& samples) {
  std::map<double, bool> sizes;
  for (const Sample* sample : samples) {
    for (const Measured::Row& row : sample->table.rows) sizes[row.bytes] = true;
  }
  std::vector<Measured::Row> rows;
  for (const auto& [bytes, unused] : sizes)
    rows.push_back({bytes, rounded(std::exp(median(seconds_at(samples, bytes))))});
  return rows;
}

}  // namespace

std::vector<Sample> read_samples(const std::filesystem::path& folder, const Constants& constants) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Sample> samples;
  for (const std::filesystem::path& file : files) {
    Sample sample{read_table(file.string()), {}, {}, {}, {}};
    if (sample.table.irregular) continue;
    sample.cluster = read_cluster(sample.table.cluster);
    sample.group = group_of(sample.table, sample.cluster);
    sample.hardware = hardware_of(sample.table.cluster).over(sample.group.nodes);
    sample.curve = curve_of(sample, constants);
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<Measured> measured_of(const std::vector<const Sample*>& samples, How how,
                                  std::vector<KnownSystem>& systems) {
  std::map<std::string, std::vector<const Sample*>> alike;
  for (const Sample* sample : samples) {
    const Table& table = sample->table;
    alike[fmt::format("{} {} {:9} {:9} {}", sample->hardware, to_string(table.collective),
                        sample->group.nodes, sample->group.members,
                        table.forced ? kAlgorithmNames[index(*table.forced)] : "")]
        .push_back(sample);
  }
  std::vector<Measured> all;
  for (const auto& [key, of_system] : alike) {
    const Sample& first = *of_system.front();
    Measured measured{system_of(first, systems),
                      first.table.collective,
                      first.group.nodes,
                      first.group.members,
                      first.table.forced,
                      how,
                      {},
                      median_rows(of_system)};
    for (const Sample* sample : of_system) measured.tables.push_back(sample->table.file);
    all.push_back(std::move(measured));
  }
  return all;
}

Model fit(const Constants& constants, const std::vector<const Sample*>& samples) {
  Model model{"", constants, {}, {}, {}};
  model.measured = measured_of(samples, How::published, model.systems);
  std::vector<Curve> left;
  for (const Sample* sample : samples) left.push_back(sample->curve);
  for (const Level& level : levels(model.systems)) add_level(level, samples, left, model);
  return model;
}

}  // namespace rehearse::nccl
