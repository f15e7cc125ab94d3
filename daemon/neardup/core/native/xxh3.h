/* XXH3 with 128 bits, seed 0: the hash of words and of whole texts.
 *
 * Yann Collet's xxHash, version 0.8 (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md).  Its results are those of
 * the Python package xxhash, which is the reference.  A text has about one word for every 18 bytes, so the short inputs
 * are inlined into the loop over its words.
 */
#ifndef NEARDUP_XXH3_H
#define NEARDUP_XXH3_H

#include "internal.h"

#define PRIME32_1 0x9E3779B1u
#define PRIME32_2 0x85EBCA77u
#define PRIME32_3 0xC2B2AE3Du
#define PRIME64_1 0x9E3779B185EBCA87u
#define PRIME64_2 0xC2B2AE3D27D4EB4Fu
#define PRIME64_3 0x165667B19E3779F9u
#define PRIME64_4 0x85EBCA77C2B2AE63u
#define PRIME64_5 0x27D4EB2F165667C5u
#define PRIME_MX1 0x165667919E3779F9u
#define PRIME_MX2 0x9FB21C651E98DF25u

enum { STRIPE = 64, STRIPES = 16, LANES = 8, BLOCK_BYTES = STRIPE * STRIPES };

typedef struct {
    uint64_t low, high;
} Hash128;

