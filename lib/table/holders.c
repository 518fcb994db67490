/* holders.c -- the processes that are attached.
 *
 * A holder is a process: its pid, its start time and its pid namespace, in a place of the table
 * that it keeps locked (holder-lock.h).  The kernel is asked at most four times a second whether it
 * is alive.  Without locks nothing is known about a holder in another namespace, and nothing about
 * exec: it counts as alive.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/hand.h"
#include "table/holder-lock.h"
#include "table/holders.h"
#include "table/registry.h"

#define LOOK (WEIR_SECOND / 4) /* between two looks at who is alive */

/* Where the pid is. */
#define COMING          UINT32_MAX       /* the rest of the place is being written */
#define COMING_UNLOCKED (UINT32_MAX - 1) /* by a process that has no lock */
/* | by which holder: what the dead one left is being put away */
#define BURIED ((uint32_t)1 << 31)

/* The 22nd field of /proc/PID/stat; the name before it may have spaces and brackets in it.  0: not
 * there.  The third field is its state: a zombie holds nothing any more, unless only its first
 * thread is one, and others (the 20th field) go on. */
static uint64_t start_of(uint32_t pid, bool *gone)
{
    char path[32], text[512];

    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *p = strrchr(text, ')');
    bool dead = p != NULL && p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X');
    for (int field = 2; p != NULL && field < 22; field++) {
        if (field == 20)
            *gone = dead && strtol(p + 1, NULL, 10) <= 1;
        p = strchr(p + 1, ' ');
    }
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

static uint64_t own_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* kill may not touch another user's process, and says so: then it is there.  A process that has no
 * descriptor left cannot read when it began. */
static bool runs(const struct weir__holder *h, uint64_t space)
{
    if (h->space != space || space == 0)
        return true;
    if (kill((pid_t)h->pid, 0) != 0 && errno == ESRCH)
        return false;
    bool gone = false;
    uint64_t start = start_of(h->pid, &gone);
    return !gone && (start == 0 || h->start == 0 || start == h->start);
}

/* False: its process has ended, or begun another program.  One that just comes or is buried is
 * alive while somebody has the lock. */
static bool is_alive(struct weir_table *table, uint32_t place, const struct weir__holder *h,
                     uint64_t space)
{
    bool locked = h->pid == COMING || h->pid == BURIED || (h->locked && !(h->pid & BURIED));

    if (locked && weir__holder_lock_is_free(table, place))
        return false;
    return (h->pid & BURIED) || runs(h, space);
}

/* False: the place is free, or just changes hands. */
static bool read_holder(const struct weir__holder *h, struct weir__holder *out)
{
    out->pid = __atomic_load_n(&h->pid, __ATOMIC_ACQUIRE);
    out->locked = __atomic_load_n(&h->locked, __ATOMIC_ACQUIRE);
    out->start = __atomic_load_n(&h->start, __ATOMIC_ACQUIRE);
    out->space = __atomic_load_n(&h->space, __ATOMIC_ACQUIRE);
    return out->pid != 0 && weir__get(&h->pid) == out->pid;
}

static void put_away(struct weir_table *table, uint32_t place)
{
    weir__hands_recover(table, place);
    weir__places_forget(table, place);
    weir__count((int64_t *)&table->header->holders_lost, 1);
    weir__publish(&table->holders[place].pid, 0);
}

/* One process puts away what the dead one left: another that did it as well, but was stopped
 * meanwhile, would go on when the place is somebody else's.  If it dies too, that is known by its
 * own place, or by the lock. */
static void bury(struct weir_table *table, uint32_t place, uint32_t was)
{
    uint32_t me = weir__holder_me(table), by_me = BURIED | me;
    bool locked = weir__holder_lock_take(table, place) == WEIR__LOCK_OURS;

    if (!locked && (me == 0 || was == COMING || was == BURIED))
        return;
    if (__atomic_compare_exchange_n(&table->holders[place].pid, &was, by_me, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        for (uint32_t i = 1; i < WEIR__HOLDERS; i++) /* that it was about to bury */
            if (weir__get(&table->holders[i].pid) == (BURIED | place))
                bury(table, i, BURIED | place);
        put_away(table, place);
    }
    if (locked)
        weir__holder_lock_give(table, place);
}

static void bury_all(struct weir_table *table)
{
    uint32_t me = weir__holder_me(table);
    uint64_t space = own_space();

    for (uint32_t i = 1; i < WEIR__HOLDERS; i++) {
        struct weir__holder holder;
        if (i != me && read_holder(&table->holders[i], &holder) &&
            !is_alive(table, i, &holder, space))
            bury(table, i, holder.pid);
    }
    if (me == 0 && table->me != NULL)
        weir__publish(&table->me[0], 0); /* next time it may get a place */
}

void weir__holders_bury(struct weir_table *table, weir_time now)
{
    struct weir__header *h = table->header;
    int64_t last = weir__get(&h->holders_at);

    if (table->fd < 0 || (now >= last && now - last < LOOK) || !weir__only_one(&table->burying))
        return;
    if (__atomic_compare_exchange_n(&h->holders_at, &last, now, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        bury_all(table);
    weir__publish(&table->burying, 0);
}

static bool claim(struct weir_table *table, uint32_t place, const struct weir__holder *self)
{
    struct weir__holder *h = &table->holders[place];
    uint32_t free_pid = 0;

    if (weir__get(&h->pid) != 0)
        return false;
    enum weir__lock lock = weir__holder_lock_take(table, place);
    bool locked = lock == WEIR__LOCK_OURS;
    if (lock == WEIR__LOCK_OTHERS ||
        !__atomic_compare_exchange_n(&h->pid, &free_pid, locked ? COMING : COMING_UNLOCKED, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        if (locked)
            weir__holder_lock_give(table, place);
        return false;
    }
    weir__set(&h->locked, locked);
    weir__set(&h->start, self->start);
    weir__set(&h->space, self->space);
    weir__publish(&h->pid, self->pid);
    return true;
}

/* The free place that was left longest ago: permits of its last holder are swept by now. */
static uint32_t claim_any(struct weir_table *table, const struct weir__holder *self)
{
    for (uint32_t i = 0; i < WEIR__HOLDERS - 1; i++) {
        uint32_t place = 1 + (weir__get(&table->header->holders_next) + i) % (WEIR__HOLDERS - 1);
        if (claim(table, place, self)) {
            weir__set(&table->header->holders_next, place % (WEIR__HOLDERS - 1));
            return place;
        }
    }
    return 0;
}

/* me[0] is the place, or WEIR__HOLDERS if none was free; me[1] the pid that is there. */
static bool has_place(const struct weir_table *table, const uint64_t *me, uint64_t *place)
{
    *place = weir__acquire(&me[0]);
    return *place >= WEIR__HOLDERS ||
           (*place != 0 && weir__get(&table->holders[*place].pid) == weir__get(&me[1]));
}

static __attribute__((noinline)) uint32_t register_me(struct weir_table *table, uint64_t *me)
{
    struct weir__holder self = { .pid = (uint32_t)getpid(), .space = own_space() };
    bool gone;

    self.start = start_of(self.pid, &gone);
    uint64_t place;
    pthread_mutex_lock(&table->mutex); /* threads of this process */
    if (!has_place(table, me, &place)) {
        weir__holder_lock_open(table);
        if (place != 0)
            weir__holder_lock_give(table, (uint32_t)place);
        place = claim_any(table, &self);
        weir__places_reuse(table, (uint32_t)place);
        weir__set(&me[1], self.pid);
        weir__publish(&me[0], place ? place : WEIR__HOLDERS);
    }
    pthread_mutex_unlock(&table->mutex);
    return (uint32_t)place % WEIR__HOLDERS;
}

/* Somebody may have taken it for dead: then it has another one. */
uint32_t weir__holder_me(struct weir_table *table)
{
    uint64_t *me = table->me, place;

    if (me == NULL)
        return 0;
    return __builtin_expect(has_place(table, me, &place), 1) ? (uint32_t)place % WEIR__HOLDERS
                                                             : register_me(table, me);
}

void weir__holder_leave(struct weir_table *table)
{
    uint64_t *me = table->me;
    uint32_t place = me ? (uint32_t)*me % WEIR__HOLDERS : 0, pid = (uint32_t)getpid();

    if (place == 0 || weir__get(&table->holders[place].pid) != pid)
        return;
    weir__places_forget(table, place);
    __atomic_compare_exchange_n(&table->holders[place].pid, &pid, 0, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
    weir__holder_lock_give(table, place);
}
