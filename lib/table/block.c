/* block.c -- pieces of the slab, of any size, taken and given back without a lock.
 *
 * A chunk's word is changed by swaps only:
 *
 *     FREE, DIRTY ─► BUSY ─► class, 1 used ─► class, 2 used ... ─► class, 1 used ─► DIRTY
 *                      └───► RUN, REST, REST ─────────────────────────────────────► DIRTY ─► ...
 *
 * FREE has no disk space, DIRTY is free and still has some.  BUSY is the claimer's alone: others go
 * on to the next chunk.  Each arrow but those of `used` begins a new generation, so a swap prepared
 * before fails after.
 *
 * Taking reserves first (used + 1; from then on the chunk keeps its class), then claims a clear bit
 * of the bitmap; giving clears the bit, then used - 1.  So there are always at least as many clear
 * bits as reservations without one, and a caller that has reserved finds one.
 *
 * Why no list of free blocks: its head is a word that everybody swaps, a kill in the middle loses
 * its tail, and a damaged link leads anywhere.  A bit is only ever a place in its own chunk.
 */
#include "table/block.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/hash.h"

#define LINE      64
#define PER_CHUNK 1024 /* blocks of the least size */
#define ONE_USED  ((uint64_t)1 << 32)
#define USED_MAX  0xffffffu
#define ROUNDS    4 /* through a bitmap; a clear bit can move, but not that often */
#define RUNS      WEIR__BLOCK_CLASSES /* their class */

/* Any other number, by damage: the chunk is left alone. */
enum kind { FREE, CLASS_0, RUN = CLASS_0 + WEIR__BLOCK_CLASSES, REST, BUSY, DIRTY };

static unsigned kind_of(uint64_t word)
{
    return (unsigned)(word >> 56);
}

static uint32_t used_of(uint64_t word)
{
    return (uint32_t)(word >> 32) & USED_MAX;
}

/* `used` of a RUN: its chunks; REST: which of them this is; BUSY: the kind before. */
static uint64_t next_word(uint64_t word, unsigned kind, uint64_t used)
{
    return (uint64_t)kind << 56 | used << 32 | (uint32_t)(word + 1);
}

static bool is_free(uint64_t word)
{
    return kind_of(word) == FREE || kind_of(word) == DIRTY;
}

static unsigned class_of(size_t bytes)
{
    if (bytes > WEIR__CHUNK / 2)
        return RUNS;
    return bytes <= WEIR__BLOCK_LEAST ? 0 : 58 - (unsigned)__builtin_clzll(bytes - 1);
}

static uint64_t run_of(size_t bytes)
{
    return bytes / WEIR__CHUNK + (bytes % WEIR__CHUNK != 0);
}

static uint32_t places_of(unsigned class)
{
    return PER_CHUNK >> class;
}

static bool has_room(uint64_t word, unsigned class)
{
    return kind_of(word) == CLASS_0 + class && used_of(word) < places_of(class);
}

static uint32_t name_of(uint64_t at, uint64_t place, unsigned class)
{
    return (uint32_t)(at * PER_CHUNK + (place << class) + 1);
}

/* --------------------------------------------------------------------- space ---- */

/* So that a full disk is an error here, and not a signal when the block is written. */
static bool get_space(const struct weir__slab *slab, uint64_t at, uint64_t n)
{
    int code;

    if (slab->fd < 0 || n == 0)
        return true;
    do {
        code = posix_fallocate(slab->fd, (off_t)(slab->file_at + at * WEIR__CHUNK),
                               (off_t)(n * WEIR__CHUNK));
    } while (code == EINTR);
    return code == 0 || code == EOPNOTSUPP || code == EINVAL;
}

/* Where this is not possible the space stays, and serves the next taker. */
static void punch(const struct weir__slab *slab, uint64_t at, uint64_t n)
{
    void *bytes = weir__block_at(slab, name_of(at, 0, 0));

    if (slab->fd >= 0)
        (void)fallocate(slab->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        (off_t)(slab->file_at + at * WEIR__CHUNK), (off_t)(n * WEIR__CHUNK));
    else if (madvise(bytes, n * WEIR__CHUNK, MADV_REMOVE) != 0) /* only of shared memory */
        (void)madvise(bytes, n * WEIR__CHUNK, MADV_DONTNEED);
}

