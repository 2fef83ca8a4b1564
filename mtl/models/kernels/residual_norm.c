/* Dropout, residual and layer norm, row by row. Reference: `residual.py` of the native pass.

   Sums and statistics are in fp32; the sum of residual and kept inputs is rounded once and kept for backward. */

#include <math.h>
#include <stdlib.h>

#include "vectors.h"

typedef struct {
    long rows, width;
    const float *weight, *bias;
    float epsilon;
    dropout drop;
} norm;

INLINE floats kept(floats values, const int32_t *mask, long at, float scale) {
    return (floats)((ints)values & *(const ints *)(mask + at)) * scale;
}

INLINE void forward(kind type, const norm *its, const void *inputs, const void *residual, void *summed, float *means,
                    float *deviations, void *out, int threads) {
    const long width = its->width, padded = rounded_up(width, 2 * WIDTH);
#pragma omp parallel num_threads(threads)
    {
        float *row = aligned_alloc(64, 4 * (size_t)rounded_up(padded, 16));
        int32_t *mask = aligned_alloc(64, 4 * (size_t)rounded_up(padded, 16));
#pragma omp for schedule(static)
        for (long r = 0; r < its->rows; r++) {
            if (its->drop.rows) keep_mask(mask, &its->drop, r, 0, width);
            floats sum = all(0.0f), squares = all(0.0f);
            for (long at = 0; at < width; at += WIDTH) {
                floats here = load_some(type, inputs, r * width + at, width - at);
                if (its->drop.rows) here = kept(here, mask, at, its->drop.scale);
                here += load_some(type, residual, r * width + at, width - at);
                if (type == BF16) here = widened(rounded(here));
                store_some(type, summed, r * width + at, here, width - at);
                *(floats *)(row + at) = here;
                sum += here;
            }
            const float mean = total(sum) / (float)width;
            for (long at = 0; at < width; at += WIDTH) {
                floats apart = *(floats *)(row + at) - mean;
                apart = chosen(LANES < (int32_t)(width - at), apart, all(0.0f));
                squares += apart * apart;
            }
            const float deviation = 1.0f / sqrtf(total(squares) / (float)width + its->epsilon);
            for (long at = 0; at < width; at += WIDTH) {
                floats weight = load_some(FP32, its->weight, at, width - at);
                floats bias = load_some(FP32, its->bias, at, width - at);
                floats here = (*(floats *)(row + at) - mean) * deviation * weight + bias;
                store_some(type, out, r * width + at, here, width - at);
            }
            means[r] = mean;
            deviations[r] = deviation;
        }
        free(row);
        free(mask);
    }
}

/* `to_weight` and `to_bias` hold `threads` partial sums (width,) each, in a fixed order of rows. */
INLINE void backward(kind type, const norm *its, const void *gradient, const void *summed, const float *means,
                     const float *deviations, void *to_inputs, void *to_residual, float *to_weight, float *to_bias,
                     int threads) {
    const long width = its->width, padded = rounded_up(width, 2 * WIDTH);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int part = 0; part < threads; part++) {
        float *scaled = aligned_alloc(64, 4 * (size_t)rounded_up(5 * padded, 16));
        float *normed = scaled + padded, *weights = scaled + 2 * padded, *biases = scaled + 3 * padded;
        int32_t *mask = (int32_t *)(scaled + 4 * padded);
        memset(weights, 0, 8 * (size_t)padded);
        for (long r = its->rows * part / threads; r < its->rows * (part + 1) / threads; r++) {
            if (its->drop.rows) keep_mask(mask, &its->drop, r, 0, width);
            floats sum = all(0.0f), along = all(0.0f);
            for (long at = 0; at < width; at += WIDTH) {
                floats above = load_some(type, gradient, r * width + at, width - at);
                floats here = (load_some(type, summed, r * width + at, width - at) - means[r]) * deviations[r];
                *(floats *)(weights + at) += above * here;
                *(floats *)(biases + at) += above;
                above *= load_some(FP32, its->weight, at, width - at);
                *(floats *)(scaled + at) = above;
                *(floats *)(normed + at) = here;
                sum += above;
                along += above * here;
            }
            const float mean = total(sum) / (float)width, slope = total(along) / (float)width;
            for (long at = 0; at < width; at += WIDTH) {
                floats below = (*(floats *)(scaled + at) - mean - *(floats *)(normed + at) * slope) * deviations[r];
                store_some(type, to_residual, r * width + at, below, width - at);
                if (!its->drop.rows) continue;
                store_some(type, to_inputs, r * width + at, kept(below, mask, at, its->drop.scale), width - at);
            }
        }
        memcpy(to_weight + part * width, weights, 4 * (size_t)width);
        memcpy(to_bias + part * width, biases, 4 * (size_t)width);
        free(scaled);
    }
}

void mtl_residual_norm_forward(int type, const norm *its, const void *inputs, const void *residual, void *summed,
                               float *means, float *deviations, void *out, int threads) {
    if (type == BF16) forward(BF16, its, inputs, residual, summed, means, deviations, out, threads);
    else forward(FP32, its, inputs, residual, summed, means, deviations, out, threads);
}

void mtl_residual_norm_backward(int type, const norm *its, const void *gradient, const void *summed, const float *means,
                                const float *deviations, void *to_inputs, void *to_residual, float *to_weight,
                                float *to_bias, int threads) {
    if (type == BF16)
        backward(BF16, its, gradient, summed, means, deviations, to_inputs, to_residual, to_weight, to_bias, threads);
    else
        backward(FP32, its, gradient, summed, means, deviations, to_inputs, to_residual, to_weight, to_bias, threads);
}
