/* lists-in-force.c -- lists as they were changed by hand: edited, kept, and read again when another
 * process has changed them.
 *
 * A writer of the file holds its lock (replace-file.h) from reading it to writing it.  Whether it
 * must be read at all the stamp tells, which is that of the text this process has read or written
 * last.
 */
#include "server/serve/rules/in-force-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/replace-file.h"

static const struct weir__lists *written_lists(const struct weir__in_force *in_force)
{
    return in_force->written ? in_force->written : weir__in_force_active(in_force)->rules->lists;
}

static void drop_active(struct weir__active *active)
{
    if (active != NULL)
        active->rules = NULL; /* they are in force still */
    weir__active_destroy(active);
}

/* Cannot fail. */
static void swap_lists(struct weir__in_force *in_force, struct weir__active *active,
                       struct weir__list_changes *changes)
{
    pthread_mutex_lock(&in_force->engine->mutex);
    weir__engine_swap(in_force->engine, active);
    pthread_mutex_unlock(&in_force->engine->mutex);
    pthread_mutex_lock(&in_force->mutex);
    struct weir__list_changes *old = in_force->changes;
    in_force->changes = changes;
    in_force->info.by_hand = changes->n;
    in_force->info.entries = weir__in_force_count(active->lists);
    pthread_mutex_unlock(&in_force->mutex);
    weir__list_changes_destroy(old);
}

/* -------------------------------------------------------- from the file ---- */

/* All of them as the rules have them. */
static int copy_lists(struct weir__lists **out, const struct weir__lists *from,
                      struct weir_error *error)
{
    if (from->n == 0)
        return weir__lists_create(out, NULL, 0, error);
    return weir__lists_edit(
        out, from,
        &(struct weir_list_edit){ from->lists[0].name, from->lists[0].attribute, .adds = 0 },
        error);
}

static int use_changes(struct weir__in_force *in_force, struct weir__list_changes *changes,
                       struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    struct weir__active *active = NULL;
    size_t skipped = 0;
    int code = weir__list_changes_apply(changes, written_lists(in_force), &lists, &skipped, error);

    if (code == WEIR_OK && lists == NULL)
        code = copy_lists(&lists, written_lists(in_force), error);
    if (code == WEIR_OK)
        code = weir__active_edited(&active, weir__in_force_active(in_force), lists, error);
    if (code != WEIR_OK) {
        weir__lists_destroy(lists);
        return code;
    }
    swap_lists(in_force, active, changes);
    pthread_mutex_lock(&in_force->mutex);
    in_force->info.skipped = skipped;
    pthread_mutex_unlock(&in_force->mutex);
    return WEIR_OK;
}

/* The file is good again. */
static void forget_problem(struct weir__in_force *in_force)
{
    in_force->lists_seen = in_force->lists_bad = 0;
    if (!in_force->lists_told)
        return;
    in_force->lists_told = false;
    pthread_mutex_lock(&in_force->mutex);
    in_force->info.problem[0] = '\0';
    in_force->info.problem_at = 0;
    pthread_mutex_unlock(&in_force->mutex);
}

/* With the lock.  The stamp is taken first: a writer without the lock, such as an editor, changes
 * it once more. */
static int refresh(struct weir__in_force *in_force, weir_time now, struct weir_error *error)
{
    struct weir__list_changes *changes = NULL;
    char text[64];
    uint64_t stamp = weir__list_changes_stamp(in_force->lists_path);

    if (stamp == 0 || stamp == in_force->lists_stamp)
        return WEIR_OK;
    int code = weir__list_changes_read(&changes, in_force->lists_path, error);
    if (code == WEIR_OK && (code = use_changes(in_force, changes, error)) != WEIR_OK)
        weir__list_changes_destroy(changes);
    if (code != WEIR_OK)
        return code;
    in_force->lists_stamp = stamp;
    forget_problem(in_force);
    snprintf(text, sizeof(text), "read again: %zu changes by hand", changes->n);
    weir__in_force_tell(in_force, WEIR__EVENT_LIST, now,
                        &(struct weir__event_facts){ .source = in_force->lists_path,
                                                     .text = text,
                                                     .count = (int64_t)changes->n });
    return WEIR_OK;
}

