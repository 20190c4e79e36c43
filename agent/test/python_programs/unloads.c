/* A host that finalizes its interpreter, unloads it, and continues without it.
 *     unloads LIBRARY */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 3;
    ((void (*)(int))dlsym(library, "Py_InitializeEx"))(0);
    if (((int (*)(const char *))dlsym(library, "PyRun_SimpleString"))("kept = [bytes(8 << 20) for _ in range(20)]") != 0)
        return 4;
    if (((int (*)(void))dlsym(library, "Py_FinalizeEx"))() != 0 || dlclose(library) != 0)
        return 5;
    for (int i = 0; i < 50; i++)
        free(malloc(8 << 20));
    puts("fine");
    return 0;
}