/* -------------------------------------------------------------- whole chunks ---- */

/* After every change that lets somebody take who could not before. */
static void note_room(struct weir__slab *slab, uint64_t at, unsigned class)
{
    weir__set(&slab->first[class], at);
    __atomic_fetch_add(slab->room, 1, __ATOMIC_ACQ_REL);
}

static void settle(struct weir__slab *slab, uint64_t at, unsigned kind, uint64_t used)
{
    weir__publish(&slab->words[at], next_word(weir__get(&slab->words[at]), kind, used));
}

/* Claimed chunks become free: FREE, or as they were. */
static void release(struct weir__slab *slab, uint64_t at, uint64_t n, bool as_before)
{
    for (uint64_t i = at; i < at + n; i++)
        settle(slab, i, as_before ? used_of(weir__get(&slab->words[i])) : FREE, 0);
    note_room(slab, at, RUNS);
}

/* Chunks that may ever have been in use: the first that many.  A kill leaves it too high, damage
 * anywhere, and claim corrects it. */
static uint64_t top_of(const struct weir__slab *slab)
{
    uint64_t top = weir__load(slab->top);

    return top < slab->count ? top : slab->count;
}

/* Makes n free chunks BUSY.  Returns how many were still free: if fewer than n, none is kept. */
static uint64_t claim(struct weir__slab *slab, uint64_t at, uint64_t n)
{
    uint64_t top, i;

    do {
        top = weir__load(slab->top);
    } while (top < at + n && !weir__swap(slab->top, top, at + n));
    for (i = 0; i < n; i++) {
        uint64_t word = weir__load(&slab->words[at + i]);
        if (!is_free(word) ||
            !weir__swap(&slab->words[at + i], word, next_word(word, BUSY, kind_of(word))))
            break;
    }
    if (i < n && i > 0)
        release(slab, at, i, true);
    return i;
}

/* Disk space for claimed chunks; if there is none they are free again. */
static bool furnish(struct weir__slab *slab, uint64_t at, uint64_t n)
{
    uint64_t i = at;

    while (i < at + n && used_of(weir__get(&slab->words[i])) == DIRTY)
        i++;
    if (get_space(slab, i, at + n - i))
        return true;
    if (slab->no_disk != NULL)
        weir__count(slab->no_disk, 1);
    punch(slab, at, n); /* it may have got a part */
    release(slab, at, n, false);
    return false;
}

static uint32_t make_run(struct weir__slab *slab, uint64_t at, uint64_t n)
{
    for (uint64_t i = n - 1; i > 0; i--)
        settle(slab, at + i, REST, i);
    settle(slab, at, RUN, n);
    weir__set(&slab->first[RUNS], at);
    return name_of(at, 0, 0);
}

/* In the first `end` chunks. */
static uint32_t search_run(struct weir__slab *slab, uint64_t n, uint64_t end, bool *disk_full)
{
    uint64_t at = weir__get(&slab->first[RUNS]), length = 0;

    for (uint64_t i = 0; i < end + n; i++, at++) {
        if (at >= end) { /* a run does not go round the end */
            at = 0;
            length = 0;
        }
        uint64_t word = weir__load(&slab->words[at]), got;
        length = is_free(word) && !(*disk_full && kind_of(word) == FREE) ? length + 1 : 0;
        if (length < n)
            continue;
        got = claim(slab, at + 1 - n, n);
        if (got == n && furnish(slab, at + 1 - n, n))
            return make_run(slab, at + 1 - n, n);
        *disk_full = *disk_full || got == n;
        length = got == n ? 0 : n - 1 - got; /* what is left after the one that was not free */
    }
    return 0;
}

