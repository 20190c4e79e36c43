/* loader.h - whether the list of loaded objects can be read without a risk of deadlock (loader.c). */
#ifndef TIDEMARK_LOADER_H
#define TIDEMARK_LOADER_H

/* Finds the lock of the loader's list; called once, in the first image. */
void tm_loader_begin(void);
/* 0: this forked image must not read the list of objects, now or ever. Not locked. */
int tm_loader_is_safe(void);

#endif
