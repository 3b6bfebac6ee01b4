#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "base/error.h"
#include "cluster/import.h"

namespace rehearse {

namespace {

constexpr int kMostDevices = 1024;
constexpr std::size_t kMostCpus = 64, kMostPci = 8192;
constexpr int kDeepest = 32;
constexpr const char* kNvSwitchClass = "0x068000";

// Bytes/s of one NVLink each way by compute capability; NVLink 1 to 5.
double nvlink_rate(int sm) {
  if (sm >= 100) return 50e9;
  if (sm == 86) return 14.0625e9;
  return sm >= 70 ? 25e9 : 20e9;
}

// Between two CPUs, as NCCL takes it (graph/topo.h: SKL_QPI_BW, AMD_BW, P9_BW, QPI_BW).
double cpu_rate(const std::string& arch, const std::string& vendor) {
  if (vendor == "AuthenticAMD") return 16e9;
  if (vendor == "GenuineIntel") return 10e9;
  return arch == "ppc64" ? 32e9 : 6e9;
}

class Reading {
 public:
  explicit Reading(const std::string& file) : file_(file) {}

  Cluster read(const std::string& xml) {
    pugi::xml_document document;
    const pugi::xml_parse_result result = document.load_buffer(xml.data(), xml.size());
    if (!result) fail(fmt::format("is no XML: {} at byte {}", result.description(), result.offset));
    const pugi::xml_node system = document.child("system");
    if (!system) fail("has no <system>");
    for (const pugi::xml_node cpu : system.children("cpu")) add_cpu(cpu);
    join_cpus();
    join_nvlinks();
    finish();
    return std::move(cluster_);
  }

 private:
  [[noreturn]] void fail(const std::string& rule, const std::string& values = "") const {
    throw InputError({file_, "", rule, values, ""});
  }

  void link(const std::string& a, const std::string& b, const std::string& kind, double bandwidth) {
    if (!(bandwidth > 0 && bandwidth < 1e13))
      fail(fmt::format("gives the link from {} to {} no bandwidth", a, b),
           fmt::format("{:g} B/s", bandwidth));
    cluster_.node.wiring.push_back({a, b, kind, bandwidth});
  }

  void add_cpu(const pugi::xml_node& cpu) {
    if (cpus_.size() == kMostCpus) fail(fmt::format("has more than {} CPUs", kMostCpus));
    const std::string name = fmt::format("cpu{}", cpus_.size());
    cpus_.push_back(name);
    cpu_rate_ = cpu_rate(cpu.attribute("arch").value(), cpu.attribute("vendor").value());
    for (const pugi::xml_node pci : cpu.children("pci")) add_pci(pci, name, 0);
    for (const pugi::xml_node nic : cpu.children("nic")) add_nets(nic, name, 10e9);
  }

  // Lane rates of PCIe 1 to 6 in units of NCCL's table: 15, 30, ... of 80 parts of a GB/s.
  double pci_rate(const pugi::xml_node& pci) const {
    constexpr std::array<std::pair<double, double>, 6> rates = {
        {{2.5, 15}, {5, 30}, {8, 60}, {16, 120}, {32, 240}, {64, 480}}};
    const double speed = pci.attribute("link_speed").as_double();
    for (const auto& [transfers, parts] : rates) {
      if (speed == transfers) return pci.attribute("link_width").as_int() * parts / 80 * 1e9;
    }
    fail("has a PCIe speed of no generation",
         fmt::format("link_speed = \"{}\"", pci.attribute("link_speed").value()));
  }

