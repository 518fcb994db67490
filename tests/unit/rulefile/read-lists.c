/* read-lists.c -- lists: their entries, here and in files, and what is no entry. */
#include "unit/test.h"

#include "unit/reading.h"

OWNS(weir__draft)

/* ---------------------------------------------------------------- R3: lists ---- */

TEST(test_R3_lists)
{
    OWN(weir__draft) *d = read_good("version: 1\nlists:\n  allow: { ip: [10.0.0.0/8, \"::1\"], "
                                    "account: alice, header.X-Key: [] }\n"
                                    "  office: { account: [bob, 5, true] }\n");
    assert_int_equal(d->n_lists, 4);
    assert_string_equal(d->lists[0].name, "allow");
    assert_string_equal(d->lists[0].attribute, "ip");
    assert_int_equal(d->lists[0].n, 2);
    assert_string_equal(d->lists[0].entries[1], "::1");
    assert_string_equal(d->lists[1].entries[0], "alice");
    assert_string_equal(d->lists[2].attribute, "header.x-key");
    assert_fields(*d, (lists[2].n, 0), (lists[3].n, 3));
    assert_string_equal(d->lists[3].entries[1], "5");
    assert_string_equal(d->lists[3].entries[2], "true");
}

TEST(test_R3_lists_from_files)
{
    char name[400], text[256];
    static const char entries[] =
        "# a comment\n10.0.0.0/8\r\n\n  192.0.2.1\t# and why\n2001:db8::/32";
    const char *path = new_path();

    write_at(path, 0, entries, strlen(entries));
    snprintf(name, sizeof(name), "%s/rules.yaml", folder);
    snprintf(text, sizeof(text), "version: 1\nlists: { deny: { ip: { file: \"%s\" } } }\n",
             strrchr(path, '/') + 1);
    struct weir__draft *d = read_named(text, name);
    assert_int_equal(d->lists[0].n, 3);
    assert_string_equal(d->lists[0].entries[0], "10.0.0.0/8");
    assert_string_equal(d->lists[0].entries[1], "192.0.2.1");
    assert_string_equal(d->lists[0].entries[2], "2001:db8::/32");
    weir__draft_destroy(d);
    snprintf(text, sizeof(text), "version: 1\nlists: { deny: { account: { file: \"%s\" } } }\n",
             path); /* a whole path */
    d = read_named(text, name);
    assert_string_equal(d->lists[0].entries[1], "192.0.2.1");
    weir__draft_destroy(d);
    d = read_named(text, "rules.yaml"); /* of rules in no folder */
    assert_int_equal(d->lists[0].n, 3);
    weir__draft_destroy(d);
    assert_problem(text, 2, 36, "may not name files");
}

/* Untrusted rules name files below their folder only. */
TEST(test_R3_lists_from_files_near_the_rules)
{
    char name[400], text[256], path[400];
    struct weir_rules_options near = { .name = name, .files = true, .near = true };
    struct weir__draft *d = NULL;
    struct weir_error error = { 0 };

    snprintf(path, sizeof(path), "%s/lists", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/lists/friends", folder);
    write_at(path, 0, "Ann Lee # and why\nBob\n", 22);
    snprintf(name, sizeof(name), "%s/rules.yaml", folder);
    snprintf(text, sizeof(text),
             "version: 1\nlists: { allow: { account: { file: lists/friends } } }\n");
    assert_ok(weir__draft_read(&d, text, strlen(text), &near, &error));
    assert_int_equal(d->lists[0].n, 2);
    assert_string_equal(d->lists[0].entries[0], "Ann Lee");
    weir__draft_destroy(d);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

TEST(test_R3_files_that_are_no_lists)
{
    char name[400], text[256];
    const char *path = new_path();
    struct weir_error error = { 0 };
    static const char entries[] = "10.0.0.0/8\nnonsense\n";

    snprintf(name, sizeof(name), "%s/rules.yaml", folder);
    write_at(path, 0, entries, strlen(entries));
    snprintf(text, sizeof(text), "version: 1\nlists: { deny: { ip: { file: \"%s\" } } }\n",
             strrchr(path, '/') + 1);
    assert_contains(read_bad_bytes(text, strlen(text), name, &error).problems[0].text,
                    "line 2 of the file, 'nonsense'");
    write_at(path, 0, "\xff\xff", 2);
    assert_contains(read_bad_bytes(text, strlen(text), name, &error).problems[0].text,
                    "line 1 of the file, '\\xff\\xff.0.0.0/8': not UTF-8 text");
    static const char no_file[] = "version: 1\nlists: { deny: { ip: { file: not-there } } }\n";
    assert_contains(read_bad_bytes(no_file, strlen(no_file), name, &error).problems[0].text,
                    "cannot read the file 'not-there'");
    static const char directory[] = "version: 1\nlists: { deny: { ip: { file: . } } }\n";
    assert_contains(read_bad_bytes(directory, strlen(directory), name, &error).problems[0].text,
                    "not a regular file");
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    assert_contains(read_bad_bytes(text, strlen(text), name, &error).problems[0].text,
                    "the most is 64 MiB");
}

/* A list of one's own that no rule names is fine, unless it looks like a slip for one of the two
 * that work by themselves. */
TEST(test_R3_unused_list_near_allow_or_deny_refused)
{
    weir__draft_destroy(read_good("version: 1\nlists: { office: { ip: [10.0.0.0/8] }, allow: { "
                                  "account: [a] }, deny: { account: [b] } }\n"));
    weir__draft_destroy(
        read_good("version: 1\nrules: [{ name: a, limit: 1/s, match: { ip: { list: alow } } }]\n"
                  "lists: { alow: { account: [a], ip: [10.0.0.0/8] } }\n"));
}

GROUP(make_folder, remove_folder)
