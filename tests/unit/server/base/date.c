/* date.c -- the times of access logs, to the nanosecond: every form, every day, and numbers of
 * any length. */
#include "unit/test.h"

#include "unit/log-lines.h"

static const struct {
    const char *text;
    weir_time at; /* -1: refused */
} times[] = {
    /* as nginx and Apache write them */
    { "10/Oct/2000:13:55:36 -0700", OCT *S },
    { "10/Oct/2000:20:55:36 +0000", OCT *S },
    { "11/Oct/2000:02:25:36 +0530", OCT *S },
    { "01/Jan/1970:00:00:00 +0000", 0 },
    { "31/Dec/1969:23:00:00 -0100", 0 },
    { "01/Jan/1970:00:59:59 +0100", -1 },
    { "29/Feb/2000:00:00:00 +0000", INT64_C(951782400) * S },
    { "29/Feb/2001:00:00:00 +0000", -1 },
    { "29/Feb/2100:00:00:00 +0000", -1 },
    { "31/Apr/2000:00:00:00 +0000", -1 },
    { "00/Apr/2000:00:00:00 +0000", -1 },
    { "31/Dec/2016:23:59:60 +0000", INT64_C(1483228800) * S },
    { "31/Dec/2261:23:59:59 +0000", INT64_C(9214646399) * S },
    { "01/Jan/2262:00:00:00 +0000", -1 },
    { "01/Jan/2262:00:00:00 +0001", INT64_C(9214646340) * S },
    { "01/Jan/0000:00:00:00 +0000", -1 },
    { "31/Dec/9999:23:59:59 +0000", -1 },
    { "10/Oct/2000:24:00:00 +0000", -1 },
    { "10/Oct/2000:23:60:00 +0000", -1 },
    { "10/Oct/2000:23:59:61 +0000", -1 },
    { "10/oct/2000:13:55:36 -0700", -1 },
    { "10/Okt/2000:13:55:36 -0700", -1 },
    { "10/Oct/2000:13:55:36 -9999", -1 },
    { "10/Oct/2000:13:55:36 -2400", -1 },
    { "10/Oct/2000:13:55:36 -0060", -1 },
    { "10/Oct/2000:13:55:36 00700", -1 },
    { "10/Oct/2000 13:55:36 -0700", -1 },
    { "1x/Oct/2000:13:55:36 -0700", -1 },

    /* ISO 8601 */
    { "2000-10-10T13:55:36-07:00", OCT *S },
    { "2000-10-10T20:55:36Z", OCT *S },
    { "2000-10-10t20:55:36z", OCT *S },
    { "2000-10-10 20:55:36", OCT *S },
    { "2000-10-10 20:55:36 +0000", OCT *S },
    { "2000-10-10T20:55:36+00", OCT *S },
    { "2000-10-11T02:25:36.5+0530", OCT *S + S / 2 },
    { "2000-10-10T20:55:36.123Z", OCT *S + 123000000 },
    { "2000-10-10T20:55:36,123456789Z", OCT *S + 123456789 },
    { "2000-10-10T20:55:36.123456789999999999Z", OCT *S + 123456789 },
    { "2261-12-31T23:59:59.999999999Z", INT64_C(9214646399999999999) },
    { "1970-01-01T00:00:00Z", 0 },
    { "1969-12-31T23:59:59.999Z", -1 },
    { "0000-00-00T00:00:00Z", -1 },
    { "9999-12-31T23:59:59Z", -1 },
    { "2000-10-10T20:55:36.Z", -1 },
    { "2000-10-10T20:55Z", -1 },
    { "2000-10-10T20:55:36+99:99", -1 },
    { "2000-10-10T20:55:36+07:0", -1 },
    { "2000-10-10T20:55:36 UTC", -1 },
    { "2000-13-10T20:55:36Z", -1 },
    { "2000-10-10", -1 },
    { "2000-10-10X20:55:36Z", -1 },

    /* numbers: seconds, milli-, micro-, nanoseconds */
    { "971211336", OCT *S },
    { "971211336.000", OCT *S },
    { "971211336.123", OCT *S + 123000000 },
    { "971211336.1234567899", OCT *S + 123456789 },
    { "9.71211336123e8", OCT *S + 123000000 },
    { "9.71211336123E+08", OCT *S + 123000000 },
    { "97121133612300000e-8", OCT *S + 123000000 },
    { "971211336123", OCT *S + 123000000 },
    { "971211336123.4", OCT *S + 123400000 },
    { "971211336123456", OCT *S + 123456000 },
    { "971211336123456789", OCT *S + 123456789 },
    { "0", 0 },
    { "0.0", 0 },
    { "0.000000001", 1 },
    { "0.0000000001", 0 },
    { "1e-400", 0 },
    { "00012", 12 * S },
    { "9214646399", INT64_C(9214646399) * S },
    { "9214646400", -1 },
    { "9223372036854775807", -1 },
    { "99999999999", -1 },
    { "99999999999999999999", -1 },
    { "1e400", -1 },
    { "1e99999", -1 },
    { "-1", -1 },
    { "-0.5", -1 },
    { "", -1 },
    { ".", -1 },
    { "1.2.3", -1 },
    { "1e", -1 },
    { "1e+", -1 },
    { "1e1x", -1 },
    { "12x", -1 },
    { "NaN", -1 },
    { "yesterday", -1 },
};

TEST(test_times)
{
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        size_t len = strlen(times[i].text);
        FINALLY(memory_drop) char *exact = malloc(len + 1);
        weir_time at = -42;
        memcpy(exact + 1, times[i].text, len);
        bool good = weir__date_parse(exact + 1, len, &at);
        if (good != (times[i].at >= 0) || at != (good ? times[i].at : -42))
            fail_msg("%s: %s, %lld", times[i].text, good ? "read" : "refused", (long long)at);
    }
}

/* Day after day from 1970 on, counted by hand. */
TEST(test_every_day)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int64_t days = 0;
    char text[40];

    for (int year = 1970; year < 2262; year++)
        for (int month = 0; month < 12; month++) {
            bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for (int day = 1; day <= lengths[month] + (month == 1 && leap); day++, days++) {
                weir_time at;
                snprintf(text, sizeof(text), "%02d/%.3s/%04d:00:00:01 +0000", day,
                         names + 3 * month, year);
                assert_true(weir__date_parse(text, 26, &at));
                assert_true(at == (days * 86400 + 1) * S);
            }
        }
}

/* Digits by the thousand are read in bounded room. */
TEST(test_huge_numbers)
{
    char text[5000];
    weir_time at;

    memset(text, '9', sizeof(text));
    assert_false(weir__date_parse(text, sizeof(text), &at));
    memset(text, '0', sizeof(text));
    assert_true(weir__date_parse(text, sizeof(text), &at));
    assert_int_equal(at, 0);
    memcpy(text, "971211336.", 10);
    assert_true(weir__date_parse(text, sizeof(text), &at));
    assert_true(at == OCT * S);
}
