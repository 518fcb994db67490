/* clock.c -- a table's time: it never goes back, not even across a reboot with a clock that is
 * wrong, and states go on counting. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "weir-queue.h"

#define HOUR     (3600 * S)
#define DAY      (24 * HOUR)
#define YEAR     (365 * DAY)
#define FIELD(m) offsetof(struct weir__header, m)

/* -------------------------------------------------------------- the offset ---- */

TEST(test_offset_makes_the_table_time_the_real_one)
{
    assert_int_equal(weir__table_clock_offset(0, 1700000000 * S, 5 * S), 1700000000 * S - 5 * S);
    assert_int_equal(weir__table_clock_offset(0, 5 * S, 5 * S), 0);
    assert_int_equal(weir__table_clock_offset(0, 0, 5 * S),
                     -5 * S); /* a host that believes it is 1970 */
}

TEST(test_offset_never_goes_back)
{
    static const struct {
        weir_time latest, real, monotonic, now; /* now: the table's time that must come out */
    } rows[] = {
        { 100 * S, 200 * S, 3 * S, 200 * S },         /* the usual reboot: some time has passed */
        { 200 * S, 200 * S, 3 * S, 200 * S },         /* none has */
        { 200 * S, 100 * S, 3 * S, 200 * S },         /* the real clock was set back meanwhile */
        { 20 * YEAR, 0, 1, 20 * YEAR },               /* a dead battery: 1970 again */
        { 20 * YEAR, 250 * YEAR, 9 * S, 250 * YEAR }, /* far ahead */
        { INT64_MAX, 20 * YEAR, 0, INT64_MAX },       /* a damaged file */
        { 0, INT64_MAX, 0, INT64_MAX },
        { 50 * S, 40 * S, 9 * YEAR, 50 * S }, /* up for longer than the table's time */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(weir__table_clock_offset(rows[i].latest, rows[i].real, rows[i].monotonic) +
                             rows[i].monotonic,
                         rows[i].now);
}

/* ---------------------------------------------------------- a table's clock ---- */

TEST(test_a_new_table_has_the_real_time)
{
    weir_time before = weir__clock_real();

    OWN(weir_table) *table = private_table(false, 1);
    weir_time now = weir_table_now(table);
    assert_true(now >= before - 2 * S &&
                now <= weir__clock_real() + 2 * S); /* the host's clock may be slewed meanwhile */
}

TEST(test_time_never_goes_back_within_a_run)
{
    const char *path = new_path();
    struct weir_table *one = table_with(&(struct weir_table_options){ .path = path, .keys = 1 }),
                      *two = attach(path);
    struct weir_clock clock = weir_table_clock(two);
    weir_time latest = 0;

    for (int i = 0; i < 10000; i++) { /* on any processor */
        weir_time now = i % 3 == 0   ? weir_table_now(one)
                        : i % 3 == 1 ? weir_table_now(two)
                                     : clock.now(clock.context);
        assert_true(now >= latest);
        latest = now;
    }
    weir_table_destroy(one);
    weir_table_destroy(two);
}

/* -------------------------------------------------------------- the reboot ---- */

/* A table whose key "used" has taken 4 of 10 at its own time; nobody is attached when it
 * returns. */
static weir_time make_used(const char *path)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
    struct weir_limiter *limiter = limiter_of(table, "l", "fixed-window 10/100w align=first");
    weir_time now = weir_table_now(table);
    assert_true(take(limiter, "used", 4, now).allowed);
    now = weir_table_now(table);
    return now;
}

/* As if the host had booted since: another id, and a monotonic clock that has nothing to do with
 * the offset. */
static void reboot(const char *path, weir_time latest)
{
    unsigned char id[WEIR__BOOT_ID_SIZE];
    int64_t offset = -9 * YEAR;

    read_at(path, FIELD(boot_id), id, sizeof(id));
    id[5] ^= 0x40;
    write_at(path, FIELD(boot_id), id, sizeof(id));
    write_at(path, FIELD(clock_offset), &offset, sizeof(offset));
    if (latest >= 0)
        write_at(path, FIELD(clock_latest), &latest, sizeof(latest));
}