/* Told once it was the same at two looks: somebody may be writing it by hand. */
static bool complain(struct weir__in_force *in_force, uint64_t stamp, const char *text,
                     weir_time now)
{
    bool twice = stamp == in_force->lists_seen;

    in_force->lists_seen = stamp;
    if (!twice)
        return false;
    in_force->lists_bad = stamp;
    weir__in_force_tell_failure(in_force, in_force->lists_path, text, now);
    in_force->lists_told = true;
    return true;
}

/* Never waits: with the next look there is time enough. */
bool weir__in_force_lists_refresh(struct weir__in_force *in_force, weir_time now)
{
    struct weir_error why = { 0 };
    uint64_t stamp = in_force->lists_path ? weir__list_changes_stamp(in_force->lists_path) : 0;

    if (stamp == in_force->lists_stamp)
        forget_problem(in_force); /* a good copy is back, in its old place */
    if (stamp == 0 || stamp == in_force->lists_stamp || stamp == in_force->lists_bad)
        return false;
    int lock = weir__store_lock(in_force->lists_path, false, false);
    if (lock < 0 && errno == EWOULDBLOCK)
        return false;
    int code = refresh(in_force, now, &why);
    weir__store_unlock(lock);
    return code != WEIR_OK && complain(in_force, stamp, why.text, now);
}

/* With the lock, if anybody has ever made one: the temporary of a process that is writing just now
 * is no leftover. */
int weir__in_force_lists_start(struct weir__in_force *in_force, struct weir_error *error)
{
    int code = WEIR_OK;

    if (in_force->lists_path == NULL) {
        in_force->changes = weir__list_changes_create();
        return in_force->changes ? WEIR_OK : weir__in_force_no_memory(error);
    }
    int lock = weir__store_lock(in_force->lists_path, false, true);
    weir__store_clean(in_force->lists_path);
    in_force->lists_stamp = weir__list_changes_stamp(in_force->lists_path);
    code = weir__list_changes_read(&in_force->changes, in_force->lists_path, error);
    weir__store_unlock(lock);
    if (code == WEIR_OK)
        in_force->info.by_hand = in_force->changes->n;
    return code;
}

/* ---------------------------------------------------------------- edits ---- */

/* Made for the engine in case the edit can be kept; nothing has happened yet. */
static int prepare_active(struct weir__in_force *in_force, struct weir__active **out,
                          const struct weir_list_edit *edit, struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    int code = weir__lists_edit(&lists, weir__in_force_active(in_force)->lists, edit, error);

    if (code == WEIR_OK)
        code = weir__active_edited(out, weir__in_force_active(in_force), lists, error);
    if (code != WEIR_OK)
        weir__lists_destroy(lists);
    return code;
}

static int keep_overlay(struct weir__in_force *in_force, const struct weir__list_changes *changes,
                        struct weir_error *error)
{
    struct weir__buffer text = { 0 };

    if (in_force->lists_path == NULL)
        return WEIR_OK;
    weir__list_changes_print(changes, &text);
    int code = text.failed ? weir__in_force_no_memory(error)
                           : weir__store_replace(in_force->lists_path, text.bytes, text.len, error);
    weir__buffer_free(&text);
    if (code == WEIR_OK)
        in_force->lists_stamp = weir__list_changes_stamp(in_force->lists_path);
    return code;
}

static const struct weir__list *list_of(const struct weir__active *active, const char *list,
                                        const char *attribute)
{
    static const struct weir__list none;
    char *small = weir__attribute_small(attribute);
    int at = small ? weir__lists_find(active->lists, list, small) : -1;

    free(small);
    return at < 0 ? &none : &active->lists->lists[at];
}

