/* Attention over packed sequences, every sequence and head for itself. Reference: `attention.py` of the native pass.

   Rows of queries, keys and values lie apart by strides counted in elements; sequence s has the rows from starts[s] to
   starts[s + 1]. Keys and values have the same starts; there may be fewer queries than keys (the first token's alone).
   Sums are in fp32. Backward computes probabilities again instead of keeping them. */

#include <math.h>
#include <stdlib.h>

#include "products.h"

enum { QUERIES_AT_ONCE = 32 };

typedef struct {
    long sequences, heads, head_width;
    const int64_t *query_starts, *key_starts;
    const void *query, *key, *value;
    long query_stride, key_stride, value_stride;
    dropout drop; /* Its rows are those of the queries. */
} attention;

/* In place over the first `count` of `padded` scores, times `factor`; the rest become zeros. */
static void softmax(float *scores, long count, long padded, float factor) {
    floats highest = all(-INFINITY), sum = all(0.0f);
    for (long at = 0; at < padded; at += WIDTH) {
        floats here = chosen(LANES < (int32_t)(count - at), *(floats *)(scores + at) * factor, all(-INFINITY));
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

/* Gradients of probabilities become those of scores times `factor`, in place: P (dP - sum P dP) by row. */
static void softmax_backward(float *changes, const float *found, long rows, long padded, float factor) {
    for (long row = 0; row < rows; row++, changes += padded, found += padded) {
        floats sum = all(0.0f);
        for (long at = 0; at < padded; at += WIDTH) sum += *(floats *)(changes + at) * *(const floats *)(found + at);
        const float mean = total(sum);
        for (long at = 0; at < padded; at += WIDTH)
            *(floats *)(changes + at) = (*(floats *)(changes + at) - mean) * (*(const floats *)(found + at) * factor);
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

/* Words of memory for one thread, handed out piece by piece; every piece begins on a cache line. */
typedef struct {
    void *next;
} pieces;

/* Memory for so many pieces of a head's keys, of scores of queries at once, and of queries at once; `longest` and
   `wide` are whole vectors, so that no piece is rounded up. */
INLINE void *room(long of_keys, long of_scores, long of_queries, long longest, long wide) {
    const long count = of_keys * longest * wide + QUERIES_AT_ONCE * (of_scores * longest + of_queries * wide);
    return aligned_alloc(64, 4 * (size_t)rounded_up(count, 16));
}

INLINE void *piece(pieces *from, long count) {
    void *found = from->next;
    from->next = (uint32_t *)found + rounded_up(count, 16);
    return found;
}

/* Softmax of the scores of `queries` from row `first` on, and what dropout keeps of it, unscaled. */
static void probabilities(kind type, const attention *its, const task *here, long first, long queries,
                          const uint32_t *query, long row_words, const uint32_t *key_columns, long words, float factor,
                          float *found, int32_t *mask) {
    const long padded = here->padded;
    product(type, found, padded, query, row_words, 1, key_columns, padded, queries, padded, words, 0);
    for (long row = 0; row < queries; row++) {
        softmax(found + row * padded, here->keys, padded, factor);
        if (its->drop.rows)
            keep_mask(mask + row * rounded_up(padded, 2 * WIDTH), &its->drop, first + row, here->head, padded);
    }
}

INLINE void forward(kind type, const attention *its, void *out, long out_stride, int threads) {
    const long width = its->head_width, wide = rounded_up(width, WIDTH), tasks = its->sequences * its->heads;
    const long longest = rounded_up(most(its->key_starts, its->sequences), 2 * WIDTH);
    const long per = PER_WORD(type), row_words = wide / per, words = (width + per - 1) / per;
    const float factor = 1.0f / sqrtf((float)width);
#pragma omp parallel num_threads(threads)
    {
        void *memory = room(4, 3, 2, longest, wide);
#pragma omp for schedule(dynamic, 4)
        for (long number = 0; number < tasks; number++) {
            const task here = task_of(its, number);
            const long keys = here.keys, padded = here.padded, offset = here.offset;
            pieces rest = {memory};
            uint32_t *key = piece(&rest, keys * wide), *key_columns = piece(&rest, wide * padded);
            uint32_t *value = piece(&rest, keys * wide), *value_room = piece(&rest, keys * wide);
            uint32_t *query = piece(&rest, QUERIES_AT_ONCE * wide), *kept_room = piece(&rest, QUERIES_AT_ONCE * padded);
            float *found = piece(&rest, QUERIES_AT_ONCE * padded), *attended = piece(&rest, QUERIES_AT_ONCE * wide);
            int32_t *mask = piece(&rest, QUERIES_AT_ONCE * rounded_up(padded, 2 * WIDTH));
            gather(type, key, wide, its->key, its->key_stride, here.first_key, keys, width, offset);
            gather(type, value, wide, its->value, its->value_stride, here.first_key, keys, width, offset);
            as_columns(key_columns, padded, key, row_words, keys, words);
            const uint32_t *value_pairs = as_pairs(type, value_room, value, keys, wide);
            for (long first = here.first_query; first < here.end_query; first += QUERIES_AT_ONCE) {
                const long left = here.end_query - first, queries = left < QUERIES_AT_ONCE ? left : QUERIES_AT_ONCE;
                gather(type, query, wide, its->query, its->query_stride, first, queries, width, offset);
                probabilities(type, its, &here, first, queries, query, row_words, key_columns, words, factor, found,
                              mask);
                if (its->drop.rows) mask_all(found, mask, queries, padded);
                const uint32_t *kept = as_rows(type, kept_room, found, queries, padded);
                product(type, attended, wide, kept, padded / per, 1, value_pairs, wide, queries, wide,
                        (keys + per - 1) / per, 0);
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
    const long per = PER_WORD(type), row_words = wide / per, words = (width + per - 1) / per;
    const float factor = 1.0f / sqrtf((float)width);
#pragma omp parallel num_threads(threads)
    {
        void *memory = room(7, 6, 5, longest, wide);
#pragma omp for schedule(dynamic, 4)
        for (long number = 0; number < tasks; number++) {
            const task here = task_of(its, number);
            const long keys = here.keys, padded = here.padded, offset = here.offset;
            const long of_queries = QUERIES_AT_ONCE * wide, of_scores = QUERIES_AT_ONCE * padded;
            pieces rest = {memory};
            uint32_t *key = piece(&rest, keys * wide), *key_columns = piece(&rest, wide * padded);
            uint32_t *key_room = piece(&rest, keys * wide);
            uint32_t *value = piece(&rest, keys * wide), *value_columns = piece(&rest, wide * padded);
            float *key_sums = piece(&rest, keys * wide), *value_sums = piece(&rest, keys * wide);
            uint32_t *query = piece(&rest, of_queries), *query_room = piece(&rest, of_queries);
            uint32_t *above = piece(&rest, of_queries), *above_room = piece(&rest, of_queries);
            float *below = piece(&rest, of_queries), *found = piece(&rest, of_scores);
            float *changes = piece(&rest, of_scores);
            uint32_t *rows_room = piece(&rest, of_scores), *pairs_room = piece(&rest, of_scores);
            int32_t *mask = piece(&rest, QUERIES_AT_ONCE * rounded_up(padded, 2 * WIDTH));
            gather(type, key, wide, its->key, its->key_stride, here.first_key, keys, width, offset);
            gather(type, value, wide, its->value, its->value_stride, here.first_key, keys, width, offset);
            as_columns(key_columns, padded, key, row_words, keys, words);
            as_columns(value_columns, padded, value, row_words, keys, words);
            const uint32_t *key_pairs = as_pairs(type, key_room, key, keys, wide);
            memset(key_sums, 0, 4 * (size_t)(keys * wide));
            memset(value_sums, 0, 4 * (size_t)(keys * wide));
            for (long first = here.first_query; first < here.end_query; first += QUERIES_AT_ONCE) {
                const long left = here.end_query - first, queries = left < QUERIES_AT_ONCE ? left : QUERIES_AT_ONCE;
                const long query_words = (queries + per - 1) / per;
                gather(type, query, wide, its->query, its->query_stride, first, queries, width, offset);
                gather(type, above, wide, gradient, gradient_stride, first, queries, width, offset);
                const uint32_t *query_pairs = as_pairs(type, query_room, query, queries, wide);
                const uint32_t *above_pairs = as_pairs(type, above_room, above, queries, wide);
                probabilities(type, its, &here, first, queries, query, row_words, key_columns, words, factor, found,
                              mask);
                product(type, changes, padded, above, row_words, 1, value_columns, padded, queries, padded, words, 0);
                if (its->drop.rows) mask_all(changes, mask, queries, padded);
                softmax_backward(changes, found, queries, padded, factor * its->drop.scale);
                const uint32_t *change_rows = as_rows(type, rows_room, changes, queries, padded);
                product(type, below, wide, change_rows, padded / per, 1, key_pairs, wide, queries, wide,
                        (keys + per - 1) / per, 0);
                scatter(type, to_query, its->query_stride, first, below, wide, queries, width, offset, 1.0f);
                const uint32_t *change_pairs = as_pairs(type, pairs_room, change_rows, queries, padded);
                product(type, key_sums, wide, change_pairs, 1, padded, query_pairs, wide, keys, wide, query_words, 1);
                if (its->drop.rows) mask_all(found, mask, queries, padded);
                const uint32_t *kept_rows = as_rows(type, rows_room, found, queries, padded);
                const uint32_t *kept_pairs = as_pairs(type, pairs_room, kept_rows, queries, padded);
                product(type, value_sums, wide, kept_pairs, 1, padded, above_pairs, wide, keys, wide, query_words, 1);
            }
            scatter(type, to_key, its->key_stride, here.first_key, key_sums, wide, keys, width, offset, 1.0f);
            scatter(type, to_value, its->value_stride, here.first_key, value_sums, wide, keys, width, offset,
                    its->drop.scale);
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
