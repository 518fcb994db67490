/* buffer.c -- prints a buffer. */
#include "server/base/buffer.h"

#include "server/base/complain.h"

int weir__buffer_print(struct weir__buffer *b, FILE *out)
{
    int code = out && b->failed ? weir__complain(NULL, "no memory left to print this") : 0;

    if (out && code == 0 && b->len > 0)
        fwrite(b->bytes, 1, b->len, out);
    weir__buffer_free(b);
    return code;
}
