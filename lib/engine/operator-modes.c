/* operator-modes.c -- modes that operators set: of all rules, or of one rule or guard. */
#include "engine/engine.h"

int weir_mode_set(struct weir *weir, const char *rule, enum weir_mode mode,
                  struct weir_error *error)
{
    int code = WEIR_OK;

    if ((unsigned)mode > WEIR_OFF)
        return weir__fail(error, WEIR_INVALID, "a mode is as-written, enforce, shadow or off");
    if (rule == NULL) {
        weir__table_set_mode(weir->table, mode);
        return WEIR_OK;
    }
    pthread_mutex_lock(&weir->mutex);
    const struct weir__active *f = weir->active;
    const struct weir__post *post =
        f ? weir__post_find(f, f->rules->n_rules + f->rules->n_guards, rule) : NULL;
    if (post != NULL)
        weir__limiter_set_mode(post->lever, mode);
    else
        code = weir__fail(error, WEIR_INVALID, "there is no rule or guard '%s'", rule);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

const char *weir_mode_name(enum weir_mode mode)
{
    static const char *const names[] = { "as-written", "enforce", "shadow", "off" };

    return (unsigned)mode <= WEIR_OFF ? names[mode] : "unknown";
}
