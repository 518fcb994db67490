/* copy.c -- copies a table's contents into a new file: for backups, and from older formats.
 *
 * The new table has the same secrets and as many groups, and its limiters the same salts.  So every
 * key has the same home, and each state goes to the slot of the same number: no key is known.
 * Limiters may get other ids, and states are brought to the present limit on the way.
 *
 * The source of a backup is in use.  Each state is read whole, as a decision would read it, so a
 * key's state is one that it had while the copy was made; those of several keys may be of different
 * moments.  What belongs to processes stays behind: guards, permits, hands.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table/bans.h"
#include "table/cl-throttle-limits.h"
#include "table/copy.h"
#include "table/part.h"

/* ----------------------------------------------------------------- begin ---- */

static void adopt(struct weir_table *to, const struct weir__header *like)
{
    struct weir__header *h = to->header;

    memcpy(h->secrets, like->secrets, sizeof(h->secrets));
    memcpy(to->secrets, like->secrets, sizeof(to->secrets));
    h->check = weir__header_check(h);
    h->clock_offset = like->clock_offset;
    h->clock_latest = like->clock_latest;
    memcpy(h->boot_id, like->boot_id, sizeof(h->boot_id));
    weir__table_set_clock(h);
    h->mode = like->mode;
    h->degradation = like->degradation;
    h->degradation_by_hand = like->degradation_by_hand;
}

int weir__copy_begin(struct weir__copy *copy, const char *path, const struct weir__header *like,
                     const struct stat *owner, struct weir_error *error)
{
    struct weir_table_options o = {
        .path = copy->path,
        .keys = (int64_t)(like->groups * WEIR__KEYS_PER_GROUP),
        .slab = (int64_t)like->slab_bytes,
        .limiters = (int64_t)like->limiters_max,
        .bans = (int64_t)like->ban_groups * WEIR__KEYS_PER_GROUP,
        .guards = (int64_t)like->guards_max,
        .narrow = like->slot_size == sizeof(struct weir__narrow),
    };

    *copy = (struct weir__copy){ 0 };
    if ((size_t)snprintf(copy->path, sizeof(copy->path), "%s.new", path) >= sizeof(copy->path))
        return weir__fail(error, WEIR_INVALID, "that path is too long for a table");
    if (access(copy->path, F_OK) == 0)
        return weir__fail(error, WEIR_INVALID,
                          "'%s' is in the way: another copy is being made, or was never finished; "
                          "remove it",
                          copy->path);
    o.bans = o.bans > WEIR__BANS_MAX ? WEIR__BANS_MAX : o.bans;
    if (owner != NULL) {
        o.mode = owner->st_mode & 0777;
        o.owner = owner->st_uid;
        o.group = owner->st_gid;
    }
    copy->by_id = calloc(WEIR__LIMITERS_MAX, sizeof(struct weir_limiter *));
    if (copy->by_id == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a copy");
    int code = weir_table_create(&copy->to, &o, error);
    if (code == WEIR_OK) {
        copy->to->keys.slab.kept = 0; /* what fits there fits here */
        adopt(copy->to, like);
        weir__groups_open(&copy->to->keys, 0);
    }
    return code;
}

struct weir_limiter *weir__copy_limiter(struct weir__copy *copy, const char *name,
                                        const struct weir_limit *limit, uint64_t salt)
{
    struct weir_limiter *limiter = NULL;

    copy->to->salt_next = salt;
    int code = weir_limiter_create(&limiter, copy->to, name, limit, NULL);
    copy->to->salt_next = 0;
    if (code != WEIR_OK || limiter->salt != salt) /* or: a damaged table has the name twice */
        return NULL;
    copy->counts.limiters++;
    return limiter;
}

/* ------------------------------------------------------------------- put ---- */

/* Nobody else has the new table yet. */
static void put(struct weir__copy *copy, struct weir__space *space, uint64_t i, uint64_t tag,
                uint32_t version, const uint64_t pair[2])
{
    void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);

    if (space->narrow) {
        *(struct weir__narrow *)slot = (struct weir__narrow){ tag, pair[1] };
    } else {
        *(struct weir__wide *)slot = (struct weir__wide){ tag, version, { pair[0], pair[1] } };
    }
    copy->to->header->keys += space == &copy->to->keys;
}

void weir__copy_put(struct weir__copy *copy, struct weir_limiter *limiter, uint64_t slot,
                    uint64_t tag, const uint64_t words[2])
{
    uint64_t pair[2] = { words[0] & ~WEIR__PIN, words[1] };

    put(copy, limiter->space, slot, weir__tag_of(tag, limiter->id), limiter->era->version, pair);
    copy->counts.states++;
}

void weir__copy_put_carried(struct weir__copy *copy, uint64_t slot, uint64_t tag, uint32_t version,
                            const uint64_t state[2])
{
    put(copy, &copy->to->keys, slot, weir__tag_of(tag, WEIR__CARRIED_ID), version, state);
    copy->counts.states++;
}

static bool put_record(const struct weir_plan *plan, void *state, void *context)
{
    (void)plan;
    memcpy(state, context, sizeof(struct weir__ban_record));
    return true;
}

