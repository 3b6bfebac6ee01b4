// Which files did an answer come from, and would it come out the same today?
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rehearse {

// Of a text: 64 bits as 16 hexadecimal digits, FNV-1a over words of 8 bytes, whose halves are mixed.
std::string digest(const std::string& text);

// Of the executable that runs: another build has another one.
const std::string& program_digest();

// By name, the digest of what was read. A file that ships with the program is "data:topologies/x.json"
// wherever the data lies; a folder that was listed has its names; what could not be read has "none".
using FileDigests = std::map<std::string, std::string>;

// While it lives, it notes what this thread reads; an outer one notes it too.
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

// Whoever reads tells the records of its thread; whoever keeps what came of reading tells again when it gives
// that away.
void note_read(const std::string& path, const std::string& text);
void note_unread(const std::string& path);
void note_listed(const std::string& folder, const std::vector<std::string>& names);
void note_read(const FileDigests& files);

// What a record would hold of that name now. A stream that this process has not read has "none".
std::string digest_now(const std::string& name);

}  // namespace rehearse
