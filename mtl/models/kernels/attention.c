/* Attention over packed sequences, every sequence and head for itself. Reference: `attention.py` of the native pass.

   Rows of queries, keys and values lie apart by strides counted in elements; sequence s has the rows from starts[s] to
   starts[s + 1]. Keys and values have the same starts; there may be fewer queries than keys (the first token's alone).
   Sums are in fp32. Backward computes probabilities again instead of keeping them. */

#include <math.h>
#include <stdlib.h>

#include "vectors.h"

/* As many rows at once as leave their sums, twice a vector each, in registers. */
enum { QUERIES_AT_ONCE = 32, ROWS_AT_ONCE = WIDTH / 2 };

typedef struct {
    long sequences, heads, head_width;
    const int64_t *query_starts, *key_starts;
    const void *query, *key, *value;
    long query_stride, key_stride, value_stride;
    dropout drop; /* Its rows are those of the queries. */
} attention;

/* C = A B, or C + A B, for ROWS rows and VECTORS * WIDTH columns; A has any strides, rows of B and C are contiguous. */
#define TILE(ROWS, VECTORS)                                                                                       \
    do {                                                                                                          \
        floats sums[ROWS][VECTORS];                                                                               \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                                    \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                             \
                sums[i][j] = add ? *(floats *)(c + (row + i) * c_row + column + j * WIDTH) : all(0.0f);           \
        for (long k = 0; k < depth; k++) {                                                                        \
            floats line[VECTORS];                                                                                 \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                             \
                line[j] = *(const floats *)(b + k * b_row + column + j * WIDTH);                                  \
            _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                                \
                _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                         \
                    sums[i][j] += a[(row + i) * a_row + k * a_column] * line[j];                                  \
        }                                                                                                         \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                                    \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                             \
                *(floats *)(c + (row + i) * c_row + column + j * WIDTH) = sums[i][j];                             \
    } while (0)

