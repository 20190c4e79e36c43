/* recursion.c - allocates at a depth of 1000 native frames. */
#include <stdlib.h>

static void *__attribute__((noinline)) deep(int depth)
{
    void *block = depth ? deep(depth - 1) : malloc(3 << 20);
    __asm__ volatile("" ::: "memory");
    return block;
}

int main(void)
{
    return deep(1000) == NULL;
}