/* Chunks of its size that a chunk in use stands for.  All of the guests' runs are one size. */
static uint64_t count_own(uint64_t word, unsigned class, uint64_t n, bool guest)
{
    unsigned kind = kind_of(word);

    if (class < RUNS || guest)
        return kind == CLASS_0 + class || (class == RUNS && kind == REST);
    return kind == RUN && used_of(word) == n ? n : 0;
}

/* The last free chunks are for sizes that have few.  Else one size could take all of them, and
 * nothing of another size be kept: a chunk holds blocks of one size, and is seldom empty again.
 * Of runs, few are two at least: a state and the copy that changes it.  Guests leave more: they
 * choose their sizes. */
static bool may_claim(const struct weir__slab *slab, unsigned class, uint64_t n, bool guest)
{
    uint64_t top = top_of(slab), free = slab->count - top, own = 0,
             few = slab->kept / (WEIR__BLOCK_CLASSES + 1),
             kept = guest && weir__get(&slab->from_guests) > slab->kept
                        ? weir__get(&slab->from_guests)
                        : slab->kept;

    for (uint64_t at = 0; at < top && free < kept + n; at++) {
        uint64_t word = weir__load(&slab->words[at]);
        free += is_free(word);
        own += count_own(word, class, n, guest);
    }
    few = few > 0 ? few : 1;
    few = class == RUNS && !guest && few < 2 * n ? 2 * n : few;
    return free >= kept + n || own + n <= few;
}

/* Where others use chunks for the first time meanwhile, there is room behind these. */
static uint32_t take_run(struct weir__slab *slab, uint64_t n, bool guest)
{
    bool disk_full = false;
    uint32_t block = 0;
    uint64_t top;

    do {
        top = top_of(slab);
        if (n > slab->count || !may_claim(slab, RUNS, n, guest))
            return 0;
        if (top >= n)
            block = search_run(slab, n, top, &disk_full);
        if (block == 0)
            block = search_run(slab, n, top + n < slab->count ? top + n : slab->count, &disk_full);
    } while (block == 0 && top_of(slab) != top && !disk_full);
    return block;
}

static void give_run(struct weir__slab *slab, uint64_t at, uint64_t n)
{
    uint64_t word = weir__load(&slab->words[at]);

    if (kind_of(word) != RUN || used_of(word) != n ||
        !weir__swap(&slab->words[at], word, next_word(word, DIRTY, 0)))
        return;
    for (uint64_t i = 1; i < n; i++) {
        word = weir__load(&slab->words[at + i]);
        if (kind_of(word) == REST && used_of(word) == i) /* else by damage */
            (void)weir__swap(&slab->words[at + i], word, next_word(word, DIRTY, 0));
    }
    note_room(slab, at, RUNS);
}

/* ------------------------------------------------------------ blocks of a chunk ---- */

static bool reserve(struct weir__slab *slab, uint64_t at, unsigned class)
{
    uint64_t word;

    do {
        word = weir__load(&slab->words[at]);
        if (!has_room(word, class))
            return false;
    } while (!weir__swap(&slab->words[at], word, word + ONE_USED));
    return true;
}

static void unreserve(struct weir__slab *slab, uint64_t at, unsigned class)
{
    uint64_t word, next;

    do {
        word = weir__load(&slab->words[at]);
        if (kind_of(word) != CLASS_0 + class)
            return; /* by damage */
        next = used_of(word) > 1 ? word - ONE_USED : next_word(word, DIRTY, 0);
    } while (!weir__swap(&slab->words[at], word, next));
    if (is_free(next) || !has_room(word, class))
        note_room(slab, at, class);
}

/* After reserve.  Threads begin at places of their own, so that they seldom meet.  0, and no longer
 * reserved, only if the bitmap is damaged or others were faster again and again. */
