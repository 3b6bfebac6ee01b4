// How do the commands of a shell script run, as far as its text decides them? Used by shell_run() alone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/shell_condition.h"
#include "frameworks/shell_cursor.h"
#include "frameworks/shell_run.h"

namespace rehearse {

class ShellRunner {
 public:
  ShellRunner(const std::string& file, const ShellInputs& inputs);
  ShellRun run(const ShellText& text);

 private:
  // Whether commands are passed over, run, or run where a branch is taken.
  struct Mode {
    bool skips = false;
    BranchPointer branch;
  };
  static Mode under(const Mode& mode, Decided decided, int line, const std::string& condition);

  // Reads other words and comes back.
  template <typename Read>
  Decided elsewhere(ShellTokens tokens, const Read& read) {
    deeper();
    ShellCursor back = std::exchange(cursor_, ShellCursor(file_, std::move(tokens)));
    const Decided status = read();
    cursor_ = std::move(back);
    --depth_;
    return status;
  }

  void deeper();
  Decided script(const ShellText& text, const Mode& mode);
  Decided block(Mode mode);
  Decided list(const Mode& mode);
  Decided pipeline(const Mode& mode);
  Decided command(const Mode& mode);
  Decided group(const char* close, const Mode& mode);
  Decided if_command(const Mode& mode);
  Decided case_command(const Mode& mode);
  Decided patterns(const ShellText& word, const Mode& mode);
  Decided for_command(const Mode& mode);
  Decided while_command(const Mode& mode);
  Decided loop_body(const Mode& mode, int line);
  Decided double_brackets(const Mode& mode);
  bool is_definition() const;
  Decided definition(const Mode& mode);
  Decided call(const std::string& name, const std::vector<ShellText>& arguments, const Mode& mode);
  Decided simple(const Mode& mode);
  ShellText operand(const ShellToken& token);
  void count_unset(std::vector<ShellText>& words, int line);
  Decided run_with(const std::vector<ShellToken>& assignments, const std::vector<ShellText>& words,
                   const ShellToken* document, int line, const Mode& mode);
  Decided run_words(const std::vector<ShellText>& words, const ShellToken* document, int line,
                    const Mode& mode);
  Decided let(const std::string& text, int line, const Mode& mode);
  static std::size_t shift_of(const std::string& word);
  Decided test(const std::vector<ShellText>& words, bool brackets);
  Decided is_set(const std::string& name) const;
  Decided sum(const std::string& text);
  Decided stop(bool exits, int line, const Mode& mode);
  ShellText body_of(const ShellToken& document);
  const ShellText* written_script(const std::vector<ShellText>& words) const;
  Decided submit(const ShellText& text, const Mode& mode);
  Decided nested(const ShellText& text, const Mode& mode);
  void keep(const std::vector<ShellText>& words, int line, const Mode& mode);
  Decided source(const std::string& path, int line, const Mode& mode);

  std::string file_;
  const ShellInputs& inputs_;
  ShellValues values_;
  ShellCursor cursor_;
  std::map<std::string, ShellTokens> functions_;
  std::map<std::string, ShellText> written_;  // here-documents, by the file's name without its folder
  std::string job_;
  std::set<std::string> passed_over_;  // variables that branches set which do not run
  int depth_ = 0, count_ = 0;
  int exit_line_ = 0;
  std::string taken_, exit_condition_;  // of the last branch that runs
  bool stopped_ = false, exited_ = false, broke_ = false;
  std::vector<ShellWord> environment_;  // assignments before the command that runs
  std::vector<ShellCommand> commands_;
  std::vector<std::string> notes_;
};

}  // namespace rehearse
