/* edit-lists.c -- entries added to the lists in force, and removed. */
#include "engine/engine.h"

int weir_list_edit(struct weir *weir, const char *list, const char *attribute,
                   const char *const *add, size_t adds, const char *const *remove, size_t removes,
                   struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    struct weir__active *active = NULL;

    pthread_mutex_lock(&weir->mutex);
    int code =
        weir->active ? WEIR_OK : weir__fail(error, WEIR_INVALID, "there are no rules in force yet");
    if (code == WEIR_OK)
        code = weir__lists_edit(
            &lists, weir->active->lists,
            &(struct weir__list_edit){ list, attribute, add, remove, adds, removes }, error);
    if (code == WEIR_OK)
        code = weir__active_edited(&active, weir->active, lists, error);
    if (code == WEIR_OK)
        weir__engine_swap(weir, active);
    else
        weir__lists_destroy(lists);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}
