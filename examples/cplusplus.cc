// cplusplus.cc -- the same header from C++: destructors, and exceptions for setup.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <weir.h>

struct Destroy {
    void operator()(weir_table *t) const
    {
        weir_table_destroy(t);
    }
};
using Table = std::unique_ptr<weir_table, Destroy>;

// Setup can fail, so it throws; deciding cannot, so it does not.
static Table make_table(int64_t keys)
{
    weir_table_options options = {};
    weir_error error;
    weir_table *out;

    options.keys = keys;
    if (weir_table_create(&out, &options, &error))
        throw std::runtime_error(error.text);
    return Table(out);
}

static weir_limiter *make_limiter(const Table &table, const char *name, const char *text)
{
    weir_limit limit;
    weir_error error;
    weir_limiter *out;

    if (weir_limit_parse(&limit, text, &error) ||
        weir_limiter_create(&out, table.get(), name, &limit, &error))
        throw std::runtime_error(std::string(name) + ": " + error.text);
    return out; // it lives as long as the table
}

static weir_decision take(weir_limiter *limiter, const std::string &key, weir_time now) noexcept
{
    weir_ask ask = {};
    weir_decision d;

    ask.key = { key.data(), key.size() };
    ask.cost = 1;
    ask.now = now;
    weir_take(limiter, &ask, &d);
    return d;
}

int main()
try {
    Table table = make_table(1000);
    weir_limiter *api = make_limiter(table, "api", "gcra 100/m burst 2");
    weir_time now = weir_table_now(table.get());
    bool first = take(api, "ann", now).allowed, second = take(api, "ann", now).allowed;
    weir_decision third = take(api, "ann", now);
    std::printf("ann: %s, %s, %s (retry in %lld ms)\n", first ? "yes" : "no", second ? "yes" : "no",
                third.allowed ? "yes" : "no",
                static_cast<long long>(third.retry / WEIR_MILLISECOND));
    try {
        make_limiter(table, "typo", "100/minute");
        return 1;
    } catch (const std::runtime_error &e) {
        std::printf("a mistake is told: %s\n", e.what());
    }
    return first && second && !third.allowed && third.retry == 600 * WEIR_MILLISECOND ? 0 : 1;
} catch (const std::exception &e) {
    std::fprintf(stderr, "cplusplus: %s\n", e.what());
    return 1;
}
