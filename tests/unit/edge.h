/* edge.h -- inputs that end where readable memory ends: a parser that looks one byte too far
 * crashes, in any build. */
#ifndef WEIR_TESTS_UNIT_EDGE_H
#define WEIR_TESTS_UNIT_EDGE_H

#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EDGE_ROOM (256 * 1024)

/* A copy of the bytes, the last one before memory that cannot be read.  Good until the next. */
static inline char *at_edge(const char *bytes, size_t len)
{
    static char *room;

    if (room == NULL) {
        room =
            mmap(NULL, 2 * EDGE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(room, MAP_FAILED);
        assert_int_equal(mprotect(room + EDGE_ROOM, EDGE_ROOM, PROT_NONE), 0);
    }
    assert_true(len <= EDGE_ROOM);
    return memcpy(room + EDGE_ROOM - len, bytes, len);
}

#endif
