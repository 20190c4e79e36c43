/* A program that never rests: looked at at any moment, it is somewhere in main > outer > middle > leaves, in the
 * first or last instructions of a function, in the linkage table's entries, or in the C library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLED __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")

static int CALLED leaf(int x) { return x * 31 ^ (x >> 3); }
static int CALLED by_library(const void *a, const void *b) { int x = leaf(*(const int *)a); RETURNS; return x - *(const int *)b; }
static int CALLED middle(int x) {
    int numbers[8];
    char text[40];
    for (int i = 0; i < 8; i++)
        numbers[i] = leaf(x + i);
    qsort(numbers, 8, sizeof *numbers, by_library);
    snprintf(text, sizeof text, "%d", numbers[3]);
    RETURNS;
    return (int)strlen(text) + abs(numbers[2]);
}
static int CALLED outer(int x) { int sum = 0; for (int i = 0; i < 50; i++) sum += middle(x + i); RETURNS; return sum; }

int main(void) {
    puts("ready");
    fflush(stdout);
    for (int x = 0;; x = outer(x))
        RETURNS;
}
