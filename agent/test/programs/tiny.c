/* tiny.c - allocates 3 MiB in constructors, main and exit handlers; exits immediately. */
#include <stdlib.h>
#include <string.h>

static void *kept[3];
static void keep(int at)
{
    kept[at] = malloc(1 << 20);
    memset(kept[at], 1, 1 << 20);
}
__attribute__((constructor)) static void early(void) { keep(0); }
static void late(void) { keep(2); }
int main(int count, char **arguments)
{
    (void)arguments;
    keep(1);
    atexit(late);
    if (count > 1)
        abort();
    return 0;
}
