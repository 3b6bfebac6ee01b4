// Which files did an answer use, and are they unchanged?
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rehearse {

// Digest of a text: 64 bits as 16 hexadecimal digits, FNV-1a over words of 8 bytes, whose halves are mixed.
std::string digest(const std::string& text);

// Digest of the running executable: another build has another one.
const std::string& program_digest();

// Digests by name. A file that ships with the program is "data:topologies/x.json" wherever the data is
// installed. A listed folder has the digest of its names; an unreadable file has "none".
using FileDigests = std::map<std::string, std::string>;

// During its lifetime, it records the files that this thread reads; an outer record does too.
class ReadRecord {
 public:
  ReadRecord();
  ~ReadRecord();
  ReadRecord(const ReadRecord&) = delete;
  ReadRecord& operator=(const ReadRecord&) = delete;

  const FileDigests& files() const { return files_; }

 private:
  friend void note_read(const FileDigests& files);
  FileDigests files_;
  ReadRecord* outer_;
};

// Readers call these for the records of their thread. A cache of read values calls them again when it returns
// a value.
void note_read(const std::string& path, const std::string& text);
void note_unread(const std::string& path);
void note_listed(const std::string& folder, const std::vector<std::string>& names);
void note_read(const FileDigests& files);

// The current digest for that name, as in a record. A stream that this process has not read has "none".
std::string digest_now(const std::string& name);

}  // namespace rehearse
