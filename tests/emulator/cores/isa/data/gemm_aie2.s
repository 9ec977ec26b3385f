// C = A x B for ever, int8 64 x 64 x 64 with int32 results, on AIE2: takes A, B and room for C by locks, gives them back.
// A lies as 4 x 8 tiles of 32 bytes, B as 8 x 8 tiles of 64, row by row, C as 4 x 8 tiles of 128 bytes.
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
        movxm   m0, #480                // from the second half of a tile of B to the tile below
        movxm   m1, #-4032              // from below a column of tiles to the top of the next
        movxm   r0, #0x308              // 4 x 8 x 8, both signed
        movxm   r1, #-1
        movxm   p0, #A
        vlda    wh0, [p0, #0]           // the upper half of A's register is not used
        movxm   r2, #1
        .p2align 4
again:  acq     #A_FULL, r1
        movxm   p0, #A
        movxm   p2, #C
        movxm   r5, #16
        acq     #B_FULL, r1
        nop
        nop
        nop
        acq     #C_FREE, r1
        .p2align 4
rows:   movxm   p1, #B
        movxm   r6, #8
        .p2align 4
columns: movx   lc, #8 ; vclr cm0
        .p2align 4
loop:   vldb    wl2, [p1], #32
        vlda    wl0, [p0], #32 ; vldb wh2, [p1], m0
        nop
        nop
        nop
        nop
        nopa ; nopb ; nops ; nopx ; nopm ; nopv
        nopa ; nopb ; nops ; nopx ; nopm ; nopv
        .p2align 4
last:   nopa ; nopb ; nops ; nopx ; nopm ; vmac cm0, cm0, x0, x2, r0
        nop
        nop
        nop
        nop
        add     r6, r6, #-1
        vst     amll0, [p2], #32
        vst     amlh0, [p2], #32
        jnz     r6, #columns
        vst     amhl0, [p2], #32
        vst     amhh0, [p2], #32
        padda   [p0], #-256 ; paddb [p1], m1
        nop
        nop
        padda   [p0], #256 ; add r5, r5, #-1
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
