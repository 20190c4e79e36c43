/* Binds functions to the versions that glibc 2.28 has, although a newer glibc is compiled against. It is
 * included by the compiler's -include before each source (Makefile); names that a source does not use
 * have no effect.
 *
 * glibc 2.34 moved libpthread into libc.so.6 and gave its functions the new version GLIBC_2.34. glibc 2.38
 * declares strtol and its relatives as __isoc23_strtol, version GLIBC_2.38, which also accepts "0b1". Both
 * libraries keep the old versions for programs that were linked before (glibc: nptl/Versions,
 * stdlib/Versions; `objdump -T libc.so.6`). */
#ifndef TM_GLIBC_VERSIONS_H
#define TM_GLIBC_VERSIONS_H

#if defined(__x86_64__) && !defined(__ASSEMBLER__)
#define TM_OLDEST "GLIBC_2.2.5"
__asm__(".symver pthread_key_create, pthread_key_create@" TM_OLDEST);
__asm__(".symver pthread_getspecific, pthread_getspecific@" TM_OLDEST);
__asm__(".symver pthread_setspecific, pthread_setspecific@" TM_OLDEST);
__asm__(".symver __isoc23_strtol, strtol@" TM_OLDEST);
__asm__(".symver __isoc23_strtoul, strtoul@" TM_OLDEST);
__asm__(".symver __isoc23_strtoull, strtoull@" TM_OLDEST);
#undef TM_OLDEST
#endif

#endif
