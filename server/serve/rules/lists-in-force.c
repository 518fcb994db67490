/* lists-in-force.c -- lists as they were changed by hand: edited, kept, and read again when another
 * process has changed them.
 *
 * A writer of the file holds its lock (replace-file.h) from reading it to writing it.  Whether it
 * must be read at all the stamp tells, which is that of the text this process has read or written
 * last.
 */
#include "server/serve/rules/in-force-parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/replace-file.h"

static const struct weir__lists *written_lists(const struct weir__live *live)
{
    return live->written ? live->written : weir__live_active(live)->rules->lists;
}

static void drop_force(struct weir__active *force)
{
    if (force != NULL)
        force->rules = NULL; /* they are in force still */
    weir__active_destroy(force);
}

/* Cannot fail. */
static void swap_lists(struct weir__live *live, struct weir__active *force,
                       struct weir__overlay *overlay)
{
    pthread_mutex_lock(&live->engine->mutex);
    weir__engine_swap(live->engine, force);
    pthread_mutex_unlock(&live->engine->mutex);
    pthread_mutex_lock(&live->mutex);
    struct weir__overlay *old = live->overlay;
    live->overlay = overlay;
    live->info.by_hand = overlay->n;
    live->info.entries = weir__live_count(force->lists);
    pthread_mutex_unlock(&live->mutex);
    weir__overlay_destroy(old);
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

static int use_overlay(struct weir__live *live, struct weir__overlay *overlay,
                       struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    struct weir__active *force = NULL;
    size_t skipped = 0;
    int code = weir__overlay_apply(overlay, written_lists(live), &lists, &skipped, error);

    if (code == WEIR_OK && lists == NULL)
        code = copy_lists(&lists, written_lists(live), error);
    if (code == WEIR_OK)
        code = weir__active_edited(&force, weir__live_active(live), lists, error);
    if (code != WEIR_OK) {
        weir__lists_destroy(lists);
        return code;
    }
    swap_lists(live, force, overlay);
    pthread_mutex_lock(&live->mutex);
    live->info.skipped = skipped;
    pthread_mutex_unlock(&live->mutex);
    return WEIR_OK;
}

/* The file is good again. */
static void forget_problem(struct weir__live *live)
{
    live->lists_seen = live->lists_bad = 0;
    if (!live->lists_told)
        return;
    live->lists_told = false;
    pthread_mutex_lock(&live->mutex);
    live->info.problem[0] = '\0';
    live->info.problem_at = 0;
    pthread_mutex_unlock(&live->mutex);
}

/* With the lock.  The stamp is taken first: a writer without the lock, such as an editor, changes
 * it once more. */
static int refresh(struct weir__live *live, weir_time now, struct weir_error *error)
{
    struct weir__overlay *overlay = NULL;
    char text[64];
    uint64_t stamp = weir__overlay_stamp(live->lists_path);

    if (stamp == 0 || stamp == live->lists_stamp)
        return WEIR_OK;
    int code = weir__overlay_read(&overlay, live->lists_path, error);
    if (code == WEIR_OK && (code = use_overlay(live, overlay, error)) != WEIR_OK)
        weir__overlay_destroy(overlay);
    if (code != WEIR_OK)
        return code;
    live->lists_stamp = stamp;
    forget_problem(live);
    snprintf(text, sizeof(text), "read again: %zu changes by hand", overlay->n);
    weir__live_tell(live, WEIR__EVENT_LIST, now,
                    &(struct weir__event_facts){
                        .source = live->lists_path, .text = text, .count = (int64_t)overlay->n });
    return WEIR_OK;
}

/* Told once it was the same at two looks: somebody may be writing it by hand. */
static bool complain(struct weir__live *live, uint64_t stamp, const char *text, weir_time now)
{
    bool twice = stamp == live->lists_seen;

    live->lists_seen = stamp;
    if (!twice)
        return false;
    live->lists_bad = stamp;
    weir__live_tell_failure(live, live->lists_path, text, now);
    live->lists_told = true;
    return true;
}

/* Never waits: with the next look there is time enough. */
bool weir__live_lists_look(struct weir__live *live, weir_time now)
{
    struct weir_error why = { 0 };
    uint64_t stamp = live->lists_path ? weir__overlay_stamp(live->lists_path) : 0;

    if (stamp == live->lists_stamp)
        forget_problem(live); /* a good copy is back, in its old place */
    if (stamp == 0 || stamp == live->lists_stamp || stamp == live->lists_bad)
        return false;
    int lock = weir__store_lock(live->lists_path, false, false);
    if (lock < 0 && errno == EWOULDBLOCK)
        return false;
    int code = refresh(live, now, &why);
    weir__store_unlock(lock);
    return code != WEIR_OK && complain(live, stamp, why.text, now);
}

/* With the lock, if anybody has ever made one: the temporary of a process that is writing just now
 * is no leftover. */
int weir__live_lists_start(struct weir__live *live, struct weir_error *error)
{
    int code = WEIR_OK;

    if (live->lists_path == NULL) {
        live->overlay = weir__overlay_create();
        return live->overlay ? WEIR_OK : weir__live_no_memory(error);
    }
    int lock = weir__store_lock(live->lists_path, false, true);
    weir__store_clean(live->lists_path);
    live->lists_stamp = weir__overlay_stamp(live->lists_path);
    code = weir__overlay_read(&live->overlay, live->lists_path, error);
    weir__store_unlock(lock);
    if (code == WEIR_OK)
        live->info.by_hand = live->overlay->n;
    return code;
}

/* ---------------------------------------------------------------- edits ---- */

/* Made for the engine in case the edit can be kept; nothing has happened yet. */
static int prepare_force(struct weir__live *live, struct weir__active **out,
                         const struct weir_list_edit *edit, struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    int code = weir__lists_edit(&lists, weir__live_active(live)->lists, edit, error);

    if (code == WEIR_OK)
        code = weir__active_edited(out, weir__live_active(live), lists, error);
    if (code != WEIR_OK)
        weir__lists_destroy(lists);
    return code;
}

static int keep_overlay(struct weir__live *live, const struct weir__overlay *overlay,
                        struct weir_error *error)
{
    struct weir__buffer text = { 0 };

