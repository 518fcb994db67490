/* tzif.c -- files of the time zone database: what good ones mean, and what bad ones are refused
 * for. */
#include "unit/test.h"

#include "base/zone.h"

/* ------------------------------------------------------- making a file ---- */

struct file {
    unsigned char bytes[70000];
    size_t size;
};

static void put(struct file *f, const void *bytes, size_t size)
{
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

static void put_number(struct file *f, int64_t n, size_t width)
{
    for (size_t i = width; i-- > 0;)
        f->bytes[f->size++] = (unsigned char)((uint64_t)n >> 8 * i);
}

struct changes {
    size_t n;
    struct {
        int64_t at;
        int type;
    } change[8];
    size_t types;
    int32_t offsets[8];
    uint32_t leap;
};

static void put_head(struct file *f, char version, const struct changes *c)
{
    static const unsigned char zeros[15];

    put(f, "TZif", 4);
    put(f, &version, 1);
    put(f, zeros, sizeof(zeros));
    put_number(f, 1, 4); /* isut */
    put_number(f, 1, 4); /* isstd */
    put_number(f, c->leap, 4);
    put_number(f, (int64_t)c->n, 4);
    put_number(f, (int64_t)c->types, 4);
    put_number(f, 4, 4); /* chars */
}

static void put_block(struct file *f, size_t width, const struct changes *c)
{
    for (size_t i = 0; i < c->n; i++)
        put_number(f, c->change[i].at, width);
    for (size_t i = 0; i < c->n; i++)
        put_number(f, c->change[i].type, 1);
    for (size_t i = 0; i < c->types; i++) {
        put_number(f, c->offsets[i], 4);
        put_number(f, 0, 2);
    }
    put(f, "XYZ", 4);
    for (uint32_t i = 0; i < c->leap; i++) {
        put_number(f, i, width);
        put_number(f, 1, 4);
    }
    put_number(f, 0, 2); /* isstd and isut, one each */
}

/* version 0: no second part, and no line; NULL: none either. */
static struct file *make_file(char version, const struct changes *c, const char *line)
{
    struct file *f = calloc(1, sizeof(*f));
    const struct changes none = { .types = 1 };

    assert_non_null(f);
    put_head(f, version, version ? &none : c);
    put_block(f, 4, version ? &none : c);
    if (version) {
        put_head(f, version, c);
        put_block(f, 8, c);
    }
    if (line)
        put(f, line, strlen(line));
    return f;
}

/* In memory of just its size, so that a read beyond the end is seen. */
static int parse_bytes(struct weir__zone **out, const unsigned char *bytes, size_t size,
                       struct weir_error *error)
{
    FINALLY(memory_drop) unsigned char *exact = malloc(size ? size : 1);
    memcpy(exact, bytes, size);
    int code = weir__zone_parse(out, exact, size, error);
    return code;
}

static struct weir__zone *zone_of(char version, const struct changes *c, const char *line)
{
    FINALLY(memory_drop) struct file *f = make_file(version, c, line);
    struct weir__zone *zone = NULL;
    struct weir_error error = { 0 };
    if (parse_bytes(&zone, f->bytes, f->size, &error) != WEIR_OK)
        fail_msg("%s: %s", line ? line : "", error.text);
    return zone;
}

static void expect_change(const struct weir__zone *z, int64_t at, int32_t from, int32_t to)
{
    for (size_t i = 0; i < z->changes; i++) {
        if (z->change[i].at == at) {
            assert_int_equal(i ? z->change[i - 1].offset : z->offset, from);
            assert_int_equal(z->change[i].offset, to);
            return;
        }
    }
    fail_msg("no change at %lld", (long long)at);
}

/* ---------------------------------------------------------- good files ---- */

TEST(test_version_1)
{
    const struct changes c = { .n = 3,
                               .change = { { -100, 1 }, { 100, 2 }, { 200, 1 } },
                               .types = 3,
                               .offsets = { 600, 3600, 7200 } };

    FINALLY(memory_drop) struct weir__zone *z = zone_of(0, &c, NULL);
    assert_fields(*z, (changes, 3), (offset, 600));
    expect_change(z, -100, 600, 3600);
    expect_change(z, 100, 3600, 7200);
    expect_change(z, 200, 7200, 3600); /* and so for ever */
}

/* A change to another name for the same time is none; one before all times is where it begins; one
 * after all times never comes. */
TEST(test_what_changes_nothing_is_left_out)
{
    const struct changes c = {
        .n = 5,
        .change = { { INT64_MIN, 1 }, { 0, 0 }, { 10, 2 }, { 20, 1 }, { INT64_MAX, 0 } },
        .types = 3,
        .offsets = { 600, 3600, 600 }
    };

    FINALLY(memory_drop) struct weir__zone *z = zone_of('2', &c, "\n\n");
    assert_fields(*z, (changes, 2), (offset, 3600));
    expect_change(z, 0, 3600, 600);
    expect_change(z, 20, 600, 3600);
}

/* The last Sundays of March and October at 1:00 UTC; 2026: 29th and 25th; 2262 is there, too. */
TEST(test_the_last_line_goes_on)
{
    const struct changes c = {
        .n = 1, .change = { { 1000000000, 1 } }, .types = 2, .offsets = { 0, 7200 }
    }; /* 2001-09-09 */

    FINALLY(memory_drop) struct weir__zone *z = zone_of('2', &c, "\nCET-1CEST,M3.5.0,M10.5.0/3\n");
    expect_change(z, 1000000000, 0, 7200);
    expect_change(z, 1004230800, 7200, 3600); /* 2001-10-28 */
    expect_change(z, 1774746000, 3600, 7200);
    expect_change(z, 1792890000, 7200, 3600);
    assert_int_equal(z->change[1].at, 1004230800); /* none of the years before */
    assert_true(z->change[z->changes - 1].at > 9223372036);
}

TEST(test_a_line_without_changes_before_it)
{
    const struct changes c = { .types = 1, .offsets = { -18000 } };

    FINALLY(memory_drop) struct weir__zone *z = zone_of('2', &c, "\nEST5EDT,M3.2.0,M11.1.0\n");
    assert_int_equal(z->offset, -18000);
    expect_change(z, 1772953200, -18000, -14400); /* 2026-03-08 07:00 UTC */
    expect_change(z, 1793512800, -14400, -18000); /* 2026-11-01 06:00 UTC */
    free(z);
    z = zone_of('3', &c, "\n<+0530>-5:30\n");
    assert_fields(*z, (changes, 0), (offset, 19800));
}

TEST(test_rules_of_all_kinds)
{
    const struct changes c = { .types = 1 };

    static const struct {
        const char *line;
        int64_t at;
        int32_t from, to;
    } rows[] = {
        { "\n<-02>2<-01>,M3.5.0/-1,M10.5.0/0\n", 1774746000, -7200,
          -3600 }, /* 23:00 of the day before, as Nuuk has it */
        { "\nIST-1GMT0,M10.5.0,M3.5.0/1\n", 1792890000, 3600,
          0 }, /* Dublin: its winter is the exception */
        { "\nAAA0BBB,J60/0,J300/0\n", 1835481600, 0, 3600 }, /* J60 is March 1st, in 2028, too */
        { "\nAAA0BBB,J59/0,J300/0\n", 1835308800, 0, 3600 }, /* J59 is February 28th, */
        { "\nAAA0BBB,59/0,299/0\n", 1835395200, 0, 3600 },   /* and 59 the 29th */
        { "\nAAA0BBB,0/0,299/0\n", 1830297600, 0, 3600 },    /* 2028-01-01 */
        { "\nAAA0BBB-0:30:15,M3.1.1/2:30:15,M10.1.1\n", 1772418615, 0,
          1815 }, /* Monday 2026-03-02 */
        { "\nAAA+1BBB-1,M12.4.4/167,M6.1.6/-167\n", 1798675200, -3600, 3600 },
        { "\nAAA0BBB,M2.5.2/0,M10.5.0/0\n", 1835395200, 0,
          3600 }, /* the fifth Tuesday of February 2028 */
        { "\nAAA0BBB,M2.5.3/0,M10.5.0/0\n", 1834876800, 0,
          3600 }, /* there is no fifth Wednesday: the fourth */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        FINALLY(memory_drop) struct weir__zone *z = zone_of('3', &c, rows[i].line);
        expect_change(z, rows[i].at, rows[i].from, rows[i].to);
    }
}

/* Summer that ends when it begins (RFC 8536, 3.3.1) never ends. */
TEST(test_summer_for_ever)
{
    const struct changes c = { .types = 1, .offsets = { -18000 } };

    FINALLY(memory_drop) struct weir__zone *z = zone_of('3', &c, "\nEST5EDT,0/0,J365/25\n");
    assert_int_equal(z->change[0].offset, -14400);
    assert_true(z->change[0].at < 0);
    assert_true(z->changes == 1 || z->change[1].at > 9223372036);
}

TEST(test_a_day_that_is_left_out)
{
    const struct changes c = { .n = 2,
                               .change = { { 864000, 1 }, { 1728000, 2 } },
                               .types = 3,
                               .offsets = { -43200, 43200, 86400 } };

    FINALLY(memory_drop) struct weir__zone *z = zone_of('2', &c, "\n\n");
    assert_int_equal(z->skips, 0); /* from noon to noon of the next day: both have a half */
    free(z);
    const struct changes whole = { .n = 2,
                                   .change = { { 907200, 1 }, { 1728000, 0 } },
                                   .types = 2,
                                   .offsets = { -43200, 43200 } };
    z = zone_of('2', &whole, "\n\n");
    assert_fields(*z, (skips, 1), (skipped[0], 10));
    assert_int_equal(weir__zone_day_start(z, 10), 907200);
    assert_int_equal(weir__zone_day_start(z, 11), 907200);
    assert_int_equal(weir__zone_day_at(z, 907199), 9);
    assert_int_equal(weir__zone_day_at(z, 907200), 11);
    assert_int_equal(weir__zone_rank(z, 9), 9);
    assert_int_equal(weir__zone_rank(z, 11), 10);
    assert_int_equal(weir__zone_day_of_rank(z, 9), 9);
    assert_int_equal(weir__zone_day_of_rank(z, 10), 11);
}

/* ----------------------------------------------------------- bad files ---- */

static void expect_refusal(const struct file *f, size_t size, const char *words)
{
    struct weir__zone *untouched = (struct weir__zone *)(void *)f, *zone = untouched;
    struct weir_error error = { 0 };

    if (parse_bytes(&zone, f->bytes, size, &error) != WEIR_INVALID)
        fail_msg("not refused for \"%s\"", words);
    assert_ptr_equal(zone, untouched);
    if (strstr(error.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    assert_int_equal(parse_bytes(&zone, f->bytes, size, NULL), WEIR_INVALID);
}

TEST(test_what_is_cut_short_is_refused)
{
    const struct changes c = {
        .n = 2, .change = { { 100, 1 }, { 200, 0 } }, .types = 2, .offsets = { 0, 3600 }
    };
    static const char versions[] = { 0, '2', '3' };

    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        FINALLY(memory_drop)
        struct file *f = make_file(versions[v], &c, versions[v] ? "\nAAA0\n" : NULL);
        for (size_t size = 0; size < f->size; size++)
            expect_refusal(f, size, "the time zone's file ");
    }
}

TEST(test_what_makes_no_sense_is_refused)
{
    static const struct {
        struct changes changes;
        const char *line, *words;
    } rows[] = {
        { { .types = 0 }, "\n\n", "has no types" },
        { { .types = 1, .leap = 1 },
          "\n\n",
          "counts leap seconds, which the clock does not; take the zone without 'right/'" },
        { { .types = 1, .offsets = { 93600 } }, "\n\n", "has an offset of a day and more" },
        { { .types = 2, .offsets = { 0, -93600 } }, "\n\n", "has an offset" },
        { { .types = 1, .offsets = { INT32_MIN } }, "\n\n", "has an offset" },
        { { .n = 2, .change = { { 5, 0 }, { 5, 0 } }, .types = 1 },
          "\n\n",
          "has changes out of order" },
        { { .n = 2, .change = { { 5, 0 }, { -5, 0 } }, .types = 1 },
          "\n\n",
          "has changes out of order" },
        { { .n = 1, .change = { { 5, 1 } }, .types = 1 },
          "\n\n",
          "names a type that is not there" },
        { { .types = 1 }, "", "has no last line" },
        { { .types = 1 }, "\n", "has no last line" },
        { { .types = 1 }, "AAA0\n", "has no last line" },
        { { .types = 1 }, "\nAAA0", "has no last line" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        FINALLY(memory_drop) struct file *f = make_file('2', &rows[i].changes, rows[i].line);
        expect_refusal(f, f->size, rows[i].words);
    }
    FINALLY(memory_drop) struct file *f = make_file('2', &rows[0].changes, "\n\n");
    f->size = 65537;
    expect_refusal(f, f->size, "is larger than any");
    f->bytes[0] = 'X';
    expect_refusal(f, 100, "does not begin as TZif does");
}

TEST(test_bad_last_lines_are_refused)
{
    static const char *const lines[] = {
        "A0",
        "AA0",
        "AAA",
        "0",
        "<AAA0",
        "<A>0",
        "AAA25",
        "AAA0:60",
        "AAA0:0:60",
        "AAA-",
        "AAA--1",
        "AAA0 ",
        "AAA0BBB",
        "AAA0BB,0,1",
        "AAA0BBB,",
        "AAA0BBB,0",
        "AAA0BBB,0,",
        "AAA0BBB,0,1,",
        "AAA0BBB,0,366",
        "AAA0BBB,J0,1",
        "AAA0BBB,J366,1",
        "AAA0BBB,M0.1.1,1",
        "AAA0BBB,M13.1.1,1",
        "AAA0BBB,M1.0.1,1",
        "AAA0BBB,M1.6.1,1",
        "AAA0BBB,M1.1.7,1",
        "AAA0BBB,M1.1,1",
        "AAA0BBB,M1,1",
        "AAA0BBB,0/168,1",
        "AAA0BBB,0/-168,1",
        "AAA0BBB,0/,1",
        "AAA0BBB,K1,1",
        "AAA99999999999999999999",
        "AAA0BBB,99999999999999999999,1",
        "AAA0:",
        "AAA0BBB1:,0,1",
        "\xff",
        ",",
        "<>0",
    };
    const struct changes c = { .types = 1 };

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char line[80] = "\n";
        FINALLY(memory_drop)
        struct file *f = make_file('2', &c, strcat(strcat(line, lines[i]), "\n"));
        print_message("%s", line + 1);
        expect_refusal(f, f->size, "has a last line that makes no sense");
    }
    char longest[300] = "\n";
    memset(longest + 1, 'A', 280);
    strcpy(longest + 281, "0\n");
    FINALLY(memory_drop) struct file *f = make_file('2', &c, longest);
    expect_refusal(f, f->size, "has a last line that makes no sense");
}

TEST(test_too_many_days_left_out_are_refused)
{
    FINALLY(memory_drop) struct file *f = calloc(1, sizeof(*f));
    struct changes head = { .n = 20, .types = 2 }, none = { .types = 1 };
    put_head(f, '2', &none);
    put_block(f, 4, &none);
    put_head(f, '2', &head);
    for (int i = 0; i < 20; i++)
        put_number(f, 907200 + i * 864000, 8);
    for (int i = 0; i < 20; i++)
        put_number(f, i % 2 == 0, 1);
    put_number(f, -43200, 4);
    put_number(f, 0, 2);
    put_number(f, 43200, 4);
    put_number(f, 0, 2);
    put(f, "XYZ\0\0", 6);
    put(f, "\n\n", 2);
    expect_refusal(f, f->size, "leaves out more days than any place does");
}
