#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "base/bounds.h"
#include "base/error.h"
#include "base/parse_work.h"
#include "cluster/imported_node.h"
#include "cluster/link_rates.h"

namespace rehearse {

namespace {

constexpr int kMaxDevices = 1024;
constexpr std::size_t kMaxCpus = 64, kMaxPci = 8192;
constexpr const char* kNvSwitchClass = "0x068000";

// Rate between two CPUs, as in NCCL (graph/topo.h: SKL_QPI_BW, AMD_BW, P9_BW, QPI_BW).
double cpu_rate(const std::string& arch, const std::string& vendor) {
  if (vendor == "AuthenticAMD") return 16e9;
  if (vendor == "GenuineIntel") return 10e9;
  return arch == "ppc64" ? 32e9 : 6e9;
}

class TopologyReader {
 public:
  explicit TopologyReader(const std::string& file) : file_(file) {}

  ImportedNode read(const std::string& xml) {
    pugi::xml_document document;
    const pugi::xml_parse_result result = document.load_buffer(xml.data(), xml.size());
    if (!result) fail(fmt::format("is no XML: {} at byte {}", result.description(), result.offset));
    const pugi::xml_node system = document.child("system");
    if (!system) fail("has no <system>");
    has_gpus_ = !system.select_node(".//gpu").node().empty();
    has_nets_ = !system.select_node(".//net").node().empty();
    for (const pugi::xml_node cpu : system.children("cpu")) add_cpu(cpu);
    join_cpus();
    join_gpus("nvlink");
    join_gpus("xgmi");
    finish();
    return std::move(imported_);
  }

 private:
  [[noreturn]] void fail(const std::string& rule, const std::string& values = "") const {
    throw InputError({file_, "", rule, values, ""});
  }

  void link(const std::string& a, const std::string& b, const std::string& kind, double bandwidth) {
    if (!physical::kBandwidth.hold(bandwidth))
      fail(fmt::format("gives the link from {} to {} a bandwidth that is not {}", a, b,
                       to_string(physical::kBandwidth)),
           fmt::format("{:g} B/s", bandwidth));
    imported_.cluster.node.wiring.push_back({a, b, kind, bandwidth});
  }

  void add_cpu(const pugi::xml_node& cpu) {
    if (cpus_.size() == kMaxCpus) fail(fmt::format("has more than {} CPUs", kMaxCpus));
    const std::string name = fmt::format("cpu{}", cpus_.size());
    cpus_.push_back(name);
    cpu_rate_ = cpu_rate(cpu.attribute("arch").value(), cpu.attribute("vendor").value());
    for (const pugi::xml_node pci : cpu.children("pci")) add_pci(pci, name, 0);
    for (const pugi::xml_node nic : cpu.children("nic")) add_nets(nic, name, 10e9);
  }

  // Lane rates of PCIe 1 to 6 in units of NCCL's table: 15, 30, ... of 80 parts of a GB/s. Where the kernel
  // reported none, NCCL assumes 60 and 16 lanes (graph/topo.cc: kvDictPciGen, ncclTopoAddPci).
  double pci_rate(const pugi::xml_node& pci) {
    constexpr std::array<std::pair<double, double>, 6> rates = {
        {{2.5, 15}, {5, 30}, {8, 60}, {16, 120}, {32, 240}, {64, 480}}};
    const std::string text = pci.attribute("link_speed").value();
    const bool told = text.find_first_of("0123456789") != std::string::npos;
    const double speed = told ? pci.attribute("link_speed").as_double() : 8;
    const int width = pci.attribute("link_width").as_int();
    if (!told || width == 0) ++without_speed_;
    for (const auto& [transfers, parts] : rates) {
      if (speed == transfers) return (width == 0 ? 16 : width) * parts / 80 * 1e9;
    }
    fail("has a PCIe speed of no generation", fmt::format("link_speed = \"{}\"", text));
  }

  void add_pci(const pugi::xml_node& pci, const std::string& parent, int depth) {
    ParseWork(file_).require_depth(depth);
    const std::string busid = pci.attribute("busid").value();
    if (!busids_.insert(busid).second) fail("names a PCI device twice", busid);
    if (busids_.size() > kMaxPci) fail(fmt::format("has more than {} PCI devices", kMaxPci));
    const pugi::xml_node gpu = pci.child("gpu");
    const double rate = pci_rate(pci);
    if (gpu || stands_for_gpu(pci)) {
      const std::string name = fmt::format("gpu{}", gpus_.size());
      if (gpus_.size() == kMaxDevices) fail(fmt::format("has more than {} GPUs", kMaxDevices));
      gpus_.emplace_back(busid, gpu);
      gpu_at_[busid] = name;
      link(parent, name, "pcie", rate);
      return;
    }
    if (const pugi::xml_node nic = pci.child("nic")) return add_nets(nic, parent, rate);
    if (stands_for_nic(pci)) return add_nic(parent, rate);
    const std::string name = fmt::format("pci{}", busids_.size() - 1);
    link(parent, name, "pcie", rate);
    for (const pugi::xml_node below : pci.children("pci")) add_pci(below, name, depth + 1);
  }

  // GPUs by PCI class, as in NCCL's kvDictPciClass and RCCL's. The graphics of a board's management
  // controller (ASPEED, Matrox) does not count.
  bool stands_for_gpu(const pugi::xml_node& pci) const {
    const std::string of_class = pci.attribute("class").value(), vendor = pci.attribute("vendor").value();
    const bool is_gpu = of_class.starts_with("0x03") || of_class.starts_with("0x12");
    return !has_gpus_ && is_gpu && !pci.child("pci") && vendor != "0x1a03" && vendor != "0x102b";
  }

