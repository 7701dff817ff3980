// The best of the wheel's libraries for this processor: level 1, 3 or 4 on x86-64, elsewhere always 1.
#pragma once
#include <cstdint>

static inline int32_t level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#if defined(__clang__) ? __clang_major__ >= 19 : __GNUC__ >= 12
  return __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3 : 1;
#else  // older compilers do not know the levels by name; all processors with these features have the rest
  if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))) return 1;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  return wide ? 4 : 3;
#endif
#else
  return 1;
#endif
}
