/* keep-arguments.c -- arguments of a call that goes on when the connection's input is used for
 * something else: all that they point to becomes the call's own. */
#include <stdlib.h>
#include <string.h>

#include "server/serve/verbs/verbs.h"

static size_t measure(const struct weir__verb_call *call)
{
    size_t n = 1;

    for (size_t i = 0; i < WEIR__ARGS_MAX && call->verb->args[i].name; i++)
        n += call->values[i].text.len + 1;
    for (size_t i = 0; i < call->n_entries; i++)
        n += call->entries[i].len + 1;
    for (size_t i = 0; i < call->n_attrs; i++)
        n += call->attrs[i].name_len + call->attrs[i].value_len + 2;
    return n;
}

static const char *copy(char **to, const char *bytes, size_t len)
{
    char *begin = *to;

    memcpy(begin, bytes, len);
    begin[len] = '\0';
    *to += len + 1;
    return begin;
}

bool weir__call_keep(struct weir__verb_call *call)
{
    char *to = malloc(measure(call)), *before = call->kept;

    if (to == NULL)
        return weir__call_no_memory(call);
    call->kept = to;
    for (size_t i = 0; i < WEIR__ARGS_MAX && call->verb->args[i].name; i++)
        if (weir__call_given(call, i))
            call->values[i].text.bytes =
                copy(&to, call->values[i].text.bytes, call->values[i].text.len);
    for (size_t i = 0; i < call->n_entries; i++)
        call->entries[i].bytes = copy(&to, call->entries[i].bytes, call->entries[i].len);
    for (size_t i = 0; i < call->n_attrs; i++) {
        struct weir_attr *a = &call->attrs[i];
        a->name = copy(&to, a->name, a->name_len);
        a->value = copy(&to, a->value, a->value_len);
    }
    free(before);
    return true;
}
