// How is a broken rule of an input reported? With its place, the rule, the values, and the nearest legal
// ones.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace rehearse {

// One broken rule. Fields that do not apply stay empty.
struct Violation {
  std::string file;     // file the value came from, or "command line"
  std::string pointer;  // JSON pointer or flag inside it, e.g. "/plan/pp" or "--pp"
  std::string rule;     // the rule as a sentence
  std::string values;   // the values that break it, e.g. "layers = 80, pp x vpp = 16 x 2 = 32"
  std::string nearest;  // nearest legal values, e.g. "vpp = 1 or 5 with pp = 16"
};

// "file:pointer: rule (values); nearest legal: ..." on one line. Long texts are shortened to their ends;
// control characters are \xNN.
std::string to_string(const Violation& violation);

// A user's mistake; the program ends with exit code 2 after printing every violation.
class InputError : public std::runtime_error {
 public:
  explicit InputError(Violation violation);
  explicit InputError(std::vector<Violation> violations);
  const std::vector<Violation>& violations() const { return violations_; }

 private:
  std::vector<Violation> violations_;
};

// The plan is legal but does not fit, or no legal plan exists; exit code 3.
class DoesNotFit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Hardware or a measurement that the command needs is missing; exit code 4.
class MissingCalibration : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The candidate nearest to `name` by edit distance, or "" when none is within a third of its length.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// "a, b, c"
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace rehearse
