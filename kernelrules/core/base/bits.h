/* Words of 64 bits, each for a row or a level.
 *
 *     kr_lowest(word)    the place of the lowest bit that is set; the word is not 0
 */
#ifndef KERNELRULES_BITS_H
#define KERNELRULES_BITS_H

#include <stdint.h>

static inline int kr_lowest(uint64_t word)
{
    return __builtin_ctzll(word);
}

#endif