/* `columns` is a multiple of WIDTH. */
static void product(float *c, long c_row, const float *a, long a_row, long a_column, const float *b, long b_row,
                    long rows, long columns, long depth, int add) {
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

/* Rows of one head, times `factor`, as floats with zeros up to `padded` columns. */
INLINE void gather(kind type, float *to, long padded, const void *from, long stride, long first, long rows, long width,
                   long offset, float factor) {
    for (long row = 0; row < rows; row++)
        for (long at = 0; at < padded; at += WIDTH) {
            floats here = all(0.0f);
            if (at < width) here = load_some(type, from, (first + row) * stride + offset + at, width - at) * factor;
            *(floats *)(to + row * padded + at) = here;
        }
}

INLINE void scatter(kind type, void *to, long stride, long first, const float *from, long padded, long rows, long width,
                    long offset, float factor) {
    for (long row = 0; row < rows; row++)
        for (long at = 0; at < width; at += WIDTH)
            store_some(type, to, (first + row) * stride + offset + at, *(const floats *)(from + row * padded + at) * factor,
                       width - at);
}

/* (rows, columns) to (columns, padded), zeros past the rows. */
static void transpose(float *to, long padded, const float *from, long from_row, long rows, long columns) {
    for (long column = 0; column < columns; column++) {
        for (long row = 0; row < rows; row++) to[column * padded + row] = from[row * from_row + column];
        for (long row = rows; row < padded; row++) to[column * padded + row] = 0.0f;
    }
}

/* In place over the first `count` of `padded` scores; the rest become zeros. */
static void softmax(float *scores, long count, long padded) {
    floats highest = all(-INFINITY), sum = all(0.0f);
    for (long at = 0; at < padded; at += WIDTH) {
        floats here = chosen(LANES < (int32_t)(count - at), *(floats *)(scores + at), all(-INFINITY));
        *(floats *)(scores + at) = here;
        highest = chosen(here > highest, here, highest);
    }
    const float top = largest(highest);
    for (long at = 0; at < padded; at += WIDTH) {
        floats here = exponential(*(floats *)(scores + at) - top);
        here = chosen(LANES < (int32_t)(count - at), here, all(0.0f));
        *(floats *)(scores + at) = here;
        sum += here;
    }
    const float inverse = 1.0f / total(sum);
    for (long at = 0; at < padded; at += WIDTH) *(floats *)(scores + at) *= inverse;
}

/* Scores of queries already multiplied by 1 / sqrt(width), their softmax, and what dropout keeps of it, unscaled. */
static void probabilities(const attention *its, long head, long first, long queries, long keys, long padded,
                          const float *query, long query_row, const float *key_columns, float *found, int32_t *mask) {
    product(found, padded, query, query_row, 1, key_columns, padded, queries, padded, its->head_width, 0);
    for (long row = 0; row < queries; row++) {
        softmax(found + row * padded, keys, padded);
        if (its->drop.rows) keep_mask(mask + row * rounded_up(padded, 2 * WIDTH), &its->drop, first + row, head, padded);
    }
}

/* Gradients of probabilities become those of scores, in place: P (dP - sum P dP) by row. */
static void softmax_backward(float *changes, const float *found, long rows, long padded) {
    for (long row = 0; row < rows; row++, changes += padded, found += padded) {
        floats sum = all(0.0f);
        for (long at = 0; at < padded; at += WIDTH) sum += *(floats *)(changes + at) * *(const floats *)(found + at);
        const float mean = total(sum);
        for (long at = 0; at < padded; at += WIDTH)
            *(floats *)(changes + at) = (*(floats *)(changes + at) - mean) * *(const floats *)(found + at);
    }
}

static void mask_all(float *values, const int32_t *mask, long rows, long padded) {
    for (long row = 0; row < rows; row++, values += padded, mask += rounded_up(padded, 2 * WIDTH))
        for (long at = 0; at < padded; at += WIDTH) *(ints *)(values + at) &= *(const ints *)(mask + at);
}

static long most(const int64_t *starts, long sequences) {
    long found = 0;
    for (long s = 0; s < sequences; s++) found = starts[s + 1] - starts[s] > found ? starts[s + 1] - starts[s] : found;
    return found;
}

/* One head of one sequence: where its keys and queries lie, and its first column in every row. */
typedef struct {
    long head, offset, first_key, keys, padded, first_query, end_query;
} task;

INLINE task task_of(const attention *its, long number) {
    const long sequence = number / its->heads, head = number % its->heads;
    const long first = its->key_starts[sequence], keys = its->key_starts[sequence + 1] - first;
    return (task){head, head * its->head_width, first, keys, rounded_up(keys, WIDTH), its->query_starts[sequence],
                  its->query_starts[sequence + 1]};
}

/* Floats of memory for one thread, handed out piece by piece; every piece begins on a cache line. */
typedef struct {
    float *next;
} pieces;

/* Memory for so many pieces of a head's keys, of scores of queries at once, and of queries at once; `longest` and `wide`
   are whole vectors, so that no piece is rounded up. */
INLINE float *room(long of_keys, long of_scores, long of_queries, long longest, long wide) {
    const long count = of_keys * longest * wide + QUERIES_AT_ONCE * (of_scores * longest + of_queries * wide);
    return aligned_alloc(64, 4 * (size_t)rounded_up(count, 16));
}

INLINE float *piece(pieces *from, long count) {
    float *found = from->next;
    from->next += rounded_up(count, 16);
    return found;
}

INLINE void forward(kind type, const attention *its, void *out, long out_stride, int threads) {
    const long width = its->head_width, wide = rounded_up(width, WIDTH), tasks = its->sequences * its->heads;
    const long longest = rounded_up(most(its->key_starts, its->sequences), 2 * WIDTH);
    const float factor = 1.0f / sqrtf((float)width);
#pragma omp parallel num_threads(threads)
    {
        float *memory = room(3, 2, 2, longest, wide);
#pragma omp for schedule(dynamic, 4)
        for (long number = 0; number < tasks; number++) {
            const task here = task_of(its, number);
            const long keys = here.keys, padded = here.padded, offset = here.offset;
            pieces rest = {memory};
            float *key = piece(&rest, keys * wide), *columns = piece(&rest, width * padded);
            float *value = piece(&rest, keys * wide), *query = piece(&rest, QUERIES_AT_ONCE * wide);
            float *found = piece(&rest, QUERIES_AT_ONCE * padded), *attended = piece(&rest, QUERIES_AT_ONCE * wide);
            int32_t *mask = (int32_t *)piece(&rest, QUERIES_AT_ONCE * rounded_up(padded, 2 * WIDTH));
            gather(type, key, wide, its->key, its->key_stride, here.first_key, keys, width, offset, 1.0f);
            transpose(columns, padded, key, wide, keys, width);
            gather(type, value, wide, its->value, its->value_stride, here.first_key, keys, width, offset, 1.0f);
            for (long first = here.first_query; first < here.end_query; first += QUERIES_AT_ONCE) {
                const long left = here.end_query - first, queries = left < QUERIES_AT_ONCE ? left : QUERIES_AT_ONCE;
                gather(type, query, wide, its->query, its->query_stride, first, queries, width, offset, factor);
                probabilities(its, here.head, first, queries, keys, padded, query, wide, columns, found, mask);
                if (its->drop.rows) mask_all(found, mask, queries, padded);
                product(attended, wide, found, padded, 1, value, wide, queries, wide, keys, 0);
                scatter(type, out, out_stride, first, attended, wide, queries, width, offset, its->drop.scale);
            }
        }
        free(memory);
    }
}

/* The gradients have the strides of what they are gradients of. */
INLINE void backward(kind type, const attention *its, const void *gradient, long gradient_stride, void *to_query,
                     void *to_key, void *to_value, int threads) {
    const long width = its->head_width, wide = rounded_up(width, WIDTH), tasks = its->sequences * its->heads;
    const long longest = rounded_up(most(its->key_starts, its->sequences), 2 * WIDTH);
    const float factor = 1.0f / sqrtf((float)width);
#pragma omp parallel num_threads(threads)
    {
        float *memory = room(6, 3, 3, longest, wide);
#pragma omp for schedule(dynamic, 4)
        for (long number = 0; number < tasks; number++) {
            const task here = task_of(its, number);
            const long keys = here.keys, padded = here.padded, offset = here.offset;
            pieces rest = {memory};
            float *key = piece(&rest, keys * wide), *key_columns = piece(&rest, width * padded);
            float *value = piece(&rest, keys * wide), *value_columns = piece(&rest, width * padded);
            float *key_sums = piece(&rest, keys * wide), *value_sums = piece(&rest, keys * wide);
            float *query = piece(&rest, QUERIES_AT_ONCE * wide), *above = piece(&rest, QUERIES_AT_ONCE * wide);
            float *below = piece(&rest, QUERIES_AT_ONCE * wide), *found = piece(&rest, QUERIES_AT_ONCE * padded);
            float *changes = piece(&rest, QUERIES_AT_ONCE * padded);
            int32_t *mask = (int32_t *)piece(&rest, QUERIES_AT_ONCE * rounded_up(padded, 2 * WIDTH));
            gather(type, key, wide, its->key, its->key_stride, here.first_key, keys, width, offset, 1.0f);
            transpose(key_columns, padded, key, wide, keys, width);
            gather(type, value, wide, its->value, its->value_stride, here.first_key, keys, width, offset, 1.0f);
            transpose(value_columns, padded, value, wide, keys, width);
            memset(key_sums, 0, 4 * (size_t)(keys * wide));
            memset(value_sums, 0, 4 * (size_t)(keys * wide));
            for (long first = here.first_query; first < here.end_query; first += QUERIES_AT_ONCE) {
                const long left = here.end_query - first, queries = left < QUERIES_AT_ONCE ? left : QUERIES_AT_ONCE;
                gather(type, query, wide, its->query, its->query_stride, first, queries, width, offset, factor);
                gather(type, above, wide, gradient, gradient_stride, first, queries, width, offset, its->drop.scale);
                probabilities(its, here.head, first, queries, keys, padded, query, wide, key_columns, found, mask);
                product(changes, padded, above, wide, 1, value_columns, padded, queries, padded, width, 0);
                if (its->drop.rows) mask_all(changes, mask, queries, padded);
                softmax_backward(changes, found, queries, padded);
                product(below, wide, changes, padded, 1, key, wide, queries, wide, keys, 0);
                scatter(type, to_query, its->query_stride, first, below, wide, queries, width, offset, factor);
                product(key_sums, wide, changes, 1, padded, query, wide, keys, wide, queries, 1);
                if (its->drop.rows) mask_all(found, mask, queries, padded);
                product(value_sums, wide, found, 1, padded, above, wide, keys, wide, queries, 1);
            }
            scatter(type, to_key, its->key_stride, here.first_key, key_sums, wide, keys, width, offset, 1.0f);
            scatter(type, to_value, its->value_stride, here.first_key, value_sums, wide, keys, width, offset, 1.0f);
        }
        free(memory);
    }
}

void mtl_attention_forward(int type, const attention *its, void *out, long out_stride, int threads) {
    if (type == BF16) forward(BF16, its, out, out_stride, threads);
    else forward(FP32, its, out, out_stride, threads);
}

void mtl_attention_backward(int type, const attention *its, const void *gradient, long gradient_stride, void *to_query,
                            void *to_key, void *to_value, int threads) {
    if (type == BF16) backward(BF16, its, gradient, gradient_stride, to_query, to_key, to_value, threads);
    else backward(FP32, its, gradient, gradient_stride, to_query, to_key, to_value, threads);
}
