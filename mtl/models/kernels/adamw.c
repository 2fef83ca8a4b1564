/* AdamW on all parameters in one call. Reference: torch.optim.AdamW.

   A step is bound by memory: every number is read and written once, a copy in bf16 is written on the way, and of rows
   of a table that have never had a gradient, whose moments are zeros, only the elements themselves are read. */

#include <math.h>

#include "vectors.h"

/* What a thread takes at once, in elements. */
enum { PIECE = 1 << 14 };

/* One parameter: its gradient of `type`, its moments, the steps that it has taken, and its copy in bf16 if it has one.
   Where there is `reached`, rows of `width` elements with a zero in it have moments and a gradient of zero. */
typedef struct {
    float *parameter, *mean, *square, *taken;
    void *copy;
    const void *gradient;
    const uint8_t *reached;
    int64_t count, width, type;
    double rate, decay;
} stepped;

/* Gradients are divided by `excess`. */
typedef struct {
    double beta1, beta2, epsilon, excess;
} settings;

typedef struct {
    float keep, excess, to_mean, beta2, to_square, root, epsilon, size;
} factors;

/* Of a step whose number, from 1, is `number`. */
static factors factors_of(const stepped *its, const settings *all, double number) {
    return (factors){
        .keep = (float)(1.0 - its->rate * its->decay),
        .excess = (float)all->excess,
        .to_mean = (float)(1.0 - all->beta1),
        .beta2 = (float)all->beta2,
        .to_square = (float)(1.0 - all->beta2),
        .root = (float)sqrt(1.0 - pow(all->beta2, number)),
        .epsilon = (float)all->epsilon,
        .size = (float)(its->rate / (1.0 - pow(all->beta1, number))),
    };
}

INLINE floats square_root(floats values) {
    for (int lane = 0; lane < WIDTH; lane++) values[lane] = sqrtf(values[lane]);
    return values;
}

/* Elements from `at` to `end`. */
INLINE void step_some(kind type, const stepped *its, const factors *by, long at, long end) {
    for (; at < end; at += WIDTH) {
        const long count = end - at;
        floats gradient = load_some(type, its->gradient, at, count) / by->excess;
        floats mean = load_some(FP32, its->mean, at, count), square = load_some(FP32, its->square, at, count);
        floats here = load_some(FP32, its->parameter, at, count) * by->keep;
        mean += by->to_mean * (gradient - mean);
        square = square * by->beta2 + by->to_square * gradient * gradient;
        here -= by->size * mean / (square_root(square) / by->root + by->epsilon);
        store_some(FP32, its->mean, at, mean, count);
        store_some(FP32, its->square, at, square, count);
        store_some(FP32, its->parameter, at, here, count);
        if (its->copy) store_some(BF16, its->copy, at, here, count);
    }
}

/* What is left of a step where gradient and moments are zero. */
INLINE void decay_some(const stepped *its, const factors *by, long at, long end) {
    if (by->keep == 1.0f && !its->copy) return;
    for (; at < end; at += WIDTH) {
        floats here = load_some(FP32, its->parameter, at, end - at) * by->keep;
        store_some(FP32, its->parameter, at, here, end - at);
        if (its->copy) store_some(BF16, its->copy, at, here, end - at);
    }
}

static void step_piece(const stepped *its, const factors *by, long at, long end) {
    if (its->type == BF16) step_some(BF16, its, by, at, end);
    else step_some(FP32, its, by, at, end);
}

static void step_rows(const stepped *its, const factors *by, long row, long end) {
    for (; row < end; row++) {
        if (its->reached[row]) step_piece(its, by, row * its->width, (row + 1) * its->width);
        else decay_some(its, by, row * its->width, (row + 1) * its->width);
    }
}

INLINE long least(long one, long other) { return one < other ? one : other; }

void mtl_adamw(const stepped *all, long parameters, const settings *its, int threads) {
#pragma omp parallel num_threads(threads)
    for (long number = 0; number < parameters; number++) {
        const stepped *here = all + number;
        const factors by = factors_of(here, its, *here->taken + 1.0);
        if (here->reached) {
            const long rows = here->count / here->width, at_once = 1 + PIECE / here->width;
#pragma omp for schedule(dynamic) nowait
            for (long row = 0; row < rows; row += at_once) step_rows(here, &by, row, least(row + at_once, rows));
        } else {
#pragma omp for schedule(dynamic) nowait
            for (long at = 0; at < here->count; at += PIECE) step_piece(here, &by, at, least(at + PIECE, here->count));
        }
    }
    for (long number = 0; number < parameters; number++) *all[number].taken += 1.0f;
}