    if (live->lists_path == NULL)
        return WEIR_OK;
    weir__overlay_print(overlay, &text);
    int code = text.failed ? weir__live_no_memory(error)
                           : weir__store_replace(live->lists_path, text.bytes, text.len, error);
    weir__buffer_free(&text);
    if (code == WEIR_OK)
        live->lists_stamp = weir__overlay_stamp(live->lists_path);
    return code;
}

static const struct weir__list *list_of(const struct weir__active *force, const char *list,
                                        const char *attribute)
{
    static const struct weir__list none;
    char *small = weir__attribute_small(attribute);
    int at = small ? weir__lists_find(force->lists, list, small) : -1;

    free(small);
    return at < 0 ? &none : &force->lists->lists[at];
}

/* Both are sorted. */
static struct weir__live_edited compare_lists(const struct weir__list *before,
                                              const struct weir__list *after)
{
    struct weir__live_edited edited = { .entries = after->n };

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

static int make_edit(struct weir__live *live, const struct weir_list_edit *e,
                     struct weir__live_edited *edited, struct weir_error *error)
{
    struct weir__active *force = NULL;
    struct weir__overlay *overlay = NULL;
    int code = prepare_force(live, &force, e, error);

    if (code == WEIR_OK)
        code = weir__overlay_edit(&overlay, live->overlay, written_lists(live), e, error);
    if (code == WEIR_OK)
        code = keep_overlay(live, overlay, error);
    if (code == WEIR_OK) {
        *edited = compare_lists(list_of(weir__live_active(live), e->list, e->attribute),
                                list_of(force, e->list, e->attribute));
        swap_lists(live, force, overlay);
    } else {
        drop_force(force);
        weir__overlay_destroy(overlay);
    }
    return code;
}

/* Takes the lock and reads the file's present text.  *lock is to be unlocked whether it went well
 * or not. */
static int begin_edit(struct weir__live *live, int *lock, weir_time now, struct weir_error *error)
{
    if (live->lists_path == NULL)
        return WEIR_OK;
    *lock = weir__store_lock(live->lists_path, true, true);
    return *lock < 0 ? weir__fail_errno(error, "cannot lock", live->lists_path)
                     : refresh(live, now, error);
}

int weir__live_list_edit(struct weir__live *live, const struct weir_list_edit *edit, weir_time now,
                         struct weir__live_edited *edited, struct weir_error *error)
{
    struct weir__live_edited done;
    char text[64];

    if (edit->adds + edit->removes == 0)
        return weir__fail(error, WEIR_INVALID, "name at least one entry to add or to remove");
    pthread_mutex_lock(&live->turn);
    int lock = -1, code = begin_edit(live, &lock, now, error);
    if (code == WEIR_OK)
        code = make_edit(live, edit, &done, error);
    weir__store_unlock(lock);
    pthread_mutex_unlock(&live->turn);
    if (code != WEIR_OK)
        return code;
    snprintf(text, sizeof(text), "%zu added, %zu removed", done.added, done.removed);
    weir__live_tell(live, WEIR__EVENT_LIST, now,
                    &(struct weir__event_facts){ .list = edit->list,
                                                 .attribute = edit->attribute,
                                                 .text = text,
                                                 .count = (int64_t)(done.added + done.removed) });
    if (edited != NULL)
        *edited = done;
    return WEIR_OK;
}

void weir__live_list_entries(struct weir__live *live, const char *list, const char *attribute,
                             size_t most, struct weir__buffer *json)
{
    pthread_mutex_lock(&live->turn);
    const struct weir__list *l = list_of(weir__live_active(live), list, attribute);
    weir__buffer_open(json, NULL, '[');
    for (size_t i = 0; i < l->n && i < most; i++)
        weir__buffer_member(json, NULL, l->entries[i]);
    weir__buffer_close(json, "]");
    pthread_mutex_unlock(&live->turn);
}

void weir__live_lists(struct weir__live *live, struct weir__buffer *json)
{
    pthread_mutex_lock(&live->mutex);
    weir__overlay_json(live->overlay, json);
    pthread_mutex_unlock(&live->mutex);
}
