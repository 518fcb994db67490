/* rules-versions-words.c -- what rules-versions.lua answers to operators, read; and the words of a
 * change. */
#include "unit/test.h"

#include <string.h>

#include "cluster/fleet/rules-versions-words.h"

static struct weir__versions_list list_of(const char *reply)
{
    struct weir__versions_list list;
    struct weir__text why;

    assert_true(weir__versions_list(&list, reply, &why));
    return list;
}

static void assert_text(struct weir__text text, const char *expected)
{
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.bytes, expected, text.len);
}

TEST(test_D6_a_version)
{
    struct weir__version v;
    struct weir__versions_list list =
        list_of("*7\r\n:3\r\n:17\r\n:1\r\n$3\r\nann\r\n$0\r\n\r\n$2\r\nab\r\n$2\r\n42\r\n");

    assert_true(weir__version(&list, &v));
    assert_fields(v, (number, 3), (time_us, 17), (origin, 1), (bytes, 2), (edit, 42));
    assert_text(v.author, "ann");
    assert_text(v.note, "");
    assert_text(v.text, "ab");
    list = list_of("*0\r\n");
    assert_true(weir__version(&list, &v));
    assert_int_equal(v.number, 0);
}

TEST(test_D6_a_version_that_makes_no_sense)
{
    static const char *const replies[] = {
        "*1\r\n:3\r\n",
        "*7\r\n:3\r\n:17\r\n$1\r\n1\r\n$3\r\nann\r\n$0\r\n\r\n$2\r\nab\r\n$2\r\n42\r\n",
        "*7\r\n:3\r\n:17\r\n:1\r\n$3\r\nann\r\n$0\r\n\r\n$2\r\nab\r\n$1\r\nx\r\n",
        "*7\r\n:3\r\n:17\r\n:1\r\n$3\r\nann\r\n$-1\r\n$2\r\nab\r\n$2\r\n42\r\n",
    };

    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        struct weir__version v;
        struct weir__versions_list list = list_of(replies[i]);
        assert_false(weir__version(&list, &v));
    }
}

TEST(test_D6_no_list)
{
    struct weir__versions_list list;
    struct weir__text why;

    assert_false(weir__versions_list(&list, "-OOM used up\r\n", &why));
    assert_text(why, "OOM used up");
    assert_false(weir__versions_list(&list, ":1\r\n", &why));
    assert_text(why, "a reply that makes no sense");
    assert_int_equal(weir__versions_number(&list), 0);
}

TEST(test_D6_words_of_a_change)
{
    struct weir__versions_put put;
    struct weir__versions_edit edit = { .base = 4,
                                        .origin = 2,
                                        .base_edit = 42,
                                        .author = "ann\x1f@host",
                                        .note = "two\nlines",
                                        .text = { "rules", 5 } };

    assert_true(weir__versions_put(&put, &edit));
    static const char *const words[] = { "put", "4", NULL,    "ann @host", "two lines",
                                         "",    "2", "rules", "42" };
    for (size_t i = 0; i < WEIR__VERSIONS_PUT_WORDS; i++)
        if (words[i])
            assert_text(put.words[i], words[i]);
    edit.base_edit = -1;
    assert_true(weir__versions_put(&put, &edit));
    assert_text(put.words[8], "");
}

TEST(test_D6_a_long_note_is_cut_between_characters)
{
    struct weir__versions_put put;
    char note[600];

    for (size_t i = 0; i + 1 < sizeof(note); i += 2)
        memcpy(note + i, "\xc3\xbc", 2);
    note[sizeof(note) - 1] = '\0';
    struct weir__versions_edit edit = { .author = "", .note = note };
    assert_true(weir__versions_put(&put, &edit));
    assert_int_equal(put.words[4].len, 254);
    edit.note = note + 1; /* begins within one */
    assert_true(weir__versions_put(&put, &edit));
    assert_int_equal(put.words[4].len, 255);
}
