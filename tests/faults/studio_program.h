// The studio as a user starts it, on a free port.
#pragma once

#include <httplib.h>

#include <string>

#include "figures.h"
#include "processes.h"
#include "scratch.h"

namespace rehearse {

class Studio {
 public:
  explicit Studio(std::vector<std::string> scenario = {"--model", "llama3-8b", "--cluster", "dgx-h100",
                                                       "--gpus", "16", "--tp", "4", "--pp", "4", "--gbs",
                                                       "32"})
      : process_(command(std::move(scenario)), {}, folder_.file("log")) {
    const Stopwatch watch;
    while (port_ == 0 && watch.seconds() < 60) {
      const std::string said = process_.said();
      const std::size_t at = said.find("http://127.0.0.1:"), end = said.find("/\n", at);
      if (at != std::string::npos && end != std::string::npos) port_ = std::atoi(said.c_str() + at + 17);
      sleep_s(0.01);
    }
  }

  int port() const { return port_; }
  Process& process() { return process_; }
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_read_timeout(60);
    return client;
  }
  // Resident memory of the process, in bytes.
  double resident_bytes() const {
    std::istringstream pages(contents("/proc/" + std::to_string(process_.id()) + "/statm"));
    double all = 0, resident = 0;
    pages >> all >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  }
  std::string said() const { return process_.said(); }

 private:
  static std::vector<std::string> command(std::vector<std::string> scenario) {
    std::vector<std::string> words = {REHEARSE, "studio", "--port", "0"};
    words.insert(words.end(), scenario.begin(), scenario.end());
    return words;
  }
  Scratch folder_;
  Process process_;
  int port_ = 0;
};

}  // namespace rehearse
