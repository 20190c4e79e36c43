/* A host that loads libpython late and privately (RTLD_LOCAL), as plug-ins do.
 *     host LIBRARY SCRIPT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    usleep(20000); /* the agent searches for new objects from time to time */
    for (int i = 0; i < 100; i++)
        free(malloc(100000));
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    ((void (*)(int))dlsym(library, "Py_InitializeEx"))(0);
    FILE *script = fopen(arguments[2], "r");
    return ((int (*)(FILE *, const char *))dlsym(library, "PyRun_SimpleFile"))(script, arguments[2]);
}
