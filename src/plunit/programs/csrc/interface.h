// The interface between Python and a program: structs that both sides read from one table, and exceptions, which stay
// inside.
#pragma once
#include <cstdint>

// STRUCT(Pair, PAIR) declares struct Pair with the fields of the table PAIR(FIELD), which is FIELD(type, name) ...
// plunit.programs.interface reads these tables, so that Python has the same structs.
#define PLUNIT_DECLARE(type, name) type name;
#define STRUCT(Name, TABLE) \
  struct Name {             \
    TABLE(PLUNIT_DECLARE)   \
  };

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