TEST(test_time_goes_on_after_a_reboot_and_states_count)
{
    const char *path = new_path();
    weir_time before = make_used(path);

    reboot(path, -1);
    OWN(weir_table) *table = attach(path);
    weir_time now = weir_table_now(table);
    assert_true(now >= before);
    assert_true(now < before + HOUR);
    assert_int_equal(left(limiter_of(table, "l", "fixed-window 10/100w align=first"), "used", now),
                     6);
}

TEST(test_a_reboot_is_dealt_with_once)
{
    const char *path = new_path();
    unsigned char id[WEIR__BOOT_ID_SIZE], mine[WEIR__BOOT_ID_SIZE];
    int64_t first, second;

    make_used(path);
    reboot(path, -1);
    weir_table_destroy(attach(path));
    read_at(path, FIELD(clock_offset), &first, sizeof(first));
    read_at(path, FIELD(boot_id), id, sizeof(id));
    weir__clock_boot_id(mine);
    assert_memory_equal(id, mine, sizeof(id));
    weir_table_destroy(attach(path));
    read_at(path, FIELD(clock_offset), &second, sizeof(second));
    assert_int_equal(second, first);
}

TEST(test_time_goes_on_when_the_real_clock_is_behind)
{
    const char *path = new_path();
    weir_time latest = make_used(path) + YEAR;

    reboot(path, latest); /* the table has seen next year; the clock says this one */
    OWN(weir_table) *table = attach(path);
    weir_time now = weir_table_now(table);
    assert_true(now >= latest && now < latest + HOUR);
    assert_int_equal(left(limiter_of(table, "l", "fixed-window 10/100w align=first"), "used", now),
                     6);
    weir_table_destroy(table);
    table = attach(path); /* and so it stays */
    assert_true(weir_table_now(table) >= now && weir_table_now(table) < latest + HOUR);
}

TEST(test_time_jumps_ahead_with_the_real_clock)
{
    const char *path = new_path();

    make_used(path);
    weir_time real = weir__clock_real();
    reboot(path, real - 300 * DAY); /* switched off for most of a year */
    OWN(weir_table) *table = attach(path);
    weir_time now = weir_table_now(table);
    assert_true(now >= real - 2 * S && now < real + HOUR);
}

TEST(test_without_a_reboot_the_offset_stays)
{
    const char *path = new_path();
    int64_t offset, after;

    make_used(path);
    read_at(path, FIELD(clock_offset), &offset, sizeof(offset));
    offset += 7 * DAY; /* as if the real clock had been set back since */
    write_at(path, FIELD(clock_offset), &offset, sizeof(offset));
    struct weir_table *table = attach(path);
    assert_true(weir_table_now(table) > weir__clock_real() + 6 * DAY);
    weir_table_destroy(table);
    read_at(path, FIELD(clock_offset), &after, sizeof(after));
    assert_int_equal(after, offset);
}

TEST(test_time_is_not_moved_under_those_attached)
{
    const char *path = new_path();

    make_used(path);
    OWN(weir_table) *one = attach(path);
    weir_time before = weir_table_now(one);
    one->header->boot_id[0] ^=
        1; /* no process outlives a boot: this is damage, and no reason to rebase */
    one->header->clock_latest += 3 * YEAR;
    OWN(weir_table) *two = attach(path);
    assert_true(weir_table_now(one) >= before && weir_table_now(one) < before + HOUR);
    assert_true(weir_table_now(two) >= before && weir_table_now(two) < before + HOUR);
}