  bool stands_for_nic(const pugi::xml_node& pci) const {
    const std::string of_class = pci.attribute("class").value();
    return !has_nets_ && of_class.starts_with("0x02") && !pci.child("pci");
  }

  void add_nic(const std::string& parent, double rate) {
    Node& node = imported_.cluster.node;
    if (node.nics == kMaxDevices) fail(fmt::format("has more than {} network cards", kMaxDevices));
    link(parent, fmt::format("nic{}", node.nics++), "pcie", rate);
    if (!has_nets_) node.nic.bandwidth = rate;  // at most the rate of its slot
  }

  // NCCL assumes 10 Gb/s where a network card reports no speed.
  void add_nets(const pugi::xml_node& nic, const std::string& parent, double rate) {
    Node& node = imported_.cluster.node;
    for (const pugi::xml_node net : nic.children("net")) {
      const double megabits = net.attribute("speed").as_double(10'000);
      if (!physical::kBandwidth.hold(megabits * 1e6 / 8))
        fail(fmt::format("has a network card whose speed is not {}", to_string(physical::kBandwidth)),
             fmt::format("{} of {:g} Mb/s", net.attribute("name").value(), megabits));
      add_nic(parent, rate);
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

  double link_rate(const pugi::xml_node& gpu, const std::string& kind) {
    if (kind == "nvlink") return nvlink_rate(gpu.attribute("sm").as_int());
    const std::string architecture = gpu.attribute("gcn").value();
    const double rate = xgmi_rate(architecture);
    if (rate == 0)
      fail("has links between GPUs of an architecture that is not known",
           fmt::format("gcn = \"{}\"", architecture));
    return rate;
  }

  // Each pair is listed twice, once from each side.
  void join_gpus(const std::string& kind) {
    std::map<std::pair<std::string, std::string>, double> pairs;
    for (const auto& [busid, gpu] : gpus_) {
      for (const pugi::xml_node each : gpu.children(kind.c_str())) {
        const bool to_switch = std::strcmp(each.attribute("tclass").value(), kNvSwitchClass) == 0;
        const std::string target = each.attribute("target").value();
        const auto other = gpu_at_.find(target);
        if (!to_switch && (other == gpu_at_.end() || other->second == gpu_at_.at(busid))) {
          ++without_end_;  // to a CPU, to itself or to a device that is not listed
          continue;
        }
        const double bandwidth = each.attribute("count").as_int() * link_rate(gpu, kind);
        if (to_switch) {
          pairs[{gpu_at_.at(busid), "nvswitch"}] += bandwidth;
        } else {
          pairs[std::minmax(gpu_at_.at(busid), other->second)] = bandwidth;
        }
      }
    }
    for (const auto& [ends, bandwidth] : pairs) link(ends.first, ends.second, kind, bandwidth);
  }

  std::string gpu_name() const {
    const pugi::xml_node gpu = gpus_.front().second;
    if (!gpu) return "GPU";
    if (const char* const architecture = gpu.attribute("gcn").value(); *architecture != 0)
      return fmt::format("GPU of {}", architecture);
    return fmt::format("GPU of sm {}", gpu.attribute("sm").value());
  }

  void finish() {
    Node& node = imported_.cluster.node;
    node.gpus = static_cast<int>(gpus_.size());
    if (node.gpus == 0) fail("names no GPU");
    const std::vector<std::string> broken = broken_wiring(node);
    if (!broken.empty()) fail(broken.front());
    sum_gpu_links(imported_);
    node.nic_kind = node.nics > 0 ? "network" : "";
    node.nic_of_gpu = nearest_nics(node);
    imported_.cluster.gpu.name = gpu_name();
    imported_.cluster.source =
        "NCCL topology dump; rates: lanes times PCIe generation, wire rates of NVLink and Infinity Fabric";
    note_defaults();
  }

  void note_defaults() {
    std::vector<std::string>& notes = imported_.notes;
    const Node& node = imported_.cluster.node;
    imported_.tells_gpu_links = has_gpus_;
    imported_.tells_nic_rate = has_nets_;
    if (without_speed_ > 0)
      notes.push_back(fmt::format(
          "{} PCI devices have no speed or width: 8 GT/s (PCIe 3.0) and 16 lanes are used, as in NCCL",
          without_speed_));
    if (without_end_ > 0)
      notes.push_back(
          fmt::format("{} links that lead to no other GPU of the file are ignored", without_end_));
    if (!has_gpus_)
      notes.push_back(
          fmt::format("the file has no <gpu> elements, which NCCL adds when it runs: its {} PCI devices of "
                      "class 0x03 and 0x12 are read as GPUs; links between them come from --like",
                      node.gpus));
    if (!has_nets_ && node.nics > 0)
      notes.push_back(
          fmt::format("the file has no <net> elements: its {} PCI devices of class 0x02 are read as NICs; "
                      "their rate comes from --like",
                      node.nics));
  }

  const std::string& file_;
  ImportedNode imported_;
  bool has_gpus_ = false, has_nets_ = false;
  int without_speed_ = 0, without_end_ = 0;
  std::vector<std::string> cpus_;
  double cpu_rate_ = 0;
  std::set<std::string> busids_;
  std::vector<std::pair<std::string, pugi::xml_node>> gpus_;
  std::map<std::string, std::string> gpu_at_;
};

}  // namespace

ImportedNode import_nccl(const std::string& xml, const std::string& file) {
  return TopologyReader(file).read(xml);
}

}  // namespace rehearse