static uint32_t claim_place(struct weir__slab *slab, uint64_t at, unsigned class)
{
    uint64_t hint = weir__thread_hint(10), places = places_of(class), words = (places + 63) / 64;
    uint64_t all = places < 64 ? ((uint64_t)1 << places) - 1 : UINT64_MAX;

    for (uint64_t i = 0; i < words * ROUNDS; i++) {
        uint64_t w = (hint + i) & (words - 1), *word = &slab->bitmaps[at][w], clear;

        while ((clear = ~weir__load(word) & all) != 0) {
            uint64_t own = clear & UINT64_MAX << (hint >> 4);
            unsigned bit = (unsigned)__builtin_ctzll(own != 0 ? own : clear);
            if ((weir__set_bits(word, (uint64_t)1 << bit) >> bit & 1) == 0)
                return name_of(at, w * 64 + bit, class);
        }
    }
    unreserve(slab, at, class);
    return 0;
}

static uint32_t take_place(struct weir__slab *slab, uint64_t at, unsigned class)
{
    return reserve(slab, at, class) ? claim_place(slab, at, class) : 0;
}

/* A claimed chunk with space becomes one of the class, with a place reserved for the caller. */
static void prepare(struct weir__slab *slab, uint64_t at, unsigned class)
{
    for (size_t i = 0; i < PER_CHUNK / 64; i++)
        weir__set(&slab->bitmaps[at][i], (uint64_t)0);
    settle(slab, at, CLASS_0 + class, 1);
    note_room(slab, at, class);
}

/* From any chunk of the class.  *spare: if there is none, a free chunk, best one that has disk
 * space; `count`: there is none either. */
static uint32_t search(struct weir__slab *slab, unsigned class, uint64_t *spare)
{
    uint64_t at = weir__get(&slab->first[class]), top = top_of(slab), word;
    unsigned spare_kind = BUSY;
    uint32_t block;

    *spare = top;
    for (uint64_t i = 0; i < top; i++, at++) {
        at = at < top ? at : 0;
        word = weir__load(&slab->words[at]);
        if (has_room(word, class) && (block = take_place(slab, at, class)) != 0) {
            weir__set(&slab->first[class], at);
            return block;
        }
        if (is_free(word) && spare_kind != DIRTY && spare_kind != kind_of(word)) {
            *spare = at;
            spare_kind = kind_of(word);
        }
    }
    return 0;
}

/* Goes round again only if another has just claimed the spare chunk, or its places.  Where the slab
 * is full this costs two looks: nothing is searched until there is room again. */
static uint32_t take_small(struct weir__slab *slab, unsigned class, bool guest)
{
    uint32_t block = take_place(slab, weir__get(&slab->first[class]), class);

    while (block == 0) {
        uint64_t room = weir__load(slab->room), spare;

        if (weir__get(&slab->none[guest][class]) == room + 1)
            return 0;
        block = search(slab, class, &spare);
        if (block == 0 && (spare == slab->count || !may_claim(slab, class, 1, guest))) {
            weir__set(&slab->none[guest][class], room + 1);
            return 0;
        }
        if (block != 0 || claim(slab, spare, 1) != 1)
            continue;
        if (!furnish(slab, spare, 1))
            return 0;
        prepare(slab, spare, class);
        block = claim_place(slab, spare, class);
    }
    return block;
}

/* ------------------------------------------------------------------ the doors ---- */

static bool is_inside(const struct weir__slab *slab, uint32_t block, size_t bytes)
{
    unsigned class = class_of(bytes);
    uint64_t place = (uint64_t)block - 1, at = place / PER_CHUNK;

    if (block == 0 || at >= slab->count || place % ((uint64_t)1 << class) != 0)
        return false;
    return class < RUNS || run_of(bytes) <= slab->count - at;
}

size_t weir__block_round(size_t bytes)
{
    unsigned class = class_of(bytes);

    return class == RUNS ? run_of(bytes) * WEIR__CHUNK : (size_t)WEIR__BLOCK_LEAST << class;
}