TEST(test_any_clock_in_the_file_gives_a_time)
{
    static const int64_t odd[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
    const char *path = new_path();

    make_used(path);
    for (size_t i = 0; i < COUNT_OF(odd) * COUNT_OF(odd) * 2; i++) {
        int64_t offset = odd[i % COUNT_OF(odd)], latest = odd[i / COUNT_OF(odd) % COUNT_OF(odd)];
        write_at(path, FIELD(clock_offset), &offset, sizeof(offset));
        write_at(path, FIELD(clock_latest), &latest, sizeof(latest));
        if (i >= COUNT_OF(odd) * COUNT_OF(odd)) {
            unsigned char zeros[WEIR__BOOT_ID_SIZE] = { 0 };
            write_at(path, FIELD(boot_id), zeros, sizeof(zeros));
        }
        OWN(weir_table) *table = attach(path);
        assert_true(weir_table_now(table) >= 0);
    }
}

/* ------------------------------------------------------------ the real time ---- */

/* A table made when the host's clock was `wrong` ns ahead of the real time; now it is right. */
static struct weir_table *made_wrong(const char *path, int64_t wrong)
{
    struct weir_table *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 100 });

    table->header->clock_offset += wrong;
    table->header->real_at = 0;
    return table;
}

static bool is_near(weir_time a, weir_time b)
{
    return a - b < 10 * S && b - a < 10 * S;
}

TEST(test_the_real_time_is_known_although_the_table_was_made_with_a_wrong_clock)
{
    static const int64_t wrong[] = { -90 * DAY, 5 * YEAR, 0, -2 * S, 3 * HOUR };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const char *path = new_path();
        OWN(weir_table) *table = made_wrong(path, wrong[i]);
        weir_time now = weir_table_now(table);
        assert_true(is_near(now, weir__clock_real() + wrong[i])); /* its own axis stays */
        assert_true(is_near(weir_table_real(table, now), weir__clock_real()));
        OWN(weir_table) *other = attach(path);
        assert_true(is_near(weir_table_real(other, weir_table_now(other)), weir__clock_real()));
    }
}

TEST(test_the_real_clock_is_followed_when_it_steps_and_looked_at_once_a_second)
{
    OWN(weir_table) *table = private_table(false, 1);
    struct weir__header *h = table->header;
    weir_time mono = weir__clock_monotonic(), now = mono + h->clock_offset;

    weir__table_follow(table, now - 90 * DAY, mono, mono);
    assert_int_equal(h->real_ahead, -90 * DAY);
    assert_int_equal(h->real_at, mono);
    weir__table_follow(table, now - 90 * DAY + S / 20, mono, mono); /* one after another */
    assert_int_equal(h->real_ahead, -90 * DAY);
    weir__table_follow(table, now + 5 * YEAR, mono, mono);
    assert_int_equal(h->real_ahead, 5 * YEAR);
    weir__table_follow(table, now, mono, mono);
    assert_int_equal(h->real_ahead, 0);
    weir__table_follow(table, now + 5 * YEAR, mono, mono);
    h->real_at = weir__clock_monotonic() - S / 2;
    weir_table_now(table);
    assert_true(h->real_ahead == 5 * YEAR || weir__clock_monotonic() - mono > S / 4);
    h->real_at -= S / 2;
    weir_table_now(table);
    assert_int_equal(weir_table_real(table, 7 * S), 7 * S + h->real_ahead);
    assert_true(h->real_ahead != 5 * YEAR);
}

/* Between its looks at the two clocks: the time that it was stopped for is no step of the clock. */
TEST(test_T5_a_process_that_was_stopped_does_not_take_that_for_a_step_of_the_clock)
{
    OWN(weir_table) *table = private_table(false, 1);
    struct weir__header *h = table->header;
    weir_time mono = weir__clock_monotonic(), now = mono + h->clock_offset;

    assert_true(weir__table_follow(table, now, mono, mono));
    assert_false(weir__table_follow(table, now + 3600 * S, mono, mono + 3600 * S));
    assert_int_equal(h->real_ahead, 0);
}

