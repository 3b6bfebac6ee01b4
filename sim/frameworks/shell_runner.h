// How do the commands of a shell script run, as far as its text decides them? Used by shell_run() alone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/shell_condition.h"
#include "frameworks/shell_cursor.h"
#include "frameworks/shell_run.h"

namespace rehearse {

template <typename List>
bool is_among(const List& list, const std::string& word) {
  return std::ranges::find(list, word) != std::end(list);
}

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

  // `break`, `continue`, `return` and `exit` that run.
  struct Jumps {
    int leaves = 0;          // loops that end
    bool continues = false;  // the loop around them goes on with its next turn
    bool stops = false, exits = false;
    std::optional<Decided> returns;  // the status of the function
  };
  // Those in branches that may be taken: what follows may not run.
  struct Loop {
    BranchPointer turn, rest;
  };
  struct Doubts {
    std::vector<Loop> loops;  // inside each other
    BranchPointer function;
    std::optional<Decided> returns;
  };
  struct Function {
    ShellTokens body;
    BranchPointer branch;  // of its definition
  };
  using Functions = std::map<std::string, std::vector<Function>>;  // more than one where branches define it
  // Changes of variables and functions, and jumps, end with it.
  class Subshell;
  struct Capture {  // of $(...)
    ShellText text;
    bool is_known = true;
  };
  struct Call {  // the words of a simple command
    const std::vector<ShellText>& words;
    const std::vector<ShellToken>& assignments;  // its own environment
    const ShellToken* input;
    bool shows;  // its output is not redirected
    int line;
    std::string name() const { return flat(words.front()); }
  };

  void deeper();
  bool is_at_limit(int line, const std::string& what, const Mode& mode);
  Decided script(const ShellText& text, const Mode& mode);
  Decided block(const Mode& mode);
  Decided list(const Mode& mode);
  Decided joined_pipelines(const Mode& mode);
  Decided pipeline(const Mode& mode);
  Decided command(const Mode& mode);
  bool take_prefix();
  void pass_command();
  bool is_piped();
  bool is_background();
  BranchPointer doubt() const;
  Decided group(const char* close, const Mode& mode);
  Decided if_command(const Mode& mode);
  Decided case_command(const Mode& mode);
  Decided patterns(const ShellText& word, const Mode& mode);
  Decided for_command(const Mode& mode);
  Decided for_words(const std::string& name, const std::vector<ShellText>& over, const Mode& mode, int line);
  Decided for_numbers(const std::string& head, const Mode& mode, int line);
  Decided while_command(const Mode& mode);
  Decided loop_body(const Mode& mode, int line);
  Decided undecided_body(const Mode& mode, int line);
  bool ends_loop();
  Decided jump(const Call& call, const Mode& mode);
  Decided double_brackets(const Mode& mode);
  bool is_definition() const;
  Decided definition(const Mode& mode);
  Decided call_function(const Call& call, const Mode& mode);
  Decided call_body(const ShellTokens& body, const Call& call, const Mode& mode);
  Decided simple(const Mode& mode);
  void assign(const ShellToken& token, const Mode& mode);
  bool is_passed_over(const ShellText& value, int line);
  std::vector<ShellText> operands(const ShellToken& token);
  ShellText operand(const ShellToken& token);
  void count_unset(std::vector<ShellText>& words, int line);
  Decided run_with(const Call& call, const Mode& mode);
  Decided run_words(const Call& call, const Mode& mode);
  std::optional<Decided> run_of_shell(const Call& call, const Mode& mode);
  std::optional<Decided> run_builtin(const Call& call, const Mode& mode);
  Decided launched(const Call& call, std::size_t at, const Mode& mode);
  Decided run_other(const Call& call, const Mode& mode);
  Decided let(const Call& call, const Mode& mode);
  std::pair<std::size_t, BranchPointer> count_of(const Call& call, const Mode& mode) const;
  Decided test(const std::vector<ShellText>& words, bool brackets);
  Decided is_set(const std::string& name) const;
  Decided sum(const std::string& text, int line, const Mode& mode);
  Decided stop(const Call& call, const Mode& mode);
  void note(const std::string& text);

  // Commands that set variables.
  void declare(const std::vector<ShellText>& words, const ShellToken& token, const Mode& mode);
  Decided set(const Call& call, const Mode& mode);
  void shopt(const Call& call);
  Decided read(const Call& call, const Mode& mode);
  Decided mapfile(const Call& call, const Mode& mode);
  Decided printf(const Call& call, const Mode& mode);
  std::optional<ShellText> input_of(const ShellToken& input);
  std::optional<std::string> separators_of(const Call& call);
  void undecide(const Call& call, const std::string& name);
  std::string shown(const Call& call) const;

  // Texts that run as scripts.
  ShellText body_of(const ShellToken& document);
  const ShellText* written_script(const std::vector<ShellText>& words) const;
  Decided nested(const ShellText& text, const Mode& mode, bool is_file = false);
  Decided child(const Call& call, const ShellText& text, std::size_t arguments, const Mode& mode);
  Decided submit(const Call& call, const ShellText& text, std::size_t arguments, const Mode& mode);
  Decided source(const std::string& path, int line, const Mode& mode);
  std::optional<ShellText> output_of_text(const std::string& command, int line);
  std::optional<ShellText> captured(const std::string& command, int line);
  std::optional<ShellText> counted_output(const std::string& command, int line);
  std::optional<ShellText> hosts_of(const Call& call) const;
  void print(const Call& call, const Mode& mode);
  void keep(const Call& call, const Mode& mode);

  std::string file_;
  const ShellInputs& inputs_;
  ShellValues values_;
  ShellCursor cursor_;
  Functions functions_;
  std::set<std::string> exported_functions_;
  std::map<std::string, ShellText> written_;  // here-documents, by the file's name without its folder
  std::string job_;
  std::set<std::string> passed_over_;  // variables that branches set which do not run
  int depth_ = 0, count_ = 0, subshells_ = 0, open_loops_ = 0, sourced_ = 0;
  int exit_line_ = 0;
  std::string taken_, exit_condition_;  // of the last branch that runs
  Jumps jumps_;
  Doubts doubts_;
  Capture* capture_ = nullptr;
  BranchPointer abandoned_;  // the line that an assignment to a readonly variable ends
  bool looks_ahead_ = false;
  bool may_ignore_case_ = false, may_keep_last_ = false;  // shopt -s nocasematch, lastpipe
  std::vector<ShellWord> launcher_;                       // words before `bash -c`
  std::vector<ShellWord> environment_;                    // assignments before the command that runs
  std::vector<ShellCommand> commands_;
  std::vector<std::string> notes_;
};

class ShellRunner::Subshell {
 public:
  explicit Subshell(ShellRunner& runner)
      : runner_(runner),
        scope_(runner.values_.scope()),
        functions_(runner.functions_),
        jumps_(std::exchange(runner.jumps_, {})),
        doubts_(runner.doubts_),
        abandoned_(runner.abandoned_) {
    ++runner_.subshells_;
  }
  ~Subshell() {
    --runner_.subshells_;
    runner_.values_.restore(std::move(scope_));
    runner_.functions_ = std::move(functions_);
    runner_.jumps_ = jumps_;
    runner_.doubts_ = std::move(doubts_);
    runner_.abandoned_ = abandoned_;
  }
  Subshell(const Subshell&) = delete;
  Subshell& operator=(const Subshell&) = delete;

 private:
  ShellRunner& runner_;
  ShellScope scope_;
  Functions functions_;
  Jumps jumps_;
  Doubts doubts_;
  BranchPointer abandoned_;
};

}  // namespace rehearse
