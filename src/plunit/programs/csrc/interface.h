// What lies between Python and a program: structs whose layout both sides compare, and exceptions, which stay inside.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>

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

// Write line i of the layout of one struct, its size last; return the number of lines.
template <class Struct>
static int64_t write_line(int64_t i, char* to, int64_t room) {
  using Own = Layout<Struct>;
  constexpr int64_t count = sizeof(Own::fields) / sizeof(Field);
  if (i == count) std::snprintf(to, room, "%s: %lld bytes", Own::title, static_cast<long long>(sizeof(Struct)));
  if (i >= 0 && i < count) {
    const Field& field = Own::fields[i];
    std::snprintf(to, room, "%s.%s: %s, %lld bytes at %lld", Own::title, field.name, field.type,
                  static_cast<long long>(field.size), static_cast<long long>(field.offset));
  }
  return count + 1;
}

// Write line i of the layouts of all structs, or nothing behind the end.
template <class... Structs>
static void write_layout(int64_t i, char* to, int64_t room) {
  to[0] = '\0';
  ((i -= write_line<Structs>(i, to, room)), ...);
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
