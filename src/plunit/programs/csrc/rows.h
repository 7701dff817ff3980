// The points of a step: where they are in memory, and which ones a member draws.
#pragma once
#include <numeric>
#include <vector>

#include "interface.h"
#include "vector.h"

constexpr int64_t CHUNK = 64;  // the maximum number of points whose activations are computed together

// An array [steps, units, points, members] by its strides; a stride of 0 repeats. Members are contiguous or shared.
#define SOURCE(FIELD)         \
  FIELD(const float*, values) \
  FIELD(int64_t, step)        \
  FIELD(int64_t, unit)        \
  FIELD(int64_t, point)       \
  FIELD(int64_t, member)
STRUCT(Source, SOURCE)

#define ROW_SOURCES(FIELD)                     \
  FIELD(Source, x)                             \
  FIELD(Source, y)                             \
  FIELD(Source, weight) /* no weight: all 1 */ \
  FIELD(int64_t, count)
STRUCT(RowSources, ROW_SOURCES)

// Copy points first, ..., first + points - 1 of a block of members to [units, stride], or rows `drawn` [points, LANES].
static inline void copy(const Source from, int64_t units, int64_t step, int64_t first, int64_t points,
                        const int64_t* drawn, int64_t member, Vec* to, int64_t stride) {
  const float* base = from.values + step * from.step + (drawn ? 0 : first) * from.point + member * from.member;
  for (int64_t u = 0; u < units; ++u, base += from.unit, to += stride)
    if (drawn)
      for (int64_t p = 0; p < points; ++p)
        for (int lane = 0; lane < LANES; ++lane)
          to[p][lane] = base[drawn[p * LANES + lane] * from.point + lane * from.member];
    else if (from.member)
      for (int64_t p = 0; p < points; ++p) to[p] = load(base + p * from.point);
    else
      for (int64_t p = 0; p < points; ++p) to[p] = splat(base[p * from.point]);
}

// The rows that a member draws: in each pass over its n rows every row once, in the order start + stride i mod n, with
// start and stride from (seed, pass). The caller has shuffled the rows. A member does not draw `held` of the `count`
// rows, beginning with its own first one; its rows are the n = count - held after these, where row 0 follows the last.
template <int COUNT>
class Draws {
 public:
  Draws(const uint64_t* seeds, int64_t count, int64_t position, const int64_t* firsts = nullptr, int64_t held = 0)
      : seeds(seeds), count(count), n(count - held), rows(CHUNK * COUNT) {
    if (!seeds) return;
    for (int lane = 0; lane < COUNT; ++lane) {
      offset[lane] = firsts ? firsts[lane] + held : 0;
      begin(lane, position / n);
      at[lane] = (start[lane] + stride[lane] * (position % n)) % n;
      left[lane] = n - position % n;
    }
  }

  const int64_t* next(int64_t points) {
    for (int64_t p = 0; p < points; ++p)
      for (int lane = 0; lane < COUNT; ++lane) {
        const int64_t row = at[lane] + offset[lane];
        rows[p * COUNT + lane] = row - (row >= count ? count : 0);
        at[lane] += stride[lane];
        at[lane] -= at[lane] >= n ? n : 0;
        if (--left[lane] == 0) {
          begin(lane, pass[lane] + 1);
          at[lane] = start[lane], left[lane] = n;
        }
      }
    return rows.data();
  }

 private:
  const uint64_t* seeds;
  const int64_t count, n;
  std::vector<int64_t> rows;
  int64_t offset[COUNT], at[COUNT], start[COUNT], stride[COUNT], left[COUNT], pass[COUNT];

  // splitmix64's output function
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  void begin(int lane, int64_t number) {
    uint64_t x = mix(seeds[lane] + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(number + 1));
    start[lane] = static_cast<int64_t>(mix(x) % static_cast<uint64_t>(n));
    do {
      x = mix(x + 0x9e3779b97f4a7c15u);
      stride[lane] = static_cast<int64_t>(x % static_cast<uint64_t>(n));
    } while (std::gcd(stride[lane], n) != 1);
    pass[lane] = number;
  }
};