size_t weir__block_bytes(const struct weir__slab *slab, uint32_t block)
{
    uint64_t at = ((uint64_t)block - 1) * WEIR__BLOCK_LEAST, chunk = at / WEIR__CHUNK;

    if (block == 0 || chunk >= slab->count)
        return 0;
    uint64_t word = weir__load(&slab->words[chunk]);
    if (kind_of(word) == RUN)
        return at % WEIR__CHUNK != 0 || used_of(word) > slab->count - chunk
                   ? 0
                   : used_of(word) * WEIR__CHUNK;
    if (kind_of(word) < CLASS_0 || kind_of(word) >= RUN)
        return 0;
    size_t bytes = (size_t)WEIR__BLOCK_LEAST << (kind_of(word) - CLASS_0);
    return at % bytes == 0 ? bytes : 0;
}

bool weir__block_is_valid(const struct weir__slab *slab, uint32_t block, size_t bytes)
{
    unsigned class = class_of(bytes);
    uint64_t word;

    if (!is_inside(slab, block, bytes))
        return false;
    word = weir__load(&slab->words[(block - 1) / PER_CHUNK]);
    return kind_of(word) == CLASS_0 + class && (class < RUNS || used_of(word) == run_of(bytes));
}

static uint32_t take(struct weir__slab *slab, size_t bytes, bool guest)
{
    unsigned class = class_of(bytes);

    if (slab->count == 0)
        return 0;
    return class < RUNS ? take_small(slab, class, guest) : take_run(slab, run_of(bytes), guest);
}

uint32_t weir__block_take(struct weir__slab *slab, size_t bytes)
{
    return take(slab, bytes, false);
}

uint32_t weir__block_take_guest(struct weir__slab *slab, size_t bytes)
{
    return take(slab, bytes, true);
}

bool weir__slab_has_room(const struct weir__slab *slab, size_t bytes)
{
    unsigned class = class_of(bytes);
    uint64_t n = class < RUNS ? 1 : run_of(bytes), top = top_of(slab), free = 0, longest = 0;

    for (uint64_t at = 0; at < top; at++) {
        uint64_t word = weir__load(&slab->words[at]);
        if (class < RUNS && has_room(word, class))
            return true;
        free = is_free(word) ? free + 1 : 0;
        longest = free > longest ? free : longest;
    }
    free += slab->count - top; /* the rest was never in use */
    return (free > longest ? free : longest) >= n && may_claim(slab, class, n, false);
}

bool weir__slab_is_used(const struct weir__slab *slab)
{
    return weir__load(slab->top) != 0;
}

bool weir__slab_has_blocks(const struct weir__slab *slab, size_t bytes)
{
    unsigned class = class_of(bytes);
    bool any = false;

    for (uint64_t at = 0, top = top_of(slab); at < top && !any; at++) {
        uint64_t word = weir__load(&slab->words[at]);
        any = kind_of(word) == CLASS_0 + class && (class < RUNS || used_of(word) == run_of(bytes));
    }
    return any;
}

/* The word of the block's bit in the bitmap. */
static uint64_t *bits_of(const struct weir__slab *slab, uint32_t block, unsigned class)
{
    return &slab->bitmaps[(block - 1) / PER_CHUNK][((block - 1) % PER_CHUNK >> class) / 64];
}

static uint64_t bit_of(uint32_t block, unsigned class)
{
    return (uint64_t)1 << ((block - 1) % PER_CHUNK >> class) % 64;
}

void weir__block_give(struct weir__slab *slab, uint32_t block, size_t bytes)
{
    unsigned class = class_of(bytes);
    uint64_t at = (uint64_t)(block - 1) / PER_CHUNK, bit = bit_of(block, class);

    if (!weir__block_is_valid(slab, block, bytes))
        return;
    if (class == RUNS)
        give_run(slab, at, run_of(bytes));
    else if (weir__clear_bits(bits_of(slab, block, class), bit) & bit)
        unreserve(slab, at, class);
}

/* ------------------------------------------------------------------ the slab ---- */

static uint64_t words_bytes(uint64_t count)
{
    return (count * 8 + LINE - 1) / LINE * LINE;
}

uint64_t weir__slab_map_bytes(uint64_t count)
{
    return LINE + words_bytes(count) + count * PER_CHUNK / 8;
}

