#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "cluster/imported_node.h"
#include "cluster/link_rates.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxDevices = 1024;
constexpr int kMaxLinksOfAGpu = 18;
constexpr int kUnknownGpu = 80;  // NVLink 2 to 4, PCIe 4.0
constexpr double kCpuRate = 16e9;

// One row: a device, its connection to each device of the header, and the cores next to it ("0-31,64-95").
struct Row {
  std::string device;
  std::vector<std::string> codes;
  std::string affinity;
};

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// On a terminal the header's words are underlined: ESC [ numbers m.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t end =
        text.compare(i, 2, "\x1b[") == 0 ? text.find_first_not_of("0123456789;", i + 2) : std::string::npos;
    if (end != std::string::npos && text[end] == 'm') {
      i = end;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool is_gpu_name(std::string_view word) {
  return word.starts_with("GPU") && word.size() > 3 && std::ranges::all_of(word.substr(3), is_digit);
}

// The columns before "CPU Affinity", "NUMA Affinity" and "GPU NUMA ID": GPUs, and NICs by any name.
std::vector<std::string> devices_of(const std::vector<std::string>& header) {
  std::vector<std::string> devices;
  for (const std::string& word : header) {
    if (word == "CPU" || word == "NUMA" || word == "GPU") break;
    devices.push_back(word);
  }
  return devices;
}

// `nvidia-smi topo -p2p` prints these instead of links.
bool is_peer_status(const std::string& word) {
  constexpr std::array kStates = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
  return std::ranges::find(kStates, word) != kStates.end();
}

// "X", "NV4", "PIX", ...
bool is_code(const std::string& word) {
  if (word.starts_with("NV"))
    return (word.size() == 3 || word.size() == 4) && is_digit(word[2]) && is_digit(word.back());
  constexpr std::array kCodes = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  return std::ranges::find(kCodes, word) != kCodes.end();
}

// Disjoint sets (union-find).
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }
  std::size_t of(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[std::max(of(a), of(b))] = std::min(of(a), of(b)); }

 private:
  std::vector<std::size_t> parent_;
};

class Matrix {
 public:
  Matrix(const std::string& text, const std::string& file, const Cluster* like) : file_(file) {
    refuse_rocm(text);
    const int told = like == nullptr ? 0 : compute_capability_of(*like);
    const int sm = told > 0 ? told : kUnknownGpu;
    nvlink_ = nvlink_rate(sm);
    pcie_ = pcie_rate(sm);
    source_ = fmt::format(
        "nvidia-smi topo -m, which has no rates: {:g} GB/s each way per NVLink and {:g} GB/s for PCIe, as on "
        "{}; 16 GB/s between CPUs",
        nvlink_ * 1e-9, pcie_ * 1e-9, told > 0 ? like->gpu.name : "H100 and A100");
    assumed_ = told == 0;
    read(text);
    require_symmetry();
  }

  ImportedNode imported() const {
    ImportedNode imported;
    Node& node = imported.cluster.node;
    std::vector<std::string> names;
    for (const Row& row : rows_)
      names.push_back(is_gpu_name(row.device) ? fmt::format("gpu{}", node.gpus++)
                                              : fmt::format("nic{}", node.nics++));
    if (node.gpus == 0) fail("names no GPU");
    add_nvlinks(node, names);
    add_pcie(node, names);
    const std::vector<std::string> broken = broken_wiring(node);
    if (!broken.empty()) fail(broken.front());
    sum_gpu_links(imported);
    node.nic.bandwidth = node.nics > 0 ? pcie_ : 0;
    node.nic_of_gpu = nearest_nics(node);
    imported.cluster.gpu.name = "GPU";
    imported.cluster.source = source_;
    if (assumed_ && node.gpu_link_kind != "pcie")
      imported.notes.push_back(
          fmt::format("the matrix names no GPU: {:g} GB/s per NVLink and {:g} GB/s for PCIe are used, as on "
                      "H100 and A100; --like NAME uses those of that cluster's GPU (Blackwell: 50 GB/s)",
                      nvlink_ * 1e-9, pcie_ * 1e-9));
    return imported;
  }

 private:
  [[noreturn]] void fail(const std::string& rule, const std::string& values = "") const {
    throw InputError({file_, "", rule, values, ""});
  }

  void refuse_rocm(const std::string& text) const {
    if (text.find("ROCm System Management") == std::string::npos &&
        text.find("between two GPUs") == std::string::npos)
      return;
    throw InputError({file_, "", "is the text of `rocm-smi --showtopo`, which is not read", "",
                      "the topology that RCCL writes: NCCL_TOPO_DUMP_FILE=topo.xml"});
  }

