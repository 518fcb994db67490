/* siphash.c -- the values that the authors of SipHash give: of 00, 01, 02 ... with the key 00 01
 * ... 0f. */
#include "unit/test.h"

#include "server/base/siphash.h"

#include "unit/fixture.h"

TEST(test_values_of_its_authors)
{
    static const struct {
        size_t len;
        const char *hash;
    } rows[] = {
        { 0, "a3817f04ba25a8e66df67214c7550293" },  { 1, "da87c1d86b99af44347659119b22fc45" },
        { 7, "a1f1ebbed8dbc153c0b84aa61ff08239" },  { 8, "3b62a9ba6258f5610f83e264f31497b4" },
        { 15, "5493e99933b0a8117e08ec0f97cfc3d9" }, { 16, "6ee2a4ca67b054bbfd3315bf85230577" },
        { 63, "5150d1772f50834a503e069a973fbd7c" },
    };
    static const uint64_t key[2] = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };
    unsigned char in[64], out[WEIR__SIPHASH_BYTES];
    char text[2 * sizeof(out) + 1];

    for (unsigned i = 0; i < sizeof(in); i++)
        in[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        weir__siphash(key, in, rows[i].len, out);
        for (size_t k = 0; k < sizeof(out); k++)
            snprintf(text + 2 * k, 3, "%02x", out[k]);
        assert_string_equal(text, rows[i].hash);
    }
}
