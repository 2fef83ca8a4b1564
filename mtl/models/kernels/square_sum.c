/* The sum of the squares of many tensors' elements. Reference: torch.nn.utils.get_total_norm.

   Pieces of a fixed size have a sum each, and these are added in their order: the number of threads changes nothing. */

#include <stdlib.h>

#include "vectors.h"

enum { PIECE = 1 << 14, SUMS = 4 };

typedef struct {
    const void *elements;
    int64_t count, type;
} counted;

INLINE double sum_piece(kind type, const void *elements, long at, long end) {
    floats sums[SUMS] = {0};
    for (; at + SUMS * WIDTH <= end; at += SUMS * WIDTH)
        _Pragma("GCC unroll 4") for (int i = 0; i < SUMS; i++) {
            const floats here = load(type, elements, at + i * WIDTH);
            sums[i] += here * here;
        }
    for (; at < end; at += WIDTH) {
        const floats here = load_some(type, elements, at, end - at);
        sums[0] += here * here;
    }
    return (double)total(sums[0] + sums[1] + sums[2] + sums[3]);
}

/* Not finite where an element is not. */
double mtl_square_sum(const counted *all, long tensors, int threads) {
    long pieces = 0;
    for (long number = 0; number < tensors; number++) pieces += (all[number].count + PIECE - 1) / PIECE;
    double *sums = malloc(sizeof(double) * (size_t)pieces), found = 0.0;
#pragma omp parallel num_threads(threads)
    {
        double *here = sums;
        for (long number = 0; number < tensors; number++) {
            const counted *its = all + number;
#pragma omp for schedule(dynamic) nowait
            for (long at = 0; at < its->count; at += PIECE) {
                const long end = at + PIECE < its->count ? at + PIECE : its->count;
                here[at / PIECE] = its->type == BF16 ? sum_piece(BF16, its->elements, at, end)
                                                     : sum_piece(FP32, its->elements, at, end);
            }
            here += (its->count + PIECE - 1) / PIECE;
        }
    }
    for (long piece = 0; piece < pieces; piece++) found += sums[piece];
    free(sums);
    return found;
}
