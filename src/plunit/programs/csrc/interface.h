// The interface between Python and a program: structs that both sides read from one table, and exceptions, which must
// not leave the program.
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

// Return the result of `work`, which is 0 or more, or NO_MEMORY. An exception that left the program would end the
// process; running out of memory is the only one.
template <class Work>
static int64_t guarded(Work work) noexcept {
  try {
    return work();
  } catch (...) {
    return NO_MEMORY;
  }
}
