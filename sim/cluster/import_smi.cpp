#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "cluster/import.h"

namespace rehearse {

namespace {

constexpr std::size_t kMostDevices = 1024;
constexpr int kMostLinksOfAGpu = 18;
constexpr double kNvlinkRate = 25e9, kPcieRate = 31.5e9, kCpuRate = 16e9;

// One row: a device and how it reaches each device of the header.
struct Row {
  std::string device;
  std::vector<std::string> codes;
};

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// The header underlines its words on a terminal: ESC [ numbers m.
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

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

// "GPU0", "NIC3", "bnxt_re1", "efa_0", "mlx5_0", "rdmap16s27"
bool is_device(std::string_view word) {
  for (const std::string_view name : {"GPU", "NIC", "bnxt_re", "efa_"})
    if (word.starts_with(name)) return is_number(word.substr(name.size()));
  if (word.starts_with("mlx")) {
    const std::string_view rest = word.substr(3);
    const std::size_t bar = std::min(rest.find('_'), rest.size());
    return bar < rest.size() && is_number(rest.substr(0, bar)) && is_number(rest.substr(bar + 1));
  }
  const auto of_place = [](char letter) { return is_digit(letter) || (letter >= 'a' && letter <= 'z'); };
  return word.starts_with("rdmap") && word.size() > 5 && std::ranges::all_of(word.substr(5), of_place);
}

// "X", "NV4", "PIX", ...
bool is_code(const std::string& word) {
  if (word.starts_with("NV"))
    return (word.size() == 3 || word.size() == 4) && is_digit(word[2]) && is_digit(word.back());
  constexpr std::array kCodes = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  return std::ranges::find(kCodes, word) != kCodes.end();
}

// Sets that are joined step by step.
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
  Matrix(const std::string& text, const std::string& file) : file_(file) {
    std::istringstream lines(without_escapes(text));
    std::vector<std::string> header;
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> words = words_of(line);
      if (words.empty() || !is_device(words.front())) continue;
      if (header.empty()) {
        std::copy_if(words.begin(), words.end(), std::back_inserter(header), is_device);
        if (header.size() > kMostDevices) fail(fmt::format("has more than {} devices", kMostDevices));
        continue;
      }
      if (rows_.size() == header.size()) break;
      add_row(words, header);
    }
    if (header.empty()) fail("holds no matrix of `nvidia-smi topo -m`");
    if (rows_.size() != header.size())
      fail("ends before its last device", fmt::format("{} of {} rows", rows_.size(), header.size()));
    require_symmetry();
  }

  Cluster cluster() const {
    Cluster cluster;
    Node& node = cluster.node;
    std::vector<std::string> names;
    for (const Row& row : rows_) {
      const bool gpu = row.device.starts_with("GPU");
      names.push_back(gpu ? fmt::format("gpu{}", node.gpus++) : fmt::format("nic{}", node.nics++));
    }
    if (node.gpus == 0) fail("names no GPU");
    add_nvlinks(node, names);
    add_pcie(node, names);
    const std::vector<std::string> broken = broken_wiring(node);
    if (!broken.empty()) fail(broken.front());
    sum_gpu_links(node);
    node.nic.bandwidth = node.nics > 0 ? kPcieRate : 0;
    node.nic_of_gpu = nearest_nics(node);
    cluster.gpu.name = "GPU";
    cluster.source =
        "nvidia-smi topo -m, which tells no rates: NVLinks taken as 25 GB/s each way, PCIe and NICs as 31.5 "
        "GB/s "
        "(4.0 x16), between CPUs 16 GB/s";
    return cluster;
  }

 private:
  [[noreturn]] void fail(const std::string& rule, const std::string& values = "") const {
    throw InputError({file_, "", rule, values, ""});
  }

  void add_row(const std::vector<std::string>& words, const std::vector<std::string>& header) {
    if (words.front() != header[rows_.size()])
      fail("must have its rows in the order of its columns",
           fmt::format("{} where {} belongs", words.front(), header[rows_.size()]));
    Row row{words.front(), {}};
    for (std::size_t i = 1; i < words.size() && row.codes.size() < header.size(); ++i) {
      if (!is_code(words[i])) break;
      row.codes.push_back(words[i]);
    }
    if (row.codes.size() != header.size())
      fail(fmt::format("must give {} a code for each of {} devices", row.device, header.size()),
           fmt::format("{} codes", row.codes.size()));
    rows_.push_back(std::move(row));
  }

  void require_symmetry() const {
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      for (std::size_t b = 0; b < rows_.size(); ++b) {
        if (rows_[a].codes[b] != rows_[b].codes[a] || (a == b) != (rows_[a].codes[b] == "X"))
          fail("must say the same from both sides",
               fmt::format("{} to {}: {}, back: {}", rows_[a].device, rows_[b].device, rows_[a].codes[b],
                           rows_[b].codes[a]));
      }
    }
  }

  static int nvlinks(const std::string& code) {
    return code.starts_with("NV") ? std::stoi(code.substr(2)) : 0;
  }

  // More links than a GPU has, counted over its pairs, lead through a switch.
  void add_nvlinks(Node& node, const std::vector<std::string>& names) const {
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      int sum = 0, most = 0;
      for (const std::string& code : rows_[a].codes) {
        sum += nvlinks(code);
        most = std::max(most, nvlinks(code));
      }
      if (sum > kMostLinksOfAGpu) {
        node.wiring.push_back({names[a], "nvswitch", "nvlink", most * kNvlinkRate});
        continue;
      }
      for (std::size_t b = a + 1; b < rows_.size(); ++b) {
        if (const int links = nvlinks(rows_[a].codes[b]); links > 0)
          node.wiring.push_back({names[a], names[b], "nvlink", links * kNvlinkRate});
      }
    }
  }

  // PIX and PXB: below one switch; PHB and NODE: of one CPU. What NVLink hides of GPUs shows in their NICs.
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
    std::vector<std::string> roots;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::string at = fmt::format("pci{}", switches.of(i)), cpu = fmt::format("cpu{}", cpus.of(i));
      if (switches.of(i) == i) node.wiring.push_back({cpu, at, "pcie", kPcieRate});
      node.wiring.push_back({at, names[i], "pcie", kPcieRate});
      if (cpus.of(i) == i) roots.push_back(cpu);
    }
    for (std::size_t i = 1; i < roots.size(); ++i)
      node.wiring.push_back({roots.front(), roots[i], "cpu", kCpuRate});
  }

  const std::string& file_;
  std::vector<Row> rows_;
};

}  // namespace

Cluster import_smi(const std::string& text, const std::string& file) {
  return Matrix(text, file).cluster();
}

}  // namespace rehearse
