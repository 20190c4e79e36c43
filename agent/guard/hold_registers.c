/* hold_registers.c - the general registers of every stopped task, for an unwinder outside.
 *
 * They are read and never written: a thread whose registers were rewritten does not always return to the system
 * call that it was in (docs/spine.md).
 */
#include "hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>

/* A TAB and 16 hexadecimal digits for each, preceded by the thread's id. */
#define LONGEST_TASK (18 * (HELD_REGISTERS + 1))

char *describe_registers(const struct held *held) {
    char *text = malloc(held->count * LONGEST_TASK + sizeof "registers\n");
    if (!text)
        return NULL;
    size_t used = (size_t)sprintf(text, "registers");
    for (size_t i = 0; i < held->count; i++) {
        struct user_regs_struct r;
        if (!held->tasks[i].is_stopped || ptrace(PTRACE_GETREGS, held->tasks[i].tid, 0, &r) != 0)
            continue; /* killed in the meantime */
        const unsigned long long values[HELD_REGISTERS] = {
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
            r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip,
        };
        used += (size_t)sprintf(text + used, "\t%d", (int)held->tasks[i].tid);
        for (size_t j = 0; j < HELD_REGISTERS; j++)
            used += (size_t)sprintf(text + used, "\t%llx", values[j]);
    }
    text[used++] = '\n';
    text[used] = '\0';
    return text;
}
