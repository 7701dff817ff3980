// What lies between Python and a program: structs whose layout both sides compare, and exceptions, which stay inside.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

struct Field {
  const char *name, *type;
  int64_t offset, size;
};

// The title and the fields of a struct. In a namespace with a name, all libraries that are loaded would share the first.
namespace {
template <class Struct>
struct Layout;
}

// STRUCT(Pair, PAIR) declares struct Pair with the fields of the table PAIR(FIELD), which is FIELD(type, name) ..., and
// its layout. plunit.programs.interface reads the tables; every name, type, offset and size is compared on loading.
#define PLUNIT_DECLARED(type, name) type name;
#define PLUNIT_DESCRIBED(type, name) {#name, #type, offsetof(Owner, name), sizeof(Owner::name)},
#define STRUCT(Name, TABLE)                                      \
  struct Name {                                                  \
    TABLE(PLUNIT_DECLARED)                                       \
  };                                                             \
  namespace {                                                    \
  template <>                                                    \
  struct Layout<Name> {                                          \
    using Owner = Name;                                          \
    static constexpr const char* title = #Name;                  \
    static constexpr Field fields[] = {TABLE(PLUNIT_DESCRIBED)}; \
  };                                                             \
  }

// The layout of one struct, a line for each field and one for its size.
template <class Struct>
static std::string layout_of() {
  using Own = Layout<Struct>;
  std::string lines;
  for (const Field& field : Own::fields) {
    lines += std::string(Own::title) + "." + field.name + ": " + field.type + ", " + std::to_string(field.size) +
             " bytes at " + std::to_string(field.offset) + "\n";
  }
  return lines + Own::title + ": " + std::to_string(sizeof(Struct)) + " bytes\n";
}

// The layouts of all structs, in memory that stays.
template <class... Structs>
static const char* layouts() {
  static const std::string lines = (layout_of<Structs>() + ...);
  return lines.c_str();
}

constexpr int64_t NO_MEMORY = -1;

// The result of `work`, 0 or more. An exception that leaves a program ends the process; here only a lack of memory
// makes one.
template <class Work>
static int64_t guarded(Work work) noexcept {
  try {
    return work();
  } catch (...) {
    return NO_MEMORY;
  }
}
