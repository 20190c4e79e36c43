/* The start of the guard, for a C library older than the one that it was linked against.
 *
 * crt1.o of glibc 2.34 and newer calls __libc_start_main in its version GLIBC_2.34, which older libraries lack.
 * The linker's --wrap (Makefile) redirects that call to this file, which calls the first version, which every
 * glibc has.
 *
 * crt1.o of 2.34 passes no `init`: the new version runs the constructors itself. The first version in a new
 * library also does so if `init` is null; in an older library, nothing runs them. The guard has no
 * constructors. */
typedef int main_function(int, char **, char **);

int __wrap___libc_start_main(main_function *main, int count, char **words, void (*init)(void), void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end);
int tm_first_libc_start_main(main_function *main, int count, char **words, void (*init)(void), void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end);

__asm__(".symver tm_first_libc_start_main, __libc_start_main@GLIBC_2.2.5");

int __wrap___libc_start_main(main_function *main, int count, char **words, void (*init)(void), void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end) {
    return tm_first_libc_start_main(main, count, words, init, fini, rtld_fini, stack_end);
}
