// What a core of an int8 x int8 -> int32 GEMM design does, as machine code of AIE2P: for each output tile, C = sum of
// A x B over K/k steps, 2 x 2 blocks of 8 x 8 x 8 products at a time.
//
// Symbols of the design (`bdforge asm --design`): buffers a_ping ... c_ping and rtp, locks a_free ... go. TILE_M,
// TILE_K and TILE_N are those of a core: M and N multiples of 16, K a multiple of 8 from 24 on.
//   a   int8 [m/8][k/8][8][8]     b   int8 [n/8][k/8][8][8]     c   int32 [m/8][n/8][8][8]
//   rtp  word 0: steps of K, word 1: output tiles
//
// Cost: 4 bundles for 4 products in the loop; 68 more for each block of 2 x 2, in which C comes and goes.

ROW     = TILE_K * 8                    // bytes of a row of micro-tiles of A, or a column of B's
C_ROW   = TILE_N * 32                   // bytes of a row of micro-tiles of C

        .globl  main
main:   movxm   r0, #0x308              // 8 x 8 x 8, both signed
        movxm   r1, #-1
        mova    r2, #1
        movxm   r10, #a_ping
        movxm   r11, #a_pong
        movxm   r12, #b_ping
        movxm   r13, #b_pong
        movxm   m0, #ROW                // to the next row of A, column of B
        movxm   m1, #64 - ROW           // and back, a tile further
        movxm   m2, #C_ROW - 448        // from the last part of two tiles of C to those below
        movxm   m3, #64 - C_ROW         // and on to the next two beside the first
        movxm   m4, #C_ROW
        movxm   m5, #0 - ROW
        movxm   m6, #2 * ROW
        movxm   p5, #rtp
        .p2align 4
gemm:   acq     #go, r1
        nop
        nop
        nop
        lda     r8, [p5, #4]            // output tiles
        nop
        nop
        nop
        .p2align 4
tile:   acq     #c_free, r1
        lda     r7, [p5, #0]            // steps of K
        movxm   p2, #c_ping
        movxm   lc, #TILE_M * TILE_N / 16
        movxm   ls, #zero
        movxm   le, #zero
        vclr    dm4
        nop
        nop
        nop
        nop
        nop
        nop
        .p2align 4
zero:   nopa ; nopb ; vst bmll4, [p2], #64 ; nopx ; nopm ; nopv
        .p2align 4
step:   acq     #a_full, r1
        movxm   ls, #loop
        movxm   le, #last
        movxm   p2, #c_ping
        movxm   p3, #c_ping
        acq     #b_full, r1
        mov     p0, r10
        mov     p1, r12
        mov     r14, r12
        movxm   r5, #TILE_M / 16
        .p2align 4
rows:   movxm   r6, #TILE_N / 16
        nop
        .p2align 4
block:  vlda    bmll0, [p2], #64 ; movx lc, #TILE_K / 8 - 2
        vlda    bmlh0, [p2], #64
        vlda    bmhl0, [p2], #64
        vlda    bmhh0, [p2], #64
        vlda    bmll1, [p2], #64
        vlda    bmlh1, [p2], #64
        vlda    bmhl1, [p2], #64
        vlda    bmhh1, [p2], m2
        vlda    bmll2, [p2], #64
        vlda    bmlh2, [p2], #64
        vlda    bmhl2, [p2], #64
        vlda    bmhh2, [p2], #64
        vlda    bmll3, [p2], #64
        vlda    bmlh3, [p2], #64
        vlda    bmhl3, [p2], #64
        vlda    bmhh3, [p2], m3
        .p2align 4                      // bundles of 16 bytes from here on: to align costs cycles, which loads count
        vlda    x0, [p0], m0 ; vldb x2, [p1], m0 ; nops ; nopx ; nopm ; nopv
        vlda    x1, [p0], m1 ; vldb x3, [p1], m1 ; nops ; nopx ; nopm ; nopv
        nopa ; nopb ; nops ; nopx ; nopm ; nopv
        nopa ; nopb ; nops ; nopx ; nopm ; nopv
        vlda    x0, [p0], m0 ; vldb x2, [p1], m0 ; nops ; nopx ; nopm ; nopv
        vlda    x1, [p0], m1 ; vldb x3, [p1], m1 ; nops ; nopx ; nopm ; nopv
        nopa ; nopb ; nops ; nopx ; nopm ; nopv
        nopa ; nopb ; nops ; nopx ; nopm ; nopv
        // Products of the step before the last, beside loads of this one.
        .old    x0, x2
loop:   vlda    x0, [p0], m0 ; vldb x2, [p1], m0 ; nops ; nopx ; nopm ; vmac dm0, dm0, x0, x2, r0
        .old    x0, x1, x3
        vlda    x1, [p0], m1 ; vldb x3, [p1], m1 ; nops ; nopx ; nopm ; vmac dm1, dm1, x0, x3, r0
        .old    x1, x2
        nopa ; nopb ; nops ; nopx ; nopm ; vmac dm2, dm2, x1, x2, r0
        .old    x1, x3
last:   nopa ; nopb ; nops ; nopx ; nopm ; vmac dm3, dm3, x1, x3, r0
        .old    x0, x2
        padda   [p0], m5 ; vmac dm0, dm0, x0, x2, r0
        .old    x0, x3
        vmac    dm1, dm1, x0, x3, r0
        .old    x1, x2
        vmac    dm2, dm2, x1, x2, r0 ; add r6, r6, #-1
        .old    x1, x3
        vmac    dm3, dm3, x1, x3, r0
        vmac    dm0, dm0, x0, x2, r0
        vmac    dm1, dm1, x0, x3, r0
        vmac    dm2, dm2, x1, x2, r0
        vmac    dm3, dm3, x1, x3, r0
        paddb   [p1], m0
        nop
        vst     bmll0, [p3], #64
        vst     bmlh0, [p3], #64
        vst     bmhl0, [p3], #64
        vst     bmhh0, [p3], #64
        vst     bmll1, [p3], #64
        vst     bmlh1, [p3], #64
        vst     bmhl1, [p3], #64
        vst     bmhh1, [p3], m2
        vst     bmll2, [p3], #64
        vst     bmlh2, [p3], #64
        vst     bmhl2, [p3], #64 ; jnz r6, #block
        vst     bmhh2, [p3], #64
        vst     bmll3, [p3], #64
        vst     bmlh3, [p3], #64
        vst     bmhl3, [p3], #64
        vst     bmhh3, [p3], m3
        padda   [p0], m6 ; add r5, r5, #-1 ; mov p1, r14
        padda   [p2], m4 ; jnz r5, #rows
        padds   [p3], m4
        nop
        nop
        nop
        nop
        rel     #a_free, r2
        mov     r14, r10
        mov     r10, r11
        mov     r11, r14
        rel     #b_free, r2
        add     r7, r7, #-1 ; mov r14, r12
        mov     r12, r13
        jnz     r7, #step
        mov     r13, r14
        nop
        nop
        nop
        nop
        rel     #c_full, r2
        add     r8, r8, #-1
        jnz     r8, #tile
        nop
        nop
        nop
        nop
        nop
        j       #gemm
        nop
        nop
        nop
        nop
        nop
