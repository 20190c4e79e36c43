/* Keeps five of ten blocks of 10,000 to 100,000 bytes and copies each once, for the tests of importers. */
#include <stdlib.h>
#include <string.h>

static char from[100000];

static void *keep(size_t size) {
  void *block = malloc(size);
  memcpy(block, from, size);
  return block;
}

int main(void) {
  void *volatile blocks[10];
  for (int i = 0; i < 10; i++) {
    blocks[i] = keep(10000 * (i + 1));
  }
  for (int i = 0; i < 10; i++) {
    if (i < 5) {
      free(blocks[i]);
    }
    blocks[i] = 0;
  }
  return 0;
}
