#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// Instructions that Swift has no name for. CRC-32C: SSE4.2 has it, and ARM64 with its CRC32 extension, 8 bytes at a time.
#if defined(__x86_64__)
static inline int fb_has_crc32c(void) { return __builtin_cpu_supports("sse4.2") != 0; }
// A register over 4,096 further bytes of zeros: times x to the 32,768, modulo the polynomial.
static inline uint32_t fb_crc32c_over_block(uint32_t state) {
  uint32_t sum = 0, factor = 0x35d73a62;
  for (int bit = 31; bit >= 0; bit--) {
    sum ^= factor & (0u - (state >> bit & 1u));
    factor = factor >> 1 ^ (0x82F63B78u & (0u - (factor & 1u)));
  }
  return sum;
}
__attribute__((target("sse4.2"))) static inline uint32_t fb_crc32c(uint32_t state, const unsigned char *bytes,
                                                                   size_t count) {
  enum { block = 4096 };
  uint64_t wide, second, third, word;
  // The instruction takes three cycles, and one can be begun in each.
  for (; count >= 3 * block; bytes += 3 * block, count -= 3 * block) {
    wide = state, second = third = 0;
    for (size_t place = 0; place < block; place += sizeof word) {
      memcpy(&word, bytes + place, sizeof word);
      wide = __builtin_ia32_crc32di(wide, word);
      memcpy(&word, bytes + block + place, sizeof word);
      second = __builtin_ia32_crc32di(second, word);
      memcpy(&word, bytes + 2 * block + place, sizeof word);
      third = __builtin_ia32_crc32di(third, word);
    }
    state = fb_crc32c_over_block(fb_crc32c_over_block((uint32_t)wide) ^ (uint32_t)second) ^ (uint32_t)third;
  }
  wide = state;
  for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
    memcpy(&word, bytes, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  state = (uint32_t)wide;
  for (; count > 0; bytes++, count--) state = __builtin_ia32_crc32qi(state, *bytes);
  return state;
}
#elif defined(__ARM_FEATURE_CRC32)
static inline int fb_has_crc32c(void) { return 1; }
static inline uint32_t fb_crc32c(uint32_t state, const unsigned char *bytes, size_t count) {
  uint64_t word;
  for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
    memcpy(&word, bytes, sizeof word);
    state = __builtin_arm_crc32cd(state, word);
  }
  for (; count > 0; bytes++, count--) state = __builtin_arm_crc32cb(state, *bytes);
  return state;
}
#else
static inline int fb_has_crc32c(void) { return 0; }
static inline uint32_t fb_crc32c(uint32_t state, const unsigned char *bytes, size_t count) {
  (void)bytes, (void)count;
  return state;
}
#endif
