// Half precision to float and back, for the loops of kernel.h, which compute in float. The scalar conversions of c10
// do not vectorise: that to bfloat16 branches on NaN, those of float16 take some ten operations where processors have one.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <bit>
#include <cstdint>

// One binary for every x86-64 processor: the loader picks the widest clone that runs. Numbers of 16 bits need AVX512BW for
// vectors of 512 bits, which GCC knows as a part of x86-64-v4 from version 12 on.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define PLUNIT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLUNIT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define PLUNIT_CLONES
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define PLUNIT_F16C __attribute__((target("avx2,f16c")))
#define PLUNIT_AVX512 __attribute__((target("avx512f")))
#endif

namespace plunit {
namespace {

PLUNIT_CLONES void widen(const c10::BFloat16* half, float* wide, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) wide[i] = std::bit_cast<float>(static_cast<uint32_t>(half[i].x) << 16);
}

// Rounds to the nearest, ties to even, as c10 does.
PLUNIT_CLONES void narrow(const float* wide, c10::BFloat16* half, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(wide[i]), rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    half[i].x = static_cast<uint16_t>(wide[i] == wide[i] ? rounded : 0x7FC0);
  }
}

#ifdef PLUNIT_F16C
PLUNIT_F16C void widen_f16c(const c10::Half* half, float* wide, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(wide + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(half + i))));
  }
  for (; i < n; ++i) wide[i] = _cvtsh_ss(half[i].x);
}

PLUNIT_F16C void narrow_f16c(const float* wide, c10::Half* half, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i eight = _mm256_cvtps_ph(_mm256_loadu_ps(wide + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(half + i), eight);
  }
  for (; i < n; ++i) half[i].x = _cvtss_sh(wide[i], _MM_FROUND_TO_NEAREST_INT);
}

PLUNIT_AVX512 void widen_avx512(const c10::Half* half, float* wide, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(wide + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(half + i))));
  }
  widen_f16c(half + i, wide + i, n - i);
}

PLUNIT_AVX512 void narrow_avx512(const float* wide, c10::Half* half, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i sixteen = _mm512_cvtps_ph(_mm512_loadu_ps(wide + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(half + i), sixteen);
  }
  narrow_f16c(wide + i, half + i, n - i);
}

// Every processor with AVX2 has F16C; older compilers cannot ask for F16C itself.
const bool has_f16c = __builtin_cpu_supports("avx2"), has_avx512 = has_f16c && __builtin_cpu_supports("avx512f");
#endif

void widen(const c10::Half* half, float* wide, int64_t n) {
#ifdef PLUNIT_F16C
  if (has_avx512) return widen_avx512(half, wide, n);
  if (has_f16c) return widen_f16c(half, wide, n);
#endif
  for (int64_t i = 0; i < n; ++i) wide[i] = static_cast<float>(half[i]);
}

void narrow(const float* wide, c10::Half* half, int64_t n) {
#ifdef PLUNIT_F16C
  if (has_avx512) return narrow_avx512(wide, half, n);
  if (has_f16c) return narrow_f16c(wide, half, n);
#endif
  for (int64_t i = 0; i < n; ++i) half[i] = static_cast<c10::Half>(wide[i]);
}

}  // namespace
}  // namespace plunit
