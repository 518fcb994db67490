/* admin-errand.c -- a call of a row of admin.h on its way to another thread, with a copy of all
 * that it was given. */
#include "server/serve/admin/admin-errand.h"

#include <stdlib.h>

struct weir__admin_errand *weir__admin_errand_create(const struct weir__admin *row,
                                                     struct weir__server *server, weir_time now)
{
    struct weir__admin_errand *e = calloc(1, sizeof(*e));

    if (e == NULL)
        return NULL;
    e->row = row;
    e->call =
        (struct weir__admin_call){ .server = server, .now = now, .status = 200, .out = &e->out };
    return e;
}

void weir__admin_errand_destroy(struct weir__admin_errand *e)
{
    if (e == NULL)
        return;
    weir__buffer_free(&e->out);
    weir__arena_clear(&e->bytes);
    free(e->rest);
    free(e);
}

char *weir__admin_errand_value(struct weir__admin_errand *e, size_t i, struct weir__span value)
{
    char *copy = weir__arena_copy(&e->bytes, value.bytes, value.len);

    if (copy != NULL)
        e->call.values[i] = (struct weir__span){ copy, value.len };
    return copy;
}

static bool make_room(struct weir__admin_errand *e)
{
    if (e->call.n_rest < e->rest_room)
        return true;
    size_t room = e->rest_room ? e->rest_room * 2 : 64;
    struct weir__span *rest = realloc(e->rest, room * sizeof(*rest));
    if (rest == NULL)
        return false;
    e->call.rest = e->rest = rest;
    e->rest_room = room;
    return true;
}

char *weir__admin_errand_rest(struct weir__admin_errand *e, struct weir__span value)
{
    char *copy = make_room(e) ? weir__arena_copy(&e->bytes, value.bytes, value.len) : NULL;

    if (copy != NULL)
        e->rest[e->call.n_rest++] = (struct weir__span){ copy, value.len };
    return copy;
}

void weir__admin_errand_run(struct weir__admin_errand *e)
{
    e->row->run(&e->call);
}
