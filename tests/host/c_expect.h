#ifndef C_EXPECT_H
#define C_EXPECT_H
/* Checks of the programs in C: the first that fails ends the program with 1 and says why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bdforge.h"

static void require(int holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "%s; last message: %s\n", what, bdforge_message());
    exit(1);
}

static void expect(bdforge_status got, bdforge_status wanted, const char* part) {
    if (got == wanted && strstr(bdforge_message(), part) != NULL) return;
    fprintf(stderr, "status %s, expected %s with \"%s\": %s\n", bdforge_status_name(got), bdforge_status_name(wanted),
            part, bdforge_message());
    exit(1);
}

#endif
