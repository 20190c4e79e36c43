/* dlsym.S - dlsym() in front of the loader's.
 *
 * The real one reads its return address to know which object asks (RTLD_NEXT, and the
 * caller's namespace), so it must be reached by a jump with the caller's frame on top.
 * Pseudo handles (RTLD_DEFAULT 0, RTLD_NEXT -1) are always passed on: the first finds
 * our allocators by itself, the second is how wrappers find the allocator below them.
 */
#if defined(__x86_64__) && !defined(TM_TEST_ENTRIES)
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rsi, %rdi
    call tm_dlsym_concerns
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testl %eax, %eax
    je 1f
    leaq 1(%rdi), %rax
    cmpq $1, %rax
    ja tm_dlsym_allocator
1:  movq tm_real_dlsym(%rip), %rax
    jmp *%rax
    .cfi_endproc
    .size dlsym, . - dlsym
    .globl tm_own_dlsym
    .hidden tm_own_dlsym
    .set tm_own_dlsym, dlsym
    .hidden tm_dlsym_concerns
    .hidden tm_dlsym_allocator
    .hidden tm_real_dlsym
#endif
    .section .note.GNU-stack, "", @progbits