  void read(const std::string& text) {
    std::istringstream lines(without_escapes(text));
    std::vector<std::string> header;
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> words = words_of(line);
      if (words.empty()) continue;
      if (header.empty()) {
        if (is_gpu_name(words.front()) && (words.size() == 1 || !is_code(words[1])))
          header = devices_of(words);
        require_names(header);
      } else if (words.front() == header[std::min(rows_.size(), header.size() - 1)] ||
                 is_gpu_name(words.front())) {
        if (rows_.size() == header.size()) break;
        add_row(words, header);
      }
    }
    if (header.empty()) fail("holds no matrix of `nvidia-smi topo -m`");
    if (rows_.size() != header.size())
      fail("ends before its last device", fmt::format("{} of {} rows", rows_.size(), header.size()));
  }

  void require_names(const std::vector<std::string>& header) const {
    if (header.size() > kMaxDevices) fail(fmt::format("has more than {} devices", kMaxDevices));
    std::set<std::string> names;
    for (const std::string& name : header)
      if (!names.insert(name).second) fail("names a device twice", name);
  }

  void add_row(const std::vector<std::string>& words, const std::vector<std::string>& header) {
    if (words.front() != header[rows_.size()])
      fail("must have its rows in the order of its columns",
           fmt::format("{} where {} belongs", words.front(), header[rows_.size()]));
    Row row{words.front(), {}, ""};
    if (words.size() > 1 && std::ranges::any_of(words, is_peer_status))
      throw InputError({file_, "", "is the matrix of `nvidia-smi topo -p2p`, which has no link types",
                        fmt::format("{}: {}", row.device, words.back()), "nvidia-smi topo -m > topo.txt"});
    for (std::size_t i = 1; i < words.size() && row.codes.size() < header.size(); ++i) {
      if (!is_code(words[i])) break;
      row.codes.push_back(words[i]);
    }
    if (row.codes.size() != header.size())
      fail(fmt::format("must give {} a code for each of {} devices", row.device, header.size()),
           fmt::format("{} codes", row.codes.size()));
    if (is_gpu_name(row.device) && words.size() > 1 + header.size()) row.affinity = words[1 + header.size()];
    rows_.push_back(std::move(row));
  }

  void require_symmetry() const {
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      for (std::size_t b = 0; b < rows_.size(); ++b) {
        if (rows_[a].codes[b] != rows_[b].codes[a] || (a == b) != (rows_[a].codes[b] == "X"))
          fail("must be the same from both sides",
               fmt::format("{} to {}: {}, back: {}", rows_[a].device, rows_[b].device, rows_[a].codes[b],
                           rows_[b].codes[a]));
      }
    }
  }

  static int nvlinks(const std::string& code) {
    return code.starts_with("NV") ? std::stoi(code.substr(2)) : 0;
  }

  // A GPU whose pairs list more links than it has is connected through a switch.
  void add_nvlinks(Node& node, const std::vector<std::string>& names) const {
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      int sum = 0, most = 0;
      for (const std::string& code : rows_[a].codes) {
        sum += nvlinks(code);
        most = std::max(most, nvlinks(code));
      }
      if (sum > kMaxLinksOfAGpu) {
        node.wiring.push_back({names[a], "nvswitch", "nvlink", most * nvlink_});
        continue;
      }
      for (std::size_t b = a + 1; b < rows_.size(); ++b) {
        if (const int links = nvlinks(rows_[a].codes[b]); links > 0)
          node.wiring.push_back({names[a], names[b], "nvlink", links * nvlink_});
      }
    }
  }

  // PIX and PXB: below one switch; PHB and NODE: on one CPU. NVLink hides the PCIe position of GPUs; their
  // NICs show it.
  void add_pcie(Node& node, const std::vector<std::string>& names) const {
    Sets switches(rows_.size()), cpus(rows_.size());
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const std::string& code = rows_[a].codes[b];
        const bool near = code == "PIX" || code == "PXB";
        if (near) switches.join(a, b);
        if (near || code == "PHB" || code == "NODE") cpus.join(a, b);
      }
    }
    join_by_affinity(cpus);
    std::vector<std::string> roots;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::string at = fmt::format("pci{}", switches.of(i)), cpu = fmt::format("cpu{}", cpus.of(i));
      if (switches.of(i) == i) node.wiring.push_back({cpu, at, "pcie", pcie_});
      node.wiring.push_back({at, names[i], "pcie", pcie_});
      if (cpus.of(i) == i) roots.push_back(cpu);
    }
    for (std::size_t i = 1; i < roots.size(); ++i)
      node.wiring.push_back({roots.front(), roots[i], "cpu", kCpuRate});
  }

  // GPUs next to the same cores are on one CPU, unless a code contradicts: SYS leads to another CPU.
  void join_by_affinity(Sets& cpus) const {
    const Sets by_code = cpus;
    const auto pair_of = [&](std::size_t a, std::size_t b) {
      return std::minmax({by_code.of(a), by_code.of(b)});
    };
    std::set<std::pair<std::size_t, std::size_t>> apart;
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b)
        if (rows_[a].codes[b] == "SYS" || rows_[a].codes[b] == "SOC") apart.insert(pair_of(a, b));
    }
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool same = !rows_[a].affinity.empty() && rows_[a].affinity == rows_[b].affinity;
        if (same && !apart.contains(pair_of(a, b))) cpus.join(a, b);
      }
    }
  }

  const std::string& file_;
  std::vector<Row> rows_;
  double nvlink_ = 0, pcie_ = 0;
  std::string source_;
  bool assumed_ = false;
};

}  // namespace

ImportedNode import_smi(const std::string& text, const std::string& file, const Cluster* like) {
  return Matrix(text, file, like).imported();
}

}  // namespace rehearse