void weir__copy_ban(struct weir__copy *copy, uint64_t tag, const struct weir__ban_record *record)
{
    struct weir_limiter *banned = &copy->to->banned;
    struct weir__hash hash = { .tag = tag, .place = weir__mix64(tag) };
    struct weir__part part = { .limiter = banned,
                               .plan = &banned->era->plan,
                               .home = weir__home_from(banned->space, hash) };

    weir__part_change(&part, put_record, (void *)record, true, record->since);
}

/* ------------------------------------------------------------------- end ---- */

static int sync_and_name(const struct weir__copy *copy, const char *path, bool replaces,
                         struct weir_error *error)
{
    int fd = weir__file_apart(open(copy->path, O_RDWR | O_CLOEXEC));

    if (fd < 0 || fsync(fd) != 0) {
        if (fd >= 0)
            close(fd);
        return weir__fail_errno(error, "cannot flush", copy->path);
    }
    close(fd);
    if ((replaces ? rename(copy->path, path) : link(copy->path, path)) != 0)
        return weir__fail_errno(error, "cannot make", path);
    return WEIR_OK;
}

int weir__copy_end(struct weir__copy *copy, const char *path, bool replaces, int code,
                   struct weir_error *error)
{
    bool made = copy->to != NULL;
    struct weir_table *again;

    if (made && code == WEIR_OK && weir__get(&copy->to->header->no_disk) > 0)
        code = weir__fail(error, WEIR_SYSTEM, "cannot make '%s': %s", path, strerror(ENOSPC));
    if (made) {
        weir__bans_measure(copy->to);
        weir__bans_settle(copy->to);
        copy->counts.bans = weir__bans_in_force(copy->to, weir_table_now(copy->to));
        weir_table_destroy(copy->to);
        copy->to = NULL;
    }
    free(copy->by_id);
    if (code == WEIR_OK && (code = weir_table_attach(&again, copy->path, error)) == WEIR_OK)
        weir_table_destroy(again); /* it can be read */
    if (code == WEIR_OK)
        code = sync_and_name(copy, path, replaces, error);
    if (made && (code != WEIR_OK || !replaces))
        unlink(copy->path);
    return code;
}

/* ---------------------------------------------------------------- backup ---- */

struct source {
    struct weir_table *table;
    struct weir__copy *copy;
    struct weir__hand *hand;
    weir_time now;
};

static struct weir_limiter *new_limiter(const struct source *s, struct weir_limiter *old,
                                        const char *name)
{
    struct weir_limiter **place = &s->copy->by_id[old->id];

    if (*place == NULL && name != NULL) {
        *place = weir__copy_limiter(s->copy, name, &weir__limiter_era(old)->plan.limit, old->salt);
        if (*place != NULL)
            weir__limiter_set_mode(*place, weir__limiter_mode(old));
    }
    return *place;
}

static void copy_limiters(const struct source *s)
{
    struct weir_limiter_info info;

    for (int64_t at = 0; weir_limiter_next(s->table, &at, &info);) {
        struct weir_limiter *old = weir__limiter_by_name(s->table, info.name);
        if (old != NULL)
            new_limiter(s, old, info.name);
    }
}

/* Each of these returns false if the slot has changed: look again. */

static bool copy_carried(const struct source *s, uint64_t i, struct weir__wide *slot, uint64_t tag)
{
    uint64_t pair[2], meta = weir__load(&slot->meta);

    weir__load_pair(slot->state, pair);
    if (pair[0] & WEIR__PIN) {
        weir__hand_settle(s->table, &slot->state[0]);
        return false;
    }
    if (weir__load(&slot->tag) != tag || weir__load(&slot->meta) != meta)
        return false;
    weir__copy_put_carried(s->copy, i, tag, (uint32_t)meta, pair);
    return true;
}

/* A large state's block in the new table; 0: the key is fresh, or there is no room. */
static uint32_t copy_block(const struct weir__part *part, struct weir__space *to)
{
    size_t size = part->plan->state_size;

    if (part->before[1] == 0)
        return 0;
    if (part->plan->nodes != NULL)
        return weir__chain_copy(part->plan, part->state, to);
    uint32_t block = weir__block_take(&to->slab, size);
    if (block != 0)
        weir__copy_words(weir__block_at(&to->slab, block), part->state, size);
    return block;
}

static bool copy_large(const struct source *s, const struct weir__part *part,
                       struct weir_limiter *limiter, uint64_t i)
{
    struct weir__space *to = limiter->space;
    uint64_t block = copy_block(part, to), pair[2] = { 0, 0 };

    if (block != 0) {
        pair[0] = (uint64_t)weir_step_idle_at(part->plan, part->state) & INT64_MAX;
        pair[1] =
            block | (to->narrow ? (uint64_t)1 << 40 | (uint64_t)(limiter->era->version & 0xff) << 32
                                : (uint64_t)1 << 32);
        pair[1] |= part->plan->nodes != NULL ? weir__chain_bit(to) : 0;
    }
    if (!weir__part_is_same(part)) { /* a log is read where it lies */
        weir__chain_give(to, weir__chain_behind(to, pair[1]));
        weir__block_give(&to->slab, (uint32_t)block, part->plan->state_size);
        return false;
    }
    bool bans = to == &s->copy->to->bans;
    if (block == 0 && part->before[1] != 0) {
        s->copy->counts.lost++;
        return true;
    }
    put(s->copy, to, i, bans ? part->home.tag : weir__tag_of(part->home.tag, limiter->id),
        limiter->era->version, pair);
    s->copy->counts.states += !bans;
    return true;
}

