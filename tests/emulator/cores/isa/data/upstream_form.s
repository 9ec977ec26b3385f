// A program in the form that Peano gives ELFs: a start at 0 that sets the stack and calls main, DONE behind it, data and
// bss in the core's own memory, a frame that grows upwards, a spilled lr, and a memcpy that goes byte by byte.
TARGET = 0x70400
        .text
        .globl  start
start:  jl      #main
        movxm   sp, #0x70000
        nop
        nop
        nop
        nop
        .p2align 4
        done

        .globl  main
        .p2align 4
main:   paddxm  [sp], #64
        st      lr, [sp, #-4]
        movxm   p1, #text
        jl      #memcpy
        movxm   p0, #TARGET
        movxm   r0, #13
        nop
        nop
        nop
        .p2align 4
        movxm   p0, #counter
        lda     r1, [p0, #0]
        lda     lr, [sp, #-4]
        nop
        nop
        nop
        nop
        nop
        add     r1, r1, #1
        st      r1, [p0, #0]
        ret
        paddxm  [sp], #-64
        nop
        nop
        nop
        nop

        .globl  memcpy
        .p2align 4
memcpy: lda.u8  r2, [p1], #1
        add     r0, r0, #-1
        nop
        nop
        nop
        nop
        nop
        st.s8   r2, [p0], #1
        jnz     r0, #memcpy
        nop
        nop
        nop
        nop
        nop
        ret
        nop
        nop
        nop
        nop
        nop

        .section .data, 0x70500
text:   .ascii  "thirteen byte"
        .section .bss, 0x70520
counter: .zero  4