  void add_pci(const pugi::xml_node& pci, const std::string& parent, int depth) {
    if (depth > kDeepest) fail(fmt::format("nests PCI devices deeper than {}", kDeepest));
    const std::string busid = pci.attribute("busid").value();
    if (!busids_.insert(busid).second) fail("names a PCI device twice", busid);
    if (busids_.size() > kMostPci) fail(fmt::format("has more than {} PCI devices", kMostPci));
    const pugi::xml_node gpu = pci.child("gpu");
    const double rate = pci_rate(pci);
    if (gpu) {
      const std::string name = fmt::format("gpu{}", gpus_.size());
      if (gpus_.size() == kMostDevices) fail(fmt::format("has more than {} GPUs", kMostDevices));
      gpus_.emplace_back(busid, gpu);
      gpu_at_[busid] = name;
      link(parent, name, "pcie", rate);
      return;
    }
    if (const pugi::xml_node nic = pci.child("nic")) return add_nets(nic, parent, rate);
    const std::string name = fmt::format("pci{}", busids_.size() - 1);
    link(parent, name, "pcie", rate);
    for (const pugi::xml_node below : pci.children("pci")) add_pci(below, name, depth + 1);
  }

  // NCCL takes 10 Gb/s where a network card tells no speed.
  void add_nets(const pugi::xml_node& nic, const std::string& parent, double rate) {
    Node& node = cluster_.node;
    for (const pugi::xml_node net : nic.children("net")) {
      const double megabits = net.attribute("speed").as_double(10'000);
      if (!(megabits > 0 && megabits < 1e8))
        fail("has a network card without speed", net.attribute("name").value());
      if (node.nics == kMostDevices) fail(fmt::format("has more than {} network cards", kMostDevices));
      link(parent, fmt::format("nic{}", node.nics++), "pcie", rate);
      if (node.nic.bandwidth > 0 && node.nic.bandwidth != megabits * 1e6 / 8)
        fail("has network cards of different speeds, which a node here cannot have",
             fmt::format("{:g} and {:g} B/s", node.nic.bandwidth, megabits * 1e6 / 8));
      node.nic.bandwidth = megabits * 1e6 / 8;
    }
  }

  void join_cpus() {
    for (std::size_t a = 0; a < cpus_.size(); ++a) {
      for (std::size_t b = a + 1; b < cpus_.size(); ++b) link(cpus_[a], cpus_[b], "cpu", cpu_rate_);
    }
  }

  // Each pair is told from both sides, once from each.
  void join_nvlinks() {
    std::map<std::pair<std::string, std::string>, double> pairs;
    for (const auto& [busid, gpu] : gpus_) {
      const double rate = nvlink_rate(gpu.attribute("sm").as_int());
      for (const pugi::xml_node nvlink : gpu.children("nvlink")) {
        const bool to_switch = std::strcmp(nvlink.attribute("tclass").value(), kNvSwitchClass) == 0;
        const std::string target = nvlink.attribute("target").value();
        const auto other = gpu_at_.find(target);
        if (!to_switch && other == gpu_at_.end()) continue;  // to a CPU or a device that is not listed
        const double bandwidth = nvlink.attribute("count").as_int() * rate;
        if (to_switch) {
          pairs[{gpu_at_.at(busid), "nvswitch"}] += bandwidth;
        } else if (other->second != gpu_at_.at(busid)) {
          pairs[std::minmax(gpu_at_.at(busid), other->second)] = bandwidth;
        }
      }
    }
    for (const auto& [ends, bandwidth] : pairs) link(ends.first, ends.second, "nvlink", bandwidth);
  }

  void finish() {
    Node& node = cluster_.node;
    node.gpus = static_cast<int>(gpus_.size());
    if (node.gpus == 0) fail("names no GPU");
    const std::vector<std::string> broken = broken_wiring(node);
    if (!broken.empty()) fail(broken.front());
    sum_gpu_links(node);
    node.nic_kind = node.nics > 0 ? "network" : "";
    node.nic_of_gpu = nearest_nics(node);
    cluster_.gpu.name = fmt::format("GPU of sm {}", gpus_.front().second.attribute("sm").value());
    cluster_.source = "NCCL topology dump; rates: lanes times PCIe generation, wire rates of NVLink";
  }

  const std::string& file_;
  Cluster cluster_;
  std::vector<std::string> cpus_;
  double cpu_rate_ = 0;
  std::set<std::string> busids_;
  std::vector<std::pair<std::string, pugi::xml_node>> gpus_;
  std::map<std::string, std::string> gpu_at_;
};

}  // namespace

Cluster import_nccl(const std::string& xml, const std::string& file) {
  return Reading(file).read(xml);
}

}  // namespace rehearse