static const uint8_t SECRET[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

INLINE uint64_t read_64(const uint8_t *at) {
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

INLINE uint32_t read_32(const uint8_t *at) {
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

INLINE uint64_t avalanche(uint64_t x) {
    x = (x ^ x >> 37) * PRIME_MX1;
    return x ^ x >> 32;
}

INLINE uint64_t avalanche_xxh64(uint64_t x) {
    x = (x ^ x >> 33) * PRIME64_2;
    x = (x ^ x >> 29) * PRIME64_3;
    return x ^ x >> 32;
}

INLINE Hash128 multiply(uint64_t a, uint64_t b) {
    unsigned __int128 both = (unsigned __int128)a * b;
    return (Hash128){(uint64_t)both, (uint64_t)(both >> 64)};
}

INLINE uint64_t fold_product(uint64_t a, uint64_t b) {
    Hash128 both = multiply(a, b);
    return both.low ^ both.high;
}

INLINE uint64_t fold(const uint8_t *at, int secret) {
    return fold_product(read_64(at) ^ read_64(SECRET + secret), read_64(at + 8) ^ read_64(SECRET + secret + 8));
}

INLINE void mix_in(Hash128 *hash, const uint8_t *first, const uint8_t *second, int secret) {
    hash->low = (hash->low + fold(first, secret)) ^ (read_64(second) + read_64(second + 8));
    hash->high = (hash->high + fold(second, secret + 16)) ^ (read_64(first) + read_64(first + 8));
}

INLINE Hash128 finish_hash(Hash128 hash, uint64_t size) {
    uint64_t high = hash.low * PRIME64_1 + hash.high * PRIME64_4 + size * PRIME64_2;
    return (Hash128){avalanche(hash.low + hash.high), 0 - avalanche(high)};
}

INLINE Hash128 hash_1_to_3(const uint8_t *data, uint64_t size) {
    uint32_t low = (uint32_t)data[0] << 16 | (uint32_t)data[size >> 1] << 24 | data[size - 1] | (uint32_t)size << 8;
    uint32_t high = __builtin_bswap32(low);
    high = high << 13 | high >> 19;
    return (Hash128){
        avalanche_xxh64(low ^ (uint64_t)(read_32(SECRET) ^ read_32(SECRET + 4))),
        avalanche_xxh64(high ^ (uint64_t)(read_32(SECRET + 8) ^ read_32(SECRET + 12))),
    };
}

INLINE Hash128 hash_4_to_8(const uint8_t *data, uint64_t size) {
    uint64_t both = read_32(data) | (uint64_t)read_32(data + size - 4) << 32;
    Hash128 hash = multiply(both ^ read_64(SECRET + 16) ^ read_64(SECRET + 24), PRIME64_1 + (size << 2));
    hash.high += hash.low << 1;
    hash.low ^= hash.high >> 3;
    hash.low = (hash.low ^ hash.low >> 35) * PRIME_MX2;
    return (Hash128){hash.low ^ hash.low >> 28, avalanche(hash.high)};
}

INLINE Hash128 hash_9_to_16(const uint8_t *data, uint64_t size) {
    uint64_t first = read_64(data), last = read_64(data + size - 8);
    Hash128 hash = multiply(first ^ last ^ read_64(SECRET + 32) ^ read_64(SECRET + 40), PRIME64_1);
    hash.low += (size - 1) << 54;
    last ^= read_64(SECRET + 48) ^ read_64(SECRET + 56);
    hash.high += last + (uint64_t)(uint32_t)last * (PRIME32_2 - 1u);
    Hash128 crossed = multiply(hash.low ^ __builtin_bswap64(hash.high), PRIME64_2);
    return (Hash128){avalanche(crossed.low), avalanche(crossed.high + hash.high * PRIME64_2)};
}

INLINE Hash128 hash_17_to_128(const uint8_t *data, uint64_t size) {
    Hash128 hash = {size * PRIME64_1, 0};
    for (int step = (int)((size - 1) >> 5); step >= 0; step--)
        mix_in(&hash, data + 16 * step, data + size - 16 - 16 * step, 32 * step);
    return finish_hash(hash, size);
}

static __attribute__((noinline)) Hash128 hash_129_to_240(const uint8_t *data, uint64_t size) {
    Hash128 hash = {size * PRIME64_1, 0};
    for (int step = 0; step < 4; step++) mix_in(&hash, data + 32 * step, data + 32 * step + 16, 32 * step);
    hash.low = avalanche(hash.low);
    hash.high = avalanche(hash.high);
    for (int step = 4; step < (int)(size >> 5); step++)
        mix_in(&hash, data + 32 * step, data + 32 * step + 16, 32 * step - 125);
    mix_in(&hash, data + size - 16, data + size - 32, 103);
    return finish_hash(hash, size);
}

INLINE void accumulate_stripe(uint64_t lanes[LANES], const uint8_t *data, const uint8_t *secret) {
    uint64_t values[LANES], keys[LANES];
    memcpy(values, data, STRIPE);
    memcpy(keys, secret, STRIPE);
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t key = values[lane] ^ keys[lane];
        lanes[lane] += values[lane ^ 1] + (key & 0xFFFFFFFFu) * (key >> 32);
    }
}

INLINE uint64_t merge_lanes(const uint64_t lanes[LANES], const uint8_t *secret, uint64_t start) {
    for (int pair = 0; pair < LANES / 2; pair++)
        start += fold_product(lanes[2 * pair] ^ read_64(secret + 16 * pair),
                                lanes[2 * pair + 1] ^ read_64(secret + 16 * pair + 8));
    return avalanche(start);
}

static __attribute__((noinline)) Hash128 hash_over_240(const uint8_t *data, uint64_t size) {
    uint64_t lanes[LANES] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};
    const uint8_t *at = data, *last_stripe = data + size - STRIPE;
    for (; at + BLOCK_BYTES < data + size; at += BLOCK_BYTES) {
        for (int stripe = 0; stripe < STRIPES; stripe++)
            accumulate_stripe(lanes, at + STRIPE * stripe, SECRET + 8 * stripe);
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] = (lanes[lane] ^ lanes[lane] >> 47 ^ read_64(SECRET + 128 + 8 * lane)) * PRIME32_1;
    }
    for (int stripe = 0; at <= last_stripe - 1; stripe++, at += STRIPE)
        accumulate_stripe(lanes, at, SECRET + 8 * stripe);
    accumulate_stripe(lanes, last_stripe, SECRET + 121);
    return (Hash128){merge_lanes(lanes, SECRET + 11, size * PRIME64_1),
                     merge_lanes(lanes, SECRET + 117, ~(size * PRIME64_2))};
}

/* The hash of a word of at least one byte. */
INLINE Hash128 hash_word(const uint8_t *data, uint64_t size) {
    if (size > 240) return hash_over_240(data, size);
    if (size > 128) return hash_129_to_240(data, size);
    if (size > 16) return hash_17_to_128(data, size);
    if (size > 8) return hash_9_to_16(data, size);
    return size > 3 ? hash_4_to_8(data, size) : hash_1_to_3(data, size);
}

/* As the package writes it: the high half first, both in big-endian order. */
INLINE void write_digest(Hash128 hash, uint8_t digest[16]) {
    uint64_t halves[2] = {__builtin_bswap64(hash.high), __builtin_bswap64(hash.low)};
    memcpy(digest, halves, sizeof halves);
}

#endif
