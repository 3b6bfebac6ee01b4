// Which objects has a run of Python made, and how much of each is known?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frameworks/python_expression.h"

namespace rehearse {

// The field of an object that names the call which made it.
inline constexpr const char* kPythonMadeBy = "()";
// Fields by name; "0", "1" are the call's values without a name. kPythonSpread stands for an unknown "**x".
struct PythonObject {
  std::map<std::string, Json> fields;
  std::map<std::string, int> lines;

  std::string made_by() const;  // "" of a map
  // Made by a function that is not read, so that neither its truth nor its fields are known.
  bool is_of_function() const;
};

// "Trainer.Config" is a class, "torch.cuda.is_available" a function, by the capital of the last step.
bool is_python_class(const std::string& name);

// A field "object.key" that nothing has set, which may be a method; and the object of such a field.
Json python_field(const Json& object, const std::string& key);
Json python_base(const Json& field);

class PythonObjects {
 public:
  // `place`: of errors.
  explicit PythonObjects(const std::string& file) : file_(file) {}

  Json make(const std::vector<PythonArgument>& fields, int line, const std::string& made_by = "");
  Json made_of(const Json& tree, int line);  // of maps whose "()" names the class
  // A copy of the first argument, with the others as its fields.
  Json copy(const std::vector<PythonArgument>& arguments, int line);
  // Sets "trainer.devices" of an object whose fields on the way are objects.
  void set_path(const Json& object, const std::string& path, const Json& value, int line);
  PythonObject* of(const Json& value);  // null where it is none
  // A value of a map or list by its key, or an unknown value.
  Json at(const Json& value, const Json& key, const Json* fallback = nullptr);
  void set_at(const Json& map, const Json& key, Json value, int line);
  // "f(*list, **map)" as if it named each value. An unknown value keeps its stars.
  std::vector<PythonArgument> spread(const std::vector<PythonArgument>& arguments);
  Json list(const std::vector<PythonArgument>& values);
  int truth(const Json& value);    // 1, 0, or -1 where that is not known
  int is_none(const Json& value);  // the same

  // Objects as maps; an unknown value is "$" and its text. `lines`: by pointer.
  Json written_out(const Json& value, std::map<std::string, int>& lines);

 private:
  Json written_out(const Json& value, const std::string& pointer, int depth,
                   std::map<std::string, int>& lines);

  const std::string& file_;
  std::vector<PythonObject> objects_;
  int written_ = 0;
};

}  // namespace rehearse
