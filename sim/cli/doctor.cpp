#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "base/data_path.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "base/quantity.h"
#include "base/say.h"
#include "cli/verbs.h"
#include "cluster/cluster.h"
#include "cost/profile.h"
#include "model/read.h"
#include "plan/kernel_types.h"

namespace rehearse {

namespace {

// A shared library that may be missing. The driver and NCCL are looked up on the running machine, not on the
// build machine.
class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  template <typename Function>
  Function* find(const char* symbol) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, symbol));
  }

 private:
  void* handle_;
};

void line(bool good, const std::string& what, const std::string& found) {
  say("  [{}] {:<10} {}\n", good ? "ok" : "--", what, found);
}

void report_gpus() {
  const Library driver("libcuda.so.1");
  const auto init = driver.find<int(unsigned)>("cuInit");
  const auto version = driver.find<int(int*)>("cuDriverGetVersion");
  const auto count = driver.find<int(int*)>("cuDeviceGetCount");
  const auto name = driver.find<int(char*, int, int)>("cuDeviceGetName");
  if (init == nullptr || version == nullptr || count == nullptr || name == nullptr) {
    return line(false, "CUDA", "no driver: simulation works, execution on GPUs does not");
  }
  int devices = 0, api = 0;
  version(&api);
  if (const int error = init(0); error != 0) {
    return line(
        false, "CUDA",
        fmt::format("driver for CUDA {}.{} does not start (error {})", api / 1000, api % 1000 / 10, error));
  }
  count(&devices);
  line(devices > 0, "CUDA",
       fmt::format("driver for CUDA {}.{}, {} GPUs", api / 1000, api % 1000 / 10, devices));
  for (int device = 0; device < devices; ++device) {
    char text[128] = {};
    if (name(text, sizeof text - 1, device) == 0) line(true, fmt::format("GPU {}", device), text);
  }
}

void report_nccl() {
  const Library nccl("libnccl.so.2");
  const auto get_version = nccl.find<int(int*)>("ncclGetVersion");
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return line(false, "NCCL", "not found");
  line(true, "NCCL", fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100));
}

void report_machine() {
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  line(true, "machine",
       fmt::format("{} cores, {}", std::thread::hardware_concurrency(), format_bytes(memory)));
}

// True when everything that simulation needs was found.
bool report_data() {
  const bool found = !cluster_names().empty() && !profile_names().empty() && !model_names().empty();
  line(found, "data",
       fmt::format("{}: {} topologies, {} models, {} profiles (`rehearse list` names them)",
                   data_directory().string(), cluster_names().size(), model_names().size(),
                   profile_names().size()));
  return found;
}

void print_kernels() {
  constexpr const char* kRow = "{:<28} {:<7} {:<6} {:<9} {}\n";
  const auto word = [](bool yes) { return yes ? "yes" : "no"; };
  say(kRow, "type", "priced", "timed", "executed", "stream of a profile");
  for (const KernelSupport& each : all_kernel_support())
    say(kRow, each.type, word(each.priced), each.imported ? "import" : word(each.timed), word(each.executed),
        each.stream.empty() ? "-" : each.stream);
  say("priced: by simulate. timed: by calibrate. executed: by execute.\n"
      "import: a profile has samples of other programs only.\n");
}

void print_kernels_as_json() {
  Json all = Json::array();
  for (const KernelSupport& each : all_kernel_support()) {
    Json row = {{"type", each.type},
                {"priced", each.priced},
                {"timed", each.timed},
                {"executed", each.executed},
                {"imported", each.imported}};
    if (!each.stream.empty()) row["stream"] = each.stream;
    all.push_back(std::move(row));
  }
  fmt::print("{}\n", all.dump(2));
}

struct DoctorOptions {
  bool kernels = false, json = false;
};

}  // namespace

Verb doctor_verb() {
  const auto options = std::make_shared<DoctorOptions>();
  Verb verb{"doctor", "check the machine: cores, GPUs, libraries and data"};
  verb.add(
      {{"--kernels"}, &options->kernels, "list the types of kernels: which are priced, timed and executed"});
  verb.add({.names = {"--json"},
            .target = &options->json,
            .help = "with --kernels: print an array of objects",
            .needs = "--kernels"});
  verb.footer = "Examples:\n  rehearse doctor\n  rehearse doctor --kernels";
  verb.run = [options] {
    if (options->kernels) {
      options->json ? print_kernels_as_json() : print_kernels();
      return kDone;
    }
    say("{}\n", version_line());
    const bool complete = report_data();
    report_machine();
    report_gpus();
    report_nccl();
    return complete ? kDone : kMissing;
  };
  return verb;
}

}  // namespace rehearse