/* Both are sorted. */
static struct weir__in_force_edited compare_lists(const struct weir__list *before,
                                                  const struct weir__list *after)
{
    struct weir__in_force_edited edited = { .entries = after->n };

    for (size_t i = 0, k = 0; i < before->n || k < after->n;) {
        int order = i == before->n  ? 1
                    : k == after->n ? -1
                                    : strcmp(before->entries[i], after->entries[k]);
        edited.removed += order < 0;
        edited.added += order > 0;
        i += order <= 0;
        k += order >= 0;
    }
    return edited;
}

static int make_edit(struct weir__in_force *in_force, const struct weir_list_edit *e,
                     struct weir__in_force_edited *edited, struct weir_error *error)
{
    struct weir__active *active = NULL;
    struct weir__list_changes *changes = NULL;
    int code = prepare_active(in_force, &active, e, error);

    if (code == WEIR_OK)
        code =
            weir__list_changes_edit(&changes, in_force->changes, written_lists(in_force), e, error);
    if (code == WEIR_OK)
        code = keep_overlay(in_force, changes, error);
    if (code == WEIR_OK) {
        *edited = compare_lists(list_of(weir__in_force_active(in_force), e->list, e->attribute),
                                list_of(active, e->list, e->attribute));
        swap_lists(in_force, active, changes);
    } else {
        drop_active(active);
        weir__list_changes_destroy(changes);
    }
    return code;
}

/* Takes the lock and reads the file's present text.  *lock is to be unlocked whether it went well
 * or not. */
static int begin_edit(struct weir__in_force *in_force, int *lock, weir_time now,
                      struct weir_error *error)
{
    if (in_force->lists_path == NULL)
        return WEIR_OK;
    *lock = weir__store_lock(in_force->lists_path, true, true);
    return *lock < 0 ? weir__fail_errno(error, "cannot lock", in_force->lists_path)
                     : refresh(in_force, now, error);
}

int weir__in_force_list_edit(struct weir__in_force *in_force, const struct weir_list_edit *edit,
                             weir_time now, struct weir__in_force_edited *edited,
                             struct weir_error *error)
{
    struct weir__in_force_edited done;
    char text[64];

    if (edit->adds + edit->removes == 0)
        return weir__fail(error, WEIR_INVALID, "name at least one entry to add or to remove");
    pthread_mutex_lock(&in_force->turn);
    int lock = -1, code = begin_edit(in_force, &lock, now, error);
    if (code == WEIR_OK)
        code = make_edit(in_force, edit, &done, error);
    weir__store_unlock(lock);
    pthread_mutex_unlock(&in_force->turn);
    if (code != WEIR_OK)
        return code;
    snprintf(text, sizeof(text), "%zu added, %zu removed", done.added, done.removed);
    weir__in_force_tell(
        in_force, WEIR__EVENT_LIST, now,
        &(struct weir__event_facts){ .list = edit->list,
                                     .attribute = edit->attribute,
                                     .text = text,
                                     .count = (int64_t)(done.added + done.removed) });
    if (edited != NULL)
        *edited = done;
    return WEIR_OK;
}

void weir__in_force_list_entries(struct weir__in_force *in_force, const char *list,
                                 const char *attribute, size_t most, struct weir__buffer *json)
{
    pthread_mutex_lock(&in_force->turn);
    const struct weir__list *l = list_of(weir__in_force_active(in_force), list, attribute);
    weir__buffer_open(json, NULL, '[');
    for (size_t i = 0; i < l->n && i < most; i++)
        weir__buffer_member(json, NULL, l->entries[i]);
    weir__buffer_close(json, "]");
    pthread_mutex_unlock(&in_force->turn);
}

void weir__in_force_lists(struct weir__in_force *in_force, struct weir__buffer *json)
{
    pthread_mutex_lock(&in_force->mutex);
    weir__list_changes_json(in_force->changes, json);
    pthread_mutex_unlock(&in_force->mutex);
}
