#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// Instructions that Swift has no name for. CRC-32C: SSE4.2 has it, 8 bytes at a time.
#if defined(__x86_64__)
static inline int fb_has_crc32c(void) { return __builtin_cpu_supports("sse4.2") != 0; }
__attribute__((target("sse4.2"))) static inline uint32_t fb_crc32c(uint32_t state, const unsigned char *bytes,
                                                                   size_t count) {
  uint64_t wide = state, word;
  for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
    memcpy(&word, bytes, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  state = (uint32_t)wide;
  for (; count > 0; bytes++, count--) state = __builtin_ia32_crc32qi(state, *bytes);
  return state;
}
#else
static inline int fb_has_crc32c(void) { return 0; }
static inline uint32_t fb_crc32c(uint32_t state, const unsigned char *bytes, size_t count) {
  (void)bytes, (void)count;
  return state;
}
#endif
