#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/quantity.h"
#include "base/say.h"
#include "calibrate/timing/coverage.h"
#include "calibrate/timing/sampling.h"
#include "cli/calibrate.h"
#include "cli/file_kind.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "scenario/scenario.h"

namespace rehearse {

namespace {

struct ShowOptions {
  std::string profile;
  GivenFlags given;
  std::string svg;
};

void print_provenance(const Profile& profile) {
  say("{}: {}, taken on {}\n", profile.name, to_string(profile.how), profile.gpu.name);
  if (profile.measurement) {
    const Measurement& m = *profile.measurement;
    say("  {} on {}, {} core{}, cache {}, {:.2f} GHz; {}\n", m.date, m.device, m.cores,
        m.cores == 1 ? "" : "s", m.cache, m.clock_hz * 1e-9, join(m.libraries));
  }
  say("  {} between kernel starts\n", format_seconds(profile.launch_s));
}

void print_tables(const Profile& profile) {
  say("{:<32} {:>8} {:>16} {:>16} {:>8}\n", "table", "samples", "median", "best", "spread");
  for (const TableSummary& table : summarise(profile)) {
    const char* unit = table.counts_flops ? "GFLOP/s" : "GB/s";
    say("{:<32} {:>8} {:>8.1f} {:<7} {:>8.1f} {:<7} {:>6.1f} %\n", table.name, table.samples,
        table.median_rate * 1e-9, unit, table.best_rate * 1e-9, unit, 100 * table.widest_spread);
  }
  for (const LinkCost& link : profile.links)
    say("link {} {}: {} latency, {} per step, {:.0f} % of the port's bandwidth ({})\n", link.kind, link.op,
        format_seconds(link.latency_s), format_seconds(link.step_latency_s), 100 * link.efficiency,
        to_string(link.how));
}

int print_missing(const Profile& profile, const ShowOptions& options) {
  const Scenario scenario = read_scenario(collect(options.given));
  const Missing missing = missing_of(profile, jobs_of(scenario.experiment.model, scenario.experiment.plan));
  if (missing.kernels.empty() && missing.messages.empty()) {
    say("nothing is missing for this scenario\n");
    return kDone;
  }
  say("missing for this scenario, to be interpolated or extrapolated:\n");
  for (const SampleKey& key : missing.kernels) say("  {}\n", to_string(key));
  for (const MessageJob& job : missing.messages) say("  {}\n", to_string(job));
  return kMissing;
}

int show(const ShowOptions& options) {
  require_writable({options.svg});
  const Profile profile = read_profile(options.profile);
  print_provenance(profile);
  print_tables(profile);
  if (!options.svg.empty()) {
    write_file(options.svg, [&](std::ostream& out) { out << draw_rates(profile); });
  }
  const bool asked = !options.given.file.empty() || !options.given.values.empty();
  return asked ? print_missing(profile, options) : kDone;
}

double distance(const Agreement& agreement) {
  return std::abs(std::log(agreement.ratio));
}

// One line a table, then the samples with the largest differences.
void print_agreement(std::vector<Agreement> all) {
  std::size_t within = 0;
  for (std::size_t first = 0; first < all.size();) {
    std::vector<double> ratios;
    std::size_t end = first;
    for (; end < all.size() && all[end].table == all[first].table; ++end) {
      ratios.push_back(all[end].ratio);
      within += std::abs(all[end].ratio - 1) <= all[end].spread ? 1 : 0;
    }
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    say("{:<32} {:>5} samples: median {:.3f}, {:.3f} to {:.3f}\n", all[first].table, ratios.size(),
        summarise(ratios).seconds, *least, *most);
    first = end;
  }
  say("{} of {} agree within both spreads\n", within, all.size());
  std::sort(all.begin(), all.end(),
            [](const Agreement& a, const Agreement& b) { return distance(a) > distance(b); });
  for (std::size_t i = 0; i < std::min<std::size_t>(5, all.size()); ++i)
    say("  {:.3f}  {}: {} (spreads {:.1f} %)\n", all[i].ratio, all[i].table, all[i].sample,
        100 * all[i].spread);
}

int diff(const std::string& first, const std::string& second) {
  const Profile a = read_profile(first), b = read_profile(second);
  const std::vector<Agreement> all = compare(a, b);
  say("time in {} over time in {}\n", b.name, a.name);
  if (all.empty()) {
    say("no sample is in both\n");
    return kDone;
  }
  print_agreement(all);
  return kDone;
}

}  // namespace

Verb calibrate_show_verb() {
  const auto options = std::make_shared<ShowOptions>();
  Verb verb{"show", "print a profile, and the entries that a scenario lacks in it (exit code 4)"};
  verb.add({.names = {"shown"},
            .target = &options->profile,
            .help = "a profile",
            .value = "NAME|FILE",
            .required = true});
  verb.add_all(scenario_options(options->given));
  verb.add({.names = {"--svg"},
            .target = &options->svg,
            .help = "draw achieved rates against size",
            .value = "FILE",
            .refuse = named_as(".svg")});
  verb.run = [options] { return show(*options); };
  return verb;
}

Verb calibrate_diff_verb() {
  const auto files = std::make_shared<std::pair<std::string, std::string>>();
  Verb verb{"diff", "two profiles, sample by sample"};
  verb.add({.names = {"first"},
            .target = &files->first,
            .help = "a profile",
            .value = "NAME|FILE",
            .required = true});
  verb.add({.names = {"second"},
            .target = &files->second,
            .help = "another",
            .value = "NAME|FILE",
            .required = true});
  verb.run = [files] { return diff(files->first, files->second); };
  return verb;
}

}  // namespace rehearse
