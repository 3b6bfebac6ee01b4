#include "figures.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace rehearse {

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool is_long() {
  return std::getenv("REHEARSE_HARDEN") != nullptr;
}

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

Stopwatch::Stopwatch() : begin_s_(now_s()) {}

double Stopwatch::seconds() const {
  return now_s() - begin_s_;
}

void figure(const std::string& line) {
  fmt::print("figure: {}\n", line);
  std::fflush(stdout);
}

void figure(const std::string& what, std::vector<double> seconds, double bound_s) {
  ASSERT_FALSE(seconds.empty());
  std::ranges::sort(seconds);
  figure(fmt::format("{}: {} times, {:.3f} / {:.3f} / {:.3f} s (least / median / most), bound {:g} s", what,
                     seconds.size(), seconds.front(), seconds[seconds.size() / 2], seconds.back(), bound_s));
  EXPECT_LE(seconds.back(), bound_s) << what;
}

std::string contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace rehearse