/* The limit may have changed since the limiter was copied; or another limiter is in its place. */
static bool follow_limit(struct weir_limiter *limiter, const struct weir__part *part)
{
    const struct weir_limit *limit = &part->plan->limit;

    return limiter->salt == part->limiter->salt &&
           (weir__limit_equal(&limiter->era->plan.limit, limit) ||
            weir_limiter_change(limiter, limit, part->era->since, NULL) == WEIR_OK);
}

static bool copy_state(const struct source *s, struct weir_limiter *old, uint64_t i, uint64_t tag)
{
    struct weir_limiter *limiter = new_limiter(s, old, NULL);
    struct weir__part part = { 0 };
    struct weir__copies copies;

    copies.used = 0;
    weir__part_begin(&part, old, weir__home_at(old->space, i, tag));
    if (!weir__part_read(&part, s->hand, 0, &copies, s->now))
        return false;
    if (part.slot == NULL && weir__load((uint64_t *)weir__slot_at(old->space, i / WEIR__GROUP_SLOTS,
                                                                  i % WEIR__GROUP_SLOTS)) != tag)
        return false;
    void *apart = part.state == NULL ? weir__part_copy_apart(&part, s->now) : NULL;
    bool same = true;
    if (part.slot == NULL || /* damage: beyond its group's reach */
        part.state == NULL || limiter == NULL || !follow_limit(limiter, &part))
        s->copy->counts.lost++;
    else if (limiter->kind == WEIR__LARGE)
        same = copy_large(s, &part, limiter, i);
    else
        weir__copy_put(s->copy, limiter, i, tag,
                       limiter->kind == WEIR__NARROW ? part.before : part.small);
    free(apart);
    return same;
}

static bool copy_slot(const struct source *s, uint64_t i)
{
    struct weir__space *space = &s->table->keys;
    void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
    uint64_t tag = weir__load(slot);

    if (tag == 0)
        return true;
    if (weir__tag_id(tag) == WEIR__CARRIED_ID && !space->narrow)
        return copy_carried(s, i, slot, tag);
    struct weir_limiter *old = weir__limiter_by_id(s->table, weir__tag_id(tag));
    if (old != NULL)
        return copy_state(s, old, i, tag);
    s->copy->counts.lost++;
    return true;
}

/* If a key has come meanwhile, or the group has shrunk, its reach is not that of the keys that were
 * copied. */
static void copy_group(const struct source *s, uint64_t group)
{
    uint64_t *room = &s->table->keys.rooms[group].count, before[2], after[2];

    weir__load_pair(room, before);
    for (uint64_t i = 0; i < WEIR__GROUP_SLOTS; i++)
        while (!copy_slot(s, group * WEIR__GROUP_SLOTS + i))
            ;
    weir__load_pair(room, after);
    bool same = before[0] == after[0] && (after[0] & WEIR__PIN) == 0;
    s->copy->to->keys.rooms[group].reach = same ? after[1] : 0;
}

static bool copy_ban(const struct source *s, uint64_t i)
{
    struct weir_limiter *banned = &s->table->banned;
    uint64_t tag = weir__load(
        (uint64_t *)weir__slot_at(banned->space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS));
    struct weir__ban_record record;
    struct weir__part part = { .limiter = banned,
                               .plan = &banned->era->plan,
                               .home = weir__home_at(banned->space, i, tag) };

    if (tag == 0)
        return true;
    if (!weir__part_peek(&part, &record))
        return false;
    if (part.slot == NULL || (record.until <= 0 && record.forget_at <= 0))
        return true;
    return copy_large(s, &part, &s->copy->to->banned, i);
}

int weir__table_backup(struct weir_table *table, const char *path, struct weir__copied *out,
                       struct weir_error *error)
{
    struct weir__copy copy;
    struct source s = { table, &copy, NULL, weir_table_now(table) };

    if (access(path, F_OK) == 0)
        return weir__fail(error, WEIR_INVALID, "'%s' is there already", path);
    int code = weir__copy_begin(&copy, path, table->header, NULL, error);
    if (code == WEIR_OK) {
        weir__look_begin(table);
        copy_limiters(&s);
        s.hand = weir__hand_take(table);
        for (uint64_t group = 0; group < table->keys.groups; group++)
            copy_group(&s, group);
        weir__hand_give(s.hand);
        for (uint64_t i = 0; i < table->bans.groups * WEIR__GROUP_SLOTS; i++)
            while (!copy_ban(&s, i))
                ;
        weir__look_end(table);
    }
    code = weir__copy_end(&copy, path, false, code, error);
    *out = copy.counts;
    return code;
}
