/* registry.h -- limiters and guards come and go: their places, records and users.
 *
 * A place is a pair of words: its edition, and the block that has its record.  A record never
 * changes, but for its counts: a change writes another one and swaps the pair, so readers find a
 * whole record or notice that it went.  registry.c says how.
 */
#ifndef WEIR_TABLE_REGISTRY_H
#define WEIR_TABLE_REGISTRY_H

#include "table/table.h"

#define WEIR__NO_PLACE   UINT32_MAX
#define WEIR__JOIN_TRIES 1000 /* of a name that goes whenever it was found; more is damage */

/* What every record begins with. */
struct weir__record_head {
    char name[WEIR__NAME_SIZE];
    uint64_t salt; /* tells the record from another of that name, made later */
};

int weir__names_open(struct weir__names *names, uint32_t first, uint32_t most, size_t record_bytes);
void weir__names_close(struct weir__names *names);

static inline struct weir__place *weir__place_at(const struct weir_table *table,
                                                 const struct weir__names *names, uint32_t id)
{
    return &table->places[names->first + id];
}

/* A whole copy of the record; returns its edition, 0: the place is free, or damaged. */
uint64_t weir__record_read(struct weir_table *table, const struct weir__names *names, uint32_t id,
                           void *out);

/* Where the record is, as long as this process uses it and nobody changes the limit; NULL: it is
 * damaged. */
void *weir__record_here(struct weir_table *table, const struct weir__names *names, uint32_t id);

/* Whether it can be a name. */
int weir__name_check(const struct weir__names *names, const char *name, struct weir_error *error);

/* The place of this name, or WEIR__NO_PLACE. */
uint32_t weir__name_find(struct weir_table *table, struct weir__names *names, const char *name);

/* Before a place is filled for the first time, or again; it may be tried in vain, or twice. */
typedef int weir__preparer(struct weir_table *table, uint32_t id, const void *record,
                           struct weir_error *error);

/* The place of this name; if there is none, one that gets the record. */
int weir__name_add(struct weir_table *table, struct weir__names *names, const void *record,
                   weir__preparer *prepare, uint32_t *id, struct weir_error *error);

/* Another record in the place of that edition.  False: it is not that edition any more; or there
 * was no memory: *full. */
bool weir__record_change(struct weir_table *table, const struct weir__names *names, uint32_t id,
                         uint64_t edition, const void *record, bool *full);

/* Sets blocks aside for n changes of records, so that these do not fail for want of room; and gives
 * up as many. */
int weir__records_reserve(struct weir_table *table, size_t n, struct weir_error *error);
void weir__records_unreserve(struct weir_table *table, size_t n);

/* Places in use. */
uint32_t weir__names_count(const struct weir_table *table, const struct weir__names *names);

/* ---- users: place-users.c ---- */

/* This process uses what is in the place, until it leaves it as often or ends; found: once for all
 * who find it, until it is dropped.  False: by now it is not the record with that salt any more. */
bool weir__place_use(struct weir_table *table, const struct weir__names *names, uint32_t id,
                     uint64_t salt, bool found);
/* Likewise what was found by its name: between the look for it and this, the place may have gone to
 * another name. */
bool weir__place_use_named(struct weir_table *table, struct weir__names *names, uint32_t id,
                           uint64_t salt, const char *name, bool found);
/* dropped: if this was the last user of all, nobody is expected to want it again. */
void weir__place_leave(struct weir_table *table, const struct weir__names *names, uint32_t id,
                       bool dropped);

/* The same for one that nobody uses; of one that somebody uses nothing changes. */
void weir__name_drop(struct weir_table *table, struct weir__names *names, const char *name);

/* A holder has gone: it uses nothing. */
void weir__places_forget(struct weir_table *table, uint32_t holder);
/* This process has another place among the holders, after a fork: it uses what it used. */
void weir__places_reuse(struct weir_table *table, uint32_t holder);

bool weir__place_has_users(const struct weir_table *table, uint32_t place);

/* For them: a place that is closed, and wanted again, is open, unless it has gone by now. */
void weir__place_reopen(struct weir_table *table, uint32_t place);
/* The salt of its record.  False: it is free, or closed. */
bool weir__place_salt(struct weir_table *table, uint32_t place, uint64_t *out);
/* The holder is dead, and its place may be another's soon: what it doomed is anybody's. */
void weir__place_disown(struct weir_table *table, uint32_t place, uint32_t holder);

/* ---- for a process that is alone ---- */

void weir__registry_rebuild(struct weir_table *table);

/* ---- removal, for unused-limits.c ---- */

/* Not in use for some time.  Returns the edition that says so; 0: it is in use.  A user that comes
 * opens it again, and closing it again is another edition: a process that was stopped meanwhile
 * knows by that that its work is void. */
uint64_t weir__place_close(struct weir_table *table, uint32_t place);
bool weir__place_is_closed(struct weir_table *table, uint32_t place, uint64_t edition);
/* Adds to the hand that the place is closed; with that it commits.  False: it is not. */
bool weir__place_stays_closed(struct weir_table *table, uint32_t place, uint64_t edition,
                              struct weir__hand *hand);
/* Closed for good, by this process: nobody can use it again.  Returns the edition, 0: not done. */
uint64_t weir__place_doom(struct weir_table *table, uint32_t place, uint64_t edition);
/* Nothing is left of it: the place is free, unless somebody uses it again. */
void weir__place_free(struct weir_table *table, uint32_t place, uint64_t edition);

#endif