void weir__slab_open(struct weir__slab *slab, void *map)
{
    unsigned char *at = map;

    slab->room = map;
    slab->top = slab->room + 1;
    slab->words = (uint64_t *)(void *)(at + LINE);
    slab->bitmaps = (uint64_t(*)[16])(void *)(at + LINE + words_bytes(slab->count));
    memset(slab->first, 0, sizeof(slab->first));
    memset(slab->none, 0, sizeof(slab->none));
}

uint64_t weir__slab_trim(struct weir__slab *slab, uint64_t most)
{
    uint64_t done = 0;

    for (uint64_t at = 0, top = top_of(slab); at < top && done < most; at++) {
        if (kind_of(weir__load(&slab->words[at])) != DIRTY || claim(slab, at, 1) != 1)
            continue;
        punch(slab, at, 1);
        release(slab, at, 1, false);
        done++;
    }
    return done;
}

static bool is_furnished(const struct weir__slab *slab, uint64_t at)
{
    return kind_of(weir__load(&slab->words[at])) != FREE;
}

uint64_t weir__slab_furnished(const struct weir__slab *slab, uint64_t at, uint64_t *from)
{
    uint64_t top = top_of(slab), end;

    while (at < top && !is_furnished(slab, at))
        at++;
    for (end = at; end < top && is_furnished(slab, end);)
        end++;
    *from = at;
    return end - at;
}

struct weir__slab_stats weir__slab_stats(const struct weir__slab *slab)
{
    struct weir__slab_stats stats = { 0 };

    for (uint64_t at = 0; at < slab->count; at++) {
        uint64_t word = weir__load(&slab->words[at]);
        unsigned class = kind_of(word) - CLASS_0;
        stats.chunks += !is_free(word);
        stats.untrimmed += kind_of(word) == DIRTY;
        if (class < RUNS)
            stats.bytes += used_of(word) * (WEIR__BLOCK_LEAST << class);
        else if (kind_of(word) == RUN || kind_of(word) == REST)
            stats.bytes += WEIR__CHUNK;
    }
    return stats;
}

void weir__slab_rebuild_begin(struct weir__slab *slab)
{
    for (uint64_t at = 0; at < slab->count; at++)
        settle(slab, at, FREE, 0);
    memset(slab->bitmaps, 0, slab->count * sizeof(slab->bitmaps[0]));
    memset(slab->none, 0, sizeof(slab->none));
    weir__publish(slab->top, (uint64_t)0);
}

static bool mark_run(struct weir__slab *slab, uint64_t at, uint64_t n)
{
    for (uint64_t i = at; i < at + n; i++) {
        if (kind_of(slab->words[i]) != FREE)
            return false;
    }
    (void)make_run(slab, at, n);
    return true;
}

bool weir__slab_rebuild_mark(struct weir__slab *slab, uint32_t block, size_t bytes)
{
    unsigned class = class_of(bytes);
    uint64_t at = (uint64_t)(block - 1) / PER_CHUNK, word;

    if (!is_inside(slab, block, bytes))
        return false;
    if (class == RUNS)
        return mark_run(slab, at, run_of(bytes));
    word = slab->words[at];
    if (kind_of(word) != FREE && !has_room(word, class))
        return false;
    if (weir__set_bits(bits_of(slab, block, class), bit_of(block, class)) & bit_of(block, class))
        return false;
    settle(slab, at, CLASS_0 + class, kind_of(word) == FREE ? 1 : used_of(word) + 1);
    return true;
}

/* A file may have come here with other holes than it had: a copy. */
bool weir__slab_rebuild_end(struct weir__slab *slab)
{
    bool has_space = true;

    for (uint64_t at = 0, end; at < slab->count; at = end) {
        bool used = kind_of(slab->words[at]) != FREE;
        for (end = at + 1; end < slab->count && (kind_of(slab->words[end]) != FREE) == used;)
            end++;
        if (!used) {
            punch(slab, at, end - at);
            continue;
        }
        has_space = get_space(slab, at, end - at) && has_space;
        weir__publish(slab->top, end);
    }
    note_room(slab, 0, RUNS);
    return has_space;
}
