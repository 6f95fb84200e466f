/* Tests of date.c: HTTP dates are written in one format and read in three. */
#include "common/http/date.h"

#include "tests/unit.h"

#include <string.h>
#include <time.h>

#define NOW INT64_C(1700000000) /* in 2023 */
#define BAD INT64_MIN

struct date_case {
    const char *name; /* the text */
    int64_t seconds;
};

static const struct date_case read_cases[] = {
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Thursday, 01-Jan-70 00:00:00 GMT", 3155760000}, /* 2070: not over 50 years from 2023 */
    {"Tuesday, 01-Jan-74 00:00:00 GMT", 126230400},
    {"Thu Jan  1 00:00:00 1970", 0},
    {"Wed Jan 31 23:59:59 2024", 1706745599},
    {"Thu, 29 Feb 2024 12:00:00 GMT", 1709208000},
    {"Tue, 29 Feb 2000 12:00:00 GMT", 951825600},
    {"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
    {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
    {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
    {"Monday, 01-Jan-24 00:00:00 GMT", 1704067200},
    {"sun, 06 nov 1994 08:49:37 gmt", 784111777},
    {"SUN, 06 NOV 1994 08:49:37 GMT", 784111777},
    {"SUNDAY, 06-nOV-94 08:49:37 gmt", 784111777},
    {"sun nov  6 08:49:37 1994", 784111777},

    {"", BAD},
    {" ", BAD},
    {"Sun", BAD},
    {"Sun,", BAD},
    {"Sun, 06 Nov 1994 08:49:37", BAD},
    {"Sun, 06 Nov 1994 08:49:37 ", BAD},
    {"Sun, 06 Nov 1994 08:49:37 GM", BAD},
    {"Sun, 06 Nov 1994 08:49:37 GMTX", BAD},
    {"Sun, 06 Nov 1994 08:49:37 PST", BAD},
    {"Sun, 06 Nov 1994 08:49:37 +0000", BAD},
    {"Sun, 6 Nov 1994 08:49:37 GMT", BAD},
    {"Sun, 06 Nov 94 08:49:37 GMT", BAD},
    {"Sun, 06 Nov 1994 8:49:37 GMT", BAD},
    {"Sun, 06 Nov 1994 08:49 GMT", BAD},
    {"Sun, 06 Nov 1994 08-49-37 GMT", BAD},
    {"Sun, 06-Nov-1994 08:49:37 GMT", BAD},
    {"Sun 06 Nov 1994 08:49:37 GMT", BAD},
    {"Xxx, 06 Nov 1994 08:49:37 GMT", BAD},
    {"Sun, 06 Xxx 1994 08:49:37 GMT", BAD},
    {"Sun, 00 Nov 1994 08:49:37 GMT", BAD},
    {"Sun, 31 Nov 1994 08:49:37 GMT", BAD},
    {"Sun, 32 Dec 1994 08:49:37 GMT", BAD},
    {"Wed, 29 Feb 2023 12:00:00 GMT", BAD},
    {"Mon, 29 Feb 1900 12:00:00 GMT", BAD},
    {"Sun, 06 Nov 1994 24:00:00 GMT", BAD},
    {"Sun, 06 Nov 1994 08:60:37 GMT", BAD},
    {"Sun, 06 Nov 1994 08:49:61 GMT", BAD},
    {"Sun, -6 Nov 1994 08:49:37 GMT", BAD},
    {"Sun, 06 Nov -994 08:49:37 GMT", BAD},
    {"Sun, 06 Nov 1994 08:49:3a GMT", BAD},
    {"Sun,  6 Nov 1994 08:49:37 GMT", BAD},
    {"Sunday, 6-Nov-94 08:49:37 GMT", BAD},
    {"Sunday, 06-Nov-1994 08:49:37 GMT", BAD},
    {"Sunda, 06-Nov-94 08:49:37 GMT", BAD},
    {"Sundayy, 06-Nov-94 08:49:37 GMT", BAD},
    {"Sun Nov 6 08:49:37 1994", BAD},
    {"Sun Nov  6 08:49:37 94", BAD},
    {"Sun Nov  6 08:49:37 1994 GMT", BAD},
    {"Sun Nov   08:49:37 1994", BAD},
    {"Sun Nov    08:49:37 1994", BAD},
    {"784111777", BAD},
    {"1994-11-06T08:49:37Z", BAD},
};

static void check_read(void **state)
{
    const struct date_case *row = *state;
    int64_t seconds = BAD;
    bool read = date_read(text_of(row->name), NOW, &seconds);

    assert_int_equal(read, row->seconds != BAD);
    if (read)
        assert_int_equal(seconds, row->seconds);
}

static const struct date_case write_cases[] = {
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Wed, 31 Dec 1969 23:59:59 GMT", -1},           {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
    {"Mon, 01 Mar 1999 00:00:00 GMT", 920246400},    {"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
    {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799}, {"Fri, 31 Dec 9999 23:59:59 GMT", INT64_MAX},
    {"Mon, 01 Jan 0001 00:00:00 GMT", -62135596800}, {"Mon, 01 Jan 0001 00:00:00 GMT", INT64_MIN},
    {"Sun, 28 Feb 2100 23:59:59 GMT", 4107542399},   {"Mon, 01 Mar 2100 00:00:00 GMT", 4107542400},
};

static void check_write(void **state)
{
    const struct date_case *row = *state;
    char space[DATE_LENGTH];
    struct buffer buffer = {.data = space, .capacity = sizeof space};

    date_write(&buffer, row->seconds);
    assert_false(buffer.overflow);
    assert_int_equal(buffer.length, DATE_LENGTH);
    assert_memory_equal(space, row->name, DATE_LENGTH);
}

/* Compares with the C library, over some centuries, at odd seconds. */
static void check_round_trip(void **state)
{
    (void)state;
    for (int64_t seconds = -11676096000; seconds < 7258118400; seconds += 86399 * 7 + 13) {
        char space[DATE_LENGTH + 1], expected[40];
        struct buffer buffer = {.data = space, .capacity = DATE_LENGTH};
        time_t time = seconds;
        struct tm parts;
        int64_t again = BAD;

        date_write(&buffer, seconds);
        assert_non_null(gmtime_r(&time, &parts));
        assert_true(strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0);
        assert_memory_equal(space, expected, DATE_LENGTH);
        assert_true(date_read((struct text){space, buffer.length}, NOW, &again));
        assert_int_equal(again, seconds);
    }
}

/* A two-digit year belongs to this century, unless that is over 50 years away. */
static void check_two_digits(void **state)
{
    int64_t seconds;

    (void)state;
    assert_true(date_read(TEXT("Sunday, 01-Jan-73 00:00:00 GMT"), NOW, &seconds));
    assert_int_equal(date_calendar(seconds).year, 2073);
    assert_true(date_read(TEXT("Monday, 01-Jan-74 00:00:00 GMT"), NOW, &seconds));
    assert_int_equal(date_calendar(seconds).year, 1974);
    assert_true(date_read(TEXT("Friday, 01-Jan-99 00:00:00 GMT"), NOW, &seconds));
    assert_int_equal(date_calendar(seconds).year, 1999);
    assert_true(date_read(TEXT("Friday, 01-Jan-00 00:00:00 GMT"), NOW, &seconds));
    assert_int_equal(date_calendar(seconds).year, 2000);
}

/* A date with one changed byte is refused or read, without an error of the sanitizers. */
static void check_mutations(void **state)
{
    static const char *const seeds[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};

    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        size_t length = strlen(seeds[i]);
        for (size_t at = 0; at < length; at++) {
            for (int byte = 0; byte < 256; byte++) {
                char text[40];
                int64_t seconds = BAD;

                memcpy(text, seeds[i], length);
                text[at] = (char)byte;
                if (date_read((struct text){text, length}, NOW, &seconds))
                    assert_true(date_calendar(seconds).year >= 0 &&
                                date_calendar(seconds).year <= 9999);
            }
        }
    }
}

int main(void)
{
    UNIT_TABLE(read_cases, check_read);
    UNIT_TABLE(write_cases, check_write);
    unit_add("a date is written as the C library writes it, and read again", check_round_trip,
             NULL);
    unit_add("a year of two digits belongs to the right century", check_two_digits, NULL);
    unit_add("a date with a wrong byte is refused or read", check_mutations, NULL);
    return unit_run("date");
}
