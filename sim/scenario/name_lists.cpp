#include "scenario/name_lists.h"

#include <fmt/core.h>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "model/read.h"
#include "plan/frameworks/traits.h"
#include "plan/schedules.h"

namespace rehearse {

namespace {

// "26.7 M", "8.03 B", "1.01 T"
std::string in_short(std::int64_t parameters) {
  const double millions = static_cast<double>(parameters) * 1e-6;
  if (millions < 1e3) return fmt::format("{:.3g} M", millions);
  return millions < 1e6 ? fmt::format("{:.3g} B", millions * 1e-3) : fmt::format("{:.3g} T", millions * 1e-6);
}

std::vector<ListedName> list_models() {
  std::vector<ListedName> list;
  for (const std::string& name : model_names()) {
    const Model model = read_model(name);
    const ParameterCount count = count_parameters(model);
    const std::string source = read_json_file(model_file(name)).value("_source", "");
    list.push_back({{name, in_short(count.total), model.experts ? in_short(count.active) : "",
                     std::to_string(model.layers), source},
                    {{"name", name},
                     {"parameters", count.total},
                     {"active_parameters", count.active},
                     {"layers", model.layers},
                     {"source", source}}});
  }
  return list;
}

std::string nics_of(const Node& node) {
  constexpr double kBitsPerByte = 8;
  if (node.nics == 0) return "none";
  return fmt::format("{} x {:.4g} Gb/s {}", node.nics, node.nic.bandwidth * kBitsPerByte * 1e-9,
                     node.nic_kind);
}

std::vector<ListedName> list_clusters() {
  std::vector<ListedName> list;
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = read_cluster(name);
    const Node& node = cluster.node;
    const std::string fabric = node.nics == 0 ? "none" : to_string(cluster.fabric.kind);
    list.push_back(
        {{name, cluster.gpu.name, std::to_string(node.gpus), nics_of(node), fabric, cluster.source},
         {{"name", name},
          {"gpu", cluster.gpu.name},
          {"gpu_memory_bytes", cluster.gpu.memory_bytes},
          {"gpus_per_node", node.gpus},
          {"nics_per_node", node.nics},
          {"nic_bandwidth_bytes_per_s", node.nic.bandwidth},
          {"nic_kind", node.nic_kind},
          {"fabric", fabric},
          {"max_nodes", cluster.max_nodes == 0 ? Json() : Json(cluster.max_nodes)},
          {"profile", cluster.profile},
          {"source", cluster.source}}});
  }
  return list;
}

std::vector<ListedName> list_profiles() {
  std::vector<ListedName> list;
  for (const std::string& name : profile_names()) {
    const Profile profile = read_profile(name);
    const std::string date = profile.measurement ? profile.measurement->date : "";
    std::vector<std::string> sources;
    for (const Source& source : profile.sources) sources.push_back(source.title);
    list.push_back({{name, profile.gpu.name, to_string(profile.how), date, join(sources, "; ")},
                    {{"name", name},
                     {"gpu", profile.gpu.name},
                     {"how", to_string(profile.how)},
                     {"date", date.empty() ? Json() : Json(date)},
                     {"sources", sources}}});
  }
  return list;
}

std::vector<ListedName> list_schedules() {
  std::vector<ListedName> list;
  for (const ScheduleName name : kScheduleNames) {
    const ScheduleTraits& known = traits(name);
    const std::vector<std::string> aliases(known.aliases().begin(), known.aliases().end());
    const std::string vpp = known.is_v_shaped ? "2" : known.takes_chunks ? ">= 1" : "1";
    list.push_back({{known.name, join(aliases), vpp, known.needs, known.source},
                    {{"name", known.name},
                     {"aliases", aliases},
                     {"vpp", vpp},
                     {"v_shaped", known.is_v_shaped},
                     {"splits_backward", known.splits_backward},
                     {"what", known.about},
                     {"needs", known.needs},
                     {"source", known.source}}});
  }
  return list;
}

std::vector<ListedName> list_frameworks() {
  std::vector<ListedName> list;
  for (const Framework name : kFrameworks) {
    const FrameworkTraits& known = traits(name);
    const std::vector<std::string> versions(known.versions.begin(), known.versions.end());
    list.push_back({{known.name, join(versions), known.about},
                    {{"name", known.name}, {"versions", versions}, {"what", known.about}}});
  }
  return list;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleName name : kScheduleNames) names.push_back(to_string(name));
  return names;
}

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const Framework name : kFrameworks) names.push_back(to_string(name));
  return names;
}

}  // namespace

const std::vector<NameList>& name_lists() {
  static const std::vector<NameList> lists = {
      {"models",
       "what --model takes, beside a config.json of Hugging Face",
       {"name", "parameters", "active", "layers", "source"},
       model_names,
       list_models},
      {"clusters",
       "what --cluster takes, beside a cluster file",
       {"name", "GPU", "GPUs/node", "NICs/node", "fabric", "source"},
       cluster_names,
       list_clusters},
      {"profiles",
       "what --profile takes: times of kernels and collectives",
       {"name", "GPU", "how", "date", "sources"},
       profile_names,
       list_profiles},
      {"schedules",
       "what --schedule takes, beside a CSV file",
       {"name", "aliases", "vpp", "needs", "source"},
       schedule_names,
       list_schedules},
      {"frameworks",
       "what --framework takes: whose defaults and fusions a plan has",
       {"name", "versions", "what it is"},
       framework_names,
       list_frameworks}};
  return lists;
}

}  // namespace rehearse
