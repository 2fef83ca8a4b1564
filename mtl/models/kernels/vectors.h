/* Vectors of floats: bf16 in memory and floats in registers, exp, and the hash of dropout's masks.

   Nothing here is compiled with -ffast-math: what is not finite has to stay so, for the loop stops at it. */

#pragma once
#include <stdint.h>
#include <string.h>
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { WIDTH = 16 };
#else
enum { WIDTH = 8 };
#endif

typedef float floats __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef uint32_t words __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef uint16_t halves __attribute__((vector_size(2 * WIDTH), aligned(2), may_alias));

#if defined(__AVX512F__)
#define LANES ((ints){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#else
#define LANES ((ints){0, 1, 2, 3, 4, 5, 6, 7})
#endif

#define INLINE static inline __attribute__((always_inline))

/* What a tensor's elements are in memory; a constant wherever it is used, so that no branch is left of it. */
typedef enum { FP32 = 0, BF16 = 1 } kind;

/* How many elements a word holds that products multiply: a float, or two neighbours in bf16 where the processor
   multiplies these in pairs. */
#if defined(__AVX512BF16__)
#define PER_WORD(type) ((type) == BF16 ? 2 : 1)
#else
#define PER_WORD(type) 1
#endif

INLINE long rounded_up(long count, long step) { return (count + step - 1) / step * step; }

INLINE floats all(float value) { return value - (floats){0}; }

INLINE floats chosen(ints mask, floats yes, floats no) {
    return (floats)(((ints)yes & mask) | ((ints)no & ~mask));
}

/* By halves: lane after lane would wait sixteen times for the sum before it. */
INLINE float total(floats values) {
    _Pragma("GCC unroll 4") for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        values += __builtin_shuffle(values, LANES ^ apart);
    return values[0];
}

INLINE float largest(floats values) {
    _Pragma("GCC unroll 4") for (int apart = WIDTH / 2; apart > 0; apart /= 2) {
        const floats others = __builtin_shuffle(values, LANES ^ apart);
        values = chosen(others > values, others, values);
    }
    return values[0];
}

INLINE floats widened(halves stored) { return (floats)(__builtin_convertvector(stored, words) << 16); }

/* To the nearest, ties to even; a NaN stays one. */
INLINE halves rounded(floats values) {
#if defined(__AVX512BF16__)
    return (halves)_mm512_cvtneps_pbh((__m512)values);
#else
    words bits = (words)values;
    words nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    words not_a_number = (words)(values != values);
    return __builtin_convertvector((nearest & ~not_a_number) | (0x7fc0 & not_a_number), halves);
#endif
}

/* WIDTH elements from place `at` on. */
INLINE floats load(kind type, const void *from, long at) {
    return type == BF16 ? widened(*(const halves *)((const uint16_t *)from + at))
                        : *(const floats *)((const float *)from + at);
}

INLINE void store(kind type, void *to, long at, floats values) {
    if (type == BF16) *(halves *)((uint16_t *)to + at) = rounded(values);
    else *(floats *)((float *)to + at) = values;
}

/* The first `count` of them, the rest taken as zeros. */
INLINE floats load_some(kind type, const void *from, long at, long count) {
    if (count >= WIDTH) return load(type, from, at);
    const long size = type == BF16 ? 2 : 4;
    char part[4 * WIDTH] = {0};
    memcpy(part, (const char *)from + at * size, (size_t)(count * size));
    return load(type, part, 0);
}

INLINE void store_some(kind type, void *to, long at, floats values, long count) {
    if (count >= WIDTH) {
        store(type, to, at, values);
        return;
    }
    const long size = type == BF16 ? 2 : 4;
    char part[4 * WIDTH];
    store(type, part, 0, values);
    memcpy((char *)to + at * size, part, (size_t)(count * size));
}

/* `sum` and, lane by lane, the products of the elements in `one` and in `others`. */
INLINE floats multiplied(kind type, floats sum, uint32_t one, words others) {
#if defined(__AVX512BF16__)
    if (type == BF16) {
        const __m512bh first = (__m512bh)(one + (words){0}), second = (__m512bh)others;
        return (floats)_mm512_dpbf16_ps((__m512)sum, first, second);
    }
#endif
    return sum + (floats)(one + (words){0}) * (floats)others;
}

/* To within 2 units of the last place; below the smallest normal number that number. */
INLINE floats exponential(floats x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded to an integer. */
    x = chosen(x < -87.0f, all(-87.0f), x);
    x = chosen(x > 88.0f, all(88.0f), x);
    floats moved = x * 1.44269504f + shift;
    floats whole = moved - shift;
    floats rest = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    floats sum = all(1.0f / 720);
    sum = sum * rest + 1.0f / 120;
    sum = sum * rest + 1.0f / 24;
    sum = sum * rest + 1.0f / 6;
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    ints power = (ints)moved - (ints)all(shift);
    return sum * (floats)((power + 127) << 23);
}

/* `_scramble_` of masks.py. */
INLINE words scrambled(words bits) {
    bits ^= bits >> 16;
    bits *= 0x7feb352du;
    bits ^= bits >> 15;
    bits *= 0x846ca68bu;
    return bits;
}

/* Dropout: hashes of rows (NULL where nothing is dropped) and of pairs of features, by head where there are several,
   `pairs_stride` apart. A half of a hash is kept if as a signed number it is `least` or more, and what is kept is
   multiplied by `scale`. */
typedef struct {
    const int32_t *rows, *pairs;
    long pairs_stride;
    int least;
    float scale;
} dropout;

/* The keep mask of one row: all bits set for an element that is kept, none for one that is dropped.

   One word decides two neighbours by its halves. The hashes of pairs and `mask` have room for `count` elements rounded
   up to 2 WIDTH. */
INLINE void keep_mask(int32_t *mask, const dropout *its, long row, long head, long count) {
    const int32_t *pairs = its->pairs + head * its->pairs_stride;
#if defined(__AVX512F__)
    const ints low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    const ints high = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
#else
    const ints low = {0, 8, 1, 9, 2, 10, 3, 11}, high = {4, 12, 5, 13, 6, 14, 7, 15};
#endif
    for (long at = 0; at < count; at += 2 * WIDTH) {
        words hashed = scrambled(*(const words *)(pairs + at / 2) + (uint32_t)its->rows[row]);
        ints first = ((ints)(hashed << 16) >> 16) >= its->least, second = ((ints)hashed >> 16) >= its->least;
        *(ints *)(mask + at) = __builtin_shuffle(first, second, low);
        *(ints *)(mask + at + WIDTH) = __builtin_shuffle(first, second, high);
    }
}
