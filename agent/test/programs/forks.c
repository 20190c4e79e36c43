/* forks.c - 200 children at once, each allocating 2 MiB in 20 KiB blocks and keeping half. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    static pid_t children[200];
    for (int i = 0; i < 200; i++) {
        children[i] = fork();
        if (children[i] < 0)
            return 1;
        if (children[i] == 0) {
            for (int k = 0; k < 100; k++) {
                void *block = malloc(20480);
                if (k % 2)
                    free(block);
            }
            exit(i % 100);
        }
    }
    for (int i = 0; i < 200; i++) {
        int status;
        if (waitpid(children[i], &status, 0) != children[i] || !WIFEXITED(status) || WEXITSTATUS(status) != i % 100)
            return 2;
    }
    puts("fine");
    return 0;
}
