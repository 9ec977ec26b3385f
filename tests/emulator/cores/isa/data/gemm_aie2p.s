// C = A x B for ever, int8 64 x 64 x 64 with int32 results, on AIE2P: takes A, B and room for C by locks, gives them back.
// A and B lie as 8 x 8 tiles of 64 bytes, row by row, C as tiles of 256 bytes.
A = 0x70400
B = 0x71400
C = 0x72400
A_FREE = 48
A_FULL = 49
B_FREE = 50
B_FULL = 51
C_FREE = 52
C_FULL = 53

        .globl  main
main:   movxm   ls, #loop
        movxm   le, #last
        movxm   m0, #512                // from one tile of B to that below
        movxm   m1, #-4032              // from below a column of tiles to the top of the next
        movxm   r0, #0x308              // 8 x 8 x 8, both signed
        movxm   r1, #-1
        mova    r2, #1
        .p2align 4
again:  acq     #A_FULL, r1
        movxm   p0, #A
        movxm   p2, #C
        movx    r5, #8
        acq     #B_FULL, r1
        nop
        nop
        nop
        acq     #C_FREE, r1
        .p2align 4
rows:   movxm   p1, #B
        mova    r6, #8
        .p2align 4
columns: movx   lc, #8 ; vclr dm0
        .p2align 4
loop:   vlda    x0, [p0], #64 ; vldb x1, [p1], m0
        nop
        nop
        nop
        nop
        nop
        nopa ; nopb ; nops ; nopx ; nopm ; nopv         // 16 bytes, so that `last` needs no further bundle
        .p2align 4
last:   nopa ; nopb ; nops ; nopx ; nopm ; vmac dm0, dm0, x0, x1, r0
        nop
        nop
        nop
        nop
        add     r6, r6, #-1
        vst     bmll0, [p2], #64
        vst     bmlh0, [p2], #64
        jnz     r6, #columns
        vst     bmhl0, [p2], #64
        vst     bmhh0, [p2], #64
        padda   [p0], #-512 ; paddb [p1], m1
        nop
        nop
        padda   [p0], #448
        padda   [p0], #64 ; add r5, r5, #-1
        jnz     r5, #rows
        nop
        nop
        nop
        nop
        nop
        rel     #A_FREE, r2
        nop
        nop
        nop
        rel     #B_FREE, r2
        nop
        nop
        nop
        rel     #C_FULL, r2
        j       #again
        nop
        nop
        nop
        nop
        nop
