// Which part of a log's line did nccl-tests print, and which part its launcher or NCCL itself?
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::nccl {

// What launchers put before each line: "12: " (srun -l), "[1,0]<stdout>:" (mpirun --tag-output), "[0] "
// (MPICH),
// "[pod/name/container] " (kubectl), timestamps. A prefix is learnt from the tables' headers: the text before
// "# size count". It fits any line that differs from it in numbers and in spaces alone.
class LinePrefixes {
 public:
  explicit LinePrefixes(std::string_view log);

  // Without the prefix. A row also loses the prefixes inside of it: MPICH writes one before each piece.
  std::string without(std::string_view line) const;

 private:
  std::vector<std::string> prefixes_;
};

// Cuts what NCCL_DEBUG printed ("host:pid:tid [0] NCCL INFO ...") off the end of a row and says whether there
// was any. NCCL writes amid the pieces of a row, without a space: "-1worker-0:1000:1100 [0] NCCL INFO ...".
bool cut_debug_text(std::string& row, const std::set<std::string>& hosts);

std::vector<std::string> words_of(std::string_view line);
bool is_whole(std::string_view word);   // digits alone
bool is_number(std::string_view word);  // finite; also "N/A", which stands for one

}  // namespace rehearse::nccl
