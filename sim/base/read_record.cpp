#include "base/read_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/data_path.h"
#include "base/error.h"
#include "base/text_file.h"

namespace rehearse {

namespace {

constexpr const char* kNone = "none";
constexpr std::string_view kData = "data:";

thread_local ReadRecord* innermost = nullptr;

std::string name_of(const std::string& path) {
  const std::string data = data_directory().string() + "/";
  return path.starts_with(data) ? std::string(kData) + path.substr(data.size()) : path;
}

std::string digest_of_names(const std::vector<std::string>& names) {
  return digest(join(names, "\n"));
}

}  // namespace

std::string digest(const std::string& text) {
  constexpr std::uint64_t kBasis = 14695981039346656037u, kPrime = 1099511628211u;
  const auto mixed = [](std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * kPrime;
    return hash ^ (hash >> 32);  // a difference in the last byte of a word would stay there
  };
  std::uint64_t hash = kBasis;
  for (std::size_t at = 0; at < text.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
    hash = mixed(hash, word);
  }
  return fmt::format("{:016x}", mixed(hash, text.size()));
}

const std::string& program_digest() {
  static const std::string own = [] {
    std::ifstream in("/proc/self/exe", std::ios::binary);
    std::stringstream contents;
    contents << in.rdbuf();
    return digest(contents.str());
  }();
  return own;
}

ReadRecord::ReadRecord() : outer_(innermost) {
  innermost = this;
}

ReadRecord::~ReadRecord() {
  innermost = outer_;
}

void note_read(const FileDigests& files) {
  for (ReadRecord* record = innermost; record != nullptr; record = record->outer_)
    record->files_.insert(files.begin(), files.end());
}

void note_read(const std::string& path, const std::string& text) {
  if (innermost != nullptr) note_read(FileDigests{{name_of(path), digest(text)}});
}

void note_unread(const std::string& path) {
  if (innermost != nullptr) note_read(FileDigests{{name_of(path), kNone}});
}

void note_listed(const std::string& folder, const std::vector<std::string>& names) {
  if (innermost != nullptr) note_read(FileDigests{{name_of(folder), digest_of_names(names)}});
}

std::string digest_now(const std::string& name) {
  const bool ships = name.starts_with(kData);
  const std::string path = ships ? (data_directory() / name.substr(kData.size())).string() : name;
  if (is_stream(path) && !was_streamed(path)) return kNone;
  std::error_code error;
  if (ships && std::filesystem::is_directory(path, error))
    return digest_of_names(data_names(name.substr(kData.size())));
  try {
    return digest(read_text_file(path));
  } catch (const InputError&) {
    return kNone;
  }
}

}  // namespace rehearse