TEST(test_any_difference_in_the_file_gives_a_time)
{
    static const int64_t odd[] = { INT64_MIN, INT64_MIN + 1, -1, 1, INT64_MAX };

    OWN(weir_table) *table = private_table(false, 10);
    struct weir_limiter *limiter = limiter_of(table, "l", "5/month zone=Europe/Berlin");
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        for (weir_time now = 0; now <= INT64_MAX / 2; now = 2 * now + YEAR) {
            table->header->real_ahead = odd[i];
            assert_true(weir_table_real(table, now) >= 0);
            take(limiter, "k", 1, now);
            give(limiter, "k", 1, now);
            assert_true(left(limiter, "k", now) <= 5);
            stats_of(table, now);
        }
}

/* 31 March 2027, 23:59:50 in Berlin, where summer time began three days before. */
#define MARCH_ENDS (1806530400 * S)

/* The same asks in real time give the same answers, whatever the table's clock says. */
static void expect_month_edge(int64_t wrong)
{
    OWN(weir_table) *table = private_table(false, 10);
    struct weir_limiter *limiter = limiter_of(table, "l", "3/month zone=Europe/Berlin");
    weir_time own = MARCH_ENDS + wrong; /* the table's time then */

    table->header->real_ahead = -wrong;
    assert_true(take(limiter, "k", 3, own - 10 * S).allowed);
    struct weir_decision d = take(limiter, "k", 1, own - 1);
    assert_false(d.allowed);
    assert_int_equal(d.retry, 1);
    assert_int_equal(stats_of(table, own - 1).live, 1);
    assert_int_equal(stats_of(table, own).live, 0);
    d = take(limiter, "k", 1, own);
    assert_true(d.allowed);
    assert_int_equal(d.remaining, 2);
    assert_int_equal(d.reset, 30 * DAY);
}

TEST(test_months_end_when_they_really_do)
{
    static const int64_t wrong[] = { 0, -90 * DAY, 5 * YEAR, -YEAR, 12345678987654321 };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        expect_month_edge(wrong[i]);
}

TEST(test_a_month_under_a_wrong_clock_that_is_put_right)
{
    static const int64_t wrong[] = { -90 * DAY, 5 * YEAR };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        OWN(weir_table) *table = private_table(false, 10);
        struct weir_limiter *month = limiter_of(table, "m", "3/month zone=Europe/Berlin"),
                            *span = limiter_of(table, "s", "3/90d");
        weir_time own = MARCH_ENDS + wrong[i];
        assert_true(take(month, "k", 2, own - DAY).allowed); /* the wrong time is believed */
        assert_true(take(span, "k", 3, own - DAY).allowed);
        table->header->real_ahead = -wrong[i]; /* set right */
        int64_t rest = wrong[i] < 0 ? 3 : 1;   /* set back: what was used stays used */
        assert_int_equal(left(month, "k", own - 1), rest);
        assert_true(take(month, "k", 1, own - 1).allowed);
        assert_int_equal(left(month, "k", own - 1), rest - 1);
        assert_int_equal(left(month, "k", own), 3);
        assert_int_equal(left(span, "k", own), 0); /* other limits have not noticed */
    }
}

/* -------------------------------------------------------------- the boot id ---- */

TEST(test_boot_id_is_what_the_host_says)
{
    unsigned char id[WEIR__BOOT_ID_SIZE], again[WEIR__BOOT_ID_SIZE];
    char text[64] = "", printed[2 * WEIR__BOOT_ID_SIZE + 1] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t digits = 0;

    memset(id, 0xff, sizeof(id));
    weir__clock_boot_id(id);
    weir__clock_boot_id(again);
    assert_memory_equal(id, again, sizeof(id));
    if (f == NULL)
        skip();
    assert_non_null(fgets(text, sizeof(text), f));
    fclose(f);
    for (size_t i = 0; i < sizeof(id); i++)
        sprintf(printed + 2 * i, "%02x", id[i]);
    for (const char *p = text; *p != '\0' && *p != '\n'; p++)
        if (*p != '-')
            text[digits++] = *p;
    text[digits] = '\0';
    assert_string_equal(printed, text);
}

GROUP(make_folder, remove_folder)
