/* Products of small matrices, in floats or, where the processor can, by pairs of bf16; sums are floats.

   Words are read that follow each other along the sum, so a matrix is needed in up to three orders:

   rows     a word holds neighbours of one row; words of a row follow each other;
   columns  the transpose of that;
   pairs    a word holds neighbours of one column; words of a row, or of two, follow each other.

   Where a word is one float, pairs are rows. */

#pragma once
#include "vectors.h"

/* As many rows at once as leave their sums, twice a vector each, in registers. */
enum { ROWS_AT_ONCE = WIDTH / 2 };

/* C = A B, or C + A B, for ROWS rows and VECTORS * WIDTH columns; A has any strides, rows of B and C are contiguous. */
#define TILE(ROWS, VECTORS)                                                                                            \
    do {                                                                                                               \
        floats sums[ROWS][VECTORS];                                                                                    \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                                         \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                  \
                sums[i][j] = add ? *(floats *)(c + (row + i) * c_row + column + j * WIDTH) : all(0.0f);                \
        for (long k = 0; k < depth; k++) {                                                                             \
            words line[VECTORS];                                                                                       \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                  \
                line[j] = *(const words *)(b + k * b_row + column + j * WIDTH);                                        \
            _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                                     \
                _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                              \
                    sums[i][j] = multiplied(type, sums[i][j], a[(row + i) * a_row + k * a_column], line[j]);           \
        }                                                                                                              \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                                         \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                  \
                *(floats *)(c + (row + i) * c_row + column + j * WIDTH) = sums[i][j];                                  \
    } while (0)

INLINE void product_of(kind type, float *c, long c_row, const uint32_t *a, long a_row, long a_column, const uint32_t *b,
                       long b_row, long rows, long columns, long depth, int add) {
    for (long column = 0; column < columns;) {
        const int two = columns - column >= 2 * WIDTH;
        long row = 0;
        for (; row + ROWS_AT_ONCE <= rows; row += ROWS_AT_ONCE) {
            if (two) TILE(ROWS_AT_ONCE, 2);
            else TILE(ROWS_AT_ONCE, 1);
        }
        for (; row + 2 <= rows; row += 2) {
            if (two) TILE(2, 2);
            else TILE(2, 1);
        }
        for (; row < rows; row++) {
            if (two) TILE(1, 2);
            else TILE(1, 1);
        }
        column += two ? 2 * WIDTH : WIDTH;
    }
}

/* Once for each type, not wherever it is called. `columns` is a multiple of WIDTH, `depth` counts words. */
static void product(kind type, float *c, long c_row, const uint32_t *a, long a_row, long a_column, const uint32_t *b,
                    long b_row, long rows, long columns, long depth, int add) {
    if (type == BF16) product_of(BF16, c, c_row, a, a_row, a_column, b, b_row, rows, columns, depth, add);
    else product_of(FP32, c, c_row, a, a_row, a_column, b, b_row, rows, columns, depth, add);
}

/* Rows of one head with zeros up to `wide` elements, in floats or as they are. */
INLINE void gather(kind type, uint32_t *to, long wide, const void *from, long stride, long first, long rows,
                   long width, long offset) {
    for (long row = 0; row < rows; row++)
        for (long at = 0; at < wide; at += WIDTH) {
            floats here = all(0.0f);
            if (at < width) here = load_some(type, from, (first + row) * stride + offset + at, width - at);
            store(PER_WORD(type) == 2 ? BF16 : FP32, to, row * wide + at, here);
        }
}

/* Floats as rows of words, in place where a word is one. */
INLINE const uint32_t *as_rows(kind type, uint32_t *to, const float *from, long rows, long wide) {
    if (PER_WORD(type) == 1) return (const uint32_t *)from;
    for (long at = 0; at < rows * wide; at += WIDTH) store(BF16, to, at, *(const floats *)(from + at));
    return to;
}

/* Of rows of words; the last row may be alone in its pair. */
INLINE const uint32_t *as_pairs(kind type, uint32_t *to, const uint32_t *from, long rows, long wide) {
    if (PER_WORD(type) == 1) return from;
    const uint16_t *halves_of = (const uint16_t *)from;
    for (long row = 0; row < rows; row += 2)
        for (long at = 0; at < wide; at += WIDTH) {
            words here = __builtin_convertvector(*(const halves *)(halves_of + row * wide + at), words);
            if (row + 1 < rows)
                here |= __builtin_convertvector(*(const halves *)(halves_of + (row + 1) * wide + at), words) << 16;
            *(words *)(to + row / 2 * wide + at) = here;
        }
    return to;
}

/* Of rows of `count` words; zeros for what is missing to `padded` rows. */
static void as_columns(uint32_t *to, long padded, const uint32_t *from, long row_words, long rows, long count) {
    for (long word = 0; word < count; word++) {
        for (long row = 0; row < rows; row++) to[word * padded + row] = from[row * row_words + word];
        for (long row = rows; row < padded; row++) to[word * padded + row] = 0;
    }
}

INLINE void scatter(kind type, void *to, long stride, long first, const float *from, long padded, long rows, long width,
                    long offset, float factor) {
    for (long row = 0; row < rows; row++)
        for (long at = 0; at < width; at += WIDTH) {
            const floats here = *(const floats *)(from + row * padded + at) * factor;
            store_some(type, to, (first + row) * stride + offset + at, here, width - at);
        }
}
