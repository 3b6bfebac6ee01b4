// Which part of a log's line did nccl-tests print, and which part the launcher or NCCL?
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::nccl {

// Launchers put prefixes before each line: "12: " (srun -l), "[1,0]<stdout>:" (mpirun --tag-output), "[0] "
// (MPICH), "[pod/name/container] " (kubectl), timestamps. The prefix is learnt from the tables' headers: the
// text before "# size count". It matches any line that differs from it only in numbers and spaces.
class LinePrefixes {
 public:
  explicit LinePrefixes(std::string_view log);

  // The line without the prefix. A row also loses the prefixes inside it: MPICH writes one before each piece.
  std::string without(std::string_view line) const;

 private:
  std::vector<std::string> prefixes_;
};

// Removes NCCL_DEBUG output ("host:pid:tid [0] NCCL INFO ...") from the end of a row, and returns whether
// there was any. NCCL writes between the pieces of a row, without a space: "-1worker-0:1000:1100 [0] NCCL
// INFO ...".
bool cut_debug_text(std::string& row, const std::set<std::string>& hosts);

std::vector<std::string> words_of(std::string_view line);
bool is_whole(std::string_view word);   // digits alone
bool is_number(std::string_view word);  // finite; also "N/A", which stands for one

}  // namespace rehearse::nccl
