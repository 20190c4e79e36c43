/* A host that outlives its interpreter: finalizes it, continues without it, and initializes another. At its end
 * it holds 310000000 bytes of its own, allocated between the two, and what the second interpreter holds. In
 * between, it waits for a while like an idle service. With BRIEF set, the first interpreter allocates next to
 * nothing and has ended before it can be observed.
 *     outlives LIBRARY */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *library;

static void run(const char *text)
{
    ((void (*)(int))dlsym(library, "Py_InitializeEx"))(0);
    if (((int (*)(const char *))dlsym(library, "PyRun_SimpleString"))(text) != 0)
        _exit(4);
}

/* In blocks as large as the coarsest period, so that each is sampled soon, however slow the machine. */
static void work_for(time_t seconds)
{
    time_t end = time(NULL) + seconds;
    for (int i = 0; i < 200 || time(NULL) < end; i++) {
        free(malloc(8 << 20));
        usleep(1000);
    }
}

int main(int count, char **arguments)
{
    library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library)
        return 3;
    run(getenv("BRIEF") ? "pass" :
        "import mmap\n"
        "def first():\n  return bytes(300000000 - bytes().__sizeof__()), mmap.mmap(-1, 409600000)\nkept = first()");
    if (((int (*)(void))dlsym(library, "Py_FinalizeEx"))() != 0)
        return 5;
    work_for(3);
    void *own = malloc(310000000);
    /* An interpreter is found at a sample about 10 ms after it began. */
    run("import time\nfor _ in range(50):\n  bytes(16 << 20)\n  time.sleep(0.002)\n"
        "def second():\n  return bytes(320000000 - bytes().__sizeof__())\nkept = second()");
    puts("fine");
    fflush(stdout);
    _exit(own ? 0 : 6);
}
