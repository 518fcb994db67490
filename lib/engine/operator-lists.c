/* operator-lists.c -- entries that operators add to the lists in force or remove. */
#include "engine/engine.h"

int weir_list_edit(struct weir *weir, const struct weir_list_edit *edit, struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    struct weir__active *active = NULL;

    pthread_mutex_lock(&weir->mutex);
    int code =
        weir->active ? WEIR_OK : weir__fail(error, WEIR_INVALID, "there are no rules in force yet");
    if (code == WEIR_OK)
        code = weir__lists_edit(&lists, weir->active->lists, edit, error);
    if (code == WEIR_OK)
        code = weir__active_edited(&active, weir->active, lists, error);
    if (code == WEIR_OK)
        weir__engine_swap(weir, active);
    else
        weir__lists_destroy(lists);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}
