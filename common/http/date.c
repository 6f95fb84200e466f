/* Calendar arithmetic, and the three date formats of HTTP. */
#include "common/http/date.h"

#include <string.h>

#define DAY 86400

static const char weekdays[7][10] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                     "Thursday", "Friday", "Saturday"};
const char date_months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* The proleptic Gregorian calendar is counted in eras of 400 years that begin on 1 March. */
#define ERA_DAYS  146097
#define EPOCH_DAY 719468 /* 1970-01-01, counted from 0000-03-01 */

struct calendar date_calendar(int64_t seconds)
{
    int64_t days = seconds / DAY - (seconds % DAY < 0);
    unsigned rest = (unsigned)(seconds - days * DAY);
    int64_t shifted = days + EPOCH_DAY;
    int64_t era = (shifted >= 0 ? shifted : shifted - ERA_DAYS + 1) / ERA_DAYS;
    unsigned day_of_era = (unsigned)(shifted - era * ERA_DAYS);
    unsigned year =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    unsigned march_month = (5 * day_of_year + 2) / 153;
    unsigned month = march_month < 10 ? march_month + 3 : march_month - 9;

    return (struct calendar){
        .year = era * 400 + year + (month <= 2),
        .month = month,
        .day = day_of_year - (153 * march_month + 2) / 5 + 1,
        .hour = rest / 3600,
        .minute = rest / 60 % 60,
        .second = rest % 60,
        .weekday = (unsigned)(((days + 4) % 7 + 7) % 7),
    };
}

static int64_t to_seconds(const struct calendar *date)
{
    int64_t year = date->year - (date->month <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t march_month = date->month > 2 ? date->month - 3 : date->month + 9;
    int64_t day_of_year = (153 * march_month + 2) / 5 + date->day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    int64_t days = era * ERA_DAYS + day_of_era - EPOCH_DAY;

    return days * DAY + date->hour * 3600 + date->minute * 60 + date->second;
}

static void put_digits(char *to, unsigned number, int count)
{
    while (count-- > 0) {
        to[count] = (char)('0' + number % 10);
        number /= 10;
    }
}

#define YEAR_1    INT64_C(-62135596800)
#define YEAR_9999 INT64_C(253402300799)

void date_write(struct buffer *buffer, int64_t seconds)
{
    char text[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    struct calendar date;

    if (seconds < YEAR_1)
        seconds = YEAR_1;
    if (seconds > YEAR_9999)
        seconds = YEAR_9999;
    date = date_calendar(seconds);
    memcpy(text, weekdays[date.weekday], 3);
    put_digits(text + 5, date.day, 2);
    memcpy(text + 8, date_months[date.month - 1], 3);
    put_digits(text + 12, (unsigned)date.year, 4);
    put_digits(text + 17, date.hour, 2);
    put_digits(text + 20, date.minute, 2);
    put_digits(text + 23, date.second, 2);
    buffer_add(buffer, (struct text){text, DATE_LENGTH});
}

/* Letters match in either case, as RFC 9111, section 4.2, asks of caches. */
static bool is_same(char a, char b)
{
    return text_same((struct text){&a, 1}, (struct text){&b, 1});
}

static unsigned month_of(const char letters[4])
{
    unsigned month = 0;

    while (month < 12 && !text_same(text_of(date_months[month]), text_of(letters)))
        month++;
    return month + 1;
}

/* Reads a date by a pattern: D is a digit of the day, Y of the year, H, N and S of hour, minute and
 * second, _ a digit of the day or a blank, m a letter of the month, w a letter of the weekday. All
 * other characters must match. */
static bool match(const char *pattern, struct text text, struct calendar *date)
{
    char month[4] = "";
    size_t letters = 0;

    if (text.length != strlen(pattern))
        return false;
    *date = (struct calendar){0};
    for (size_t i = 0; i < text.length; i++) {
        char character = text.data[i];
        unsigned digit = (unsigned)(character - '0');
        bool is_digit = digit <= 9;

        switch (pattern[i]) {
        case '_':
            if (character == ' ')
                break;
            /* fall through */
        case 'D':
            date->day = date->day * 10 + digit;
            break;
        case 'Y':
            date->year = date->year * 10 + digit;
            break;
        case 'H':
            date->hour = date->hour * 10 + digit;
            break;
        case 'N':
            date->minute = date->minute * 10 + digit;
            break;
        case 'S':
            date->second = date->second * 10 + digit;
            break;
        case 'm':
            month[letters++] = character;
            continue;
        case 'w':
            continue;
        default:
            if (!is_same(character, pattern[i]))
                return false;
            continue;
        }
        if (!is_digit && !(pattern[i] == '_' && character == ' '))
            return false;
    }
    date->month = month_of(month);
    return date->month <= 12;
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static bool is_possible(const struct calendar *date)
{
    static const unsigned lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned length = lengths[date->month - 1] + (date->month == 2 && is_leap(date->year));

    return date->day >= 1 && date->day <= length && date->hour < 24 && date->minute < 60 &&
           date->second <= 60;
}

/* Returns the length of the weekday, short or whole, that ends before `end`; 0 if there is none. */
static size_t weekday_length(struct text text, bool whole, char end)
{
    for (int day = 0; day < 7; day++) {
        size_t length = whole ? strlen(weekdays[day]) : 3;
        if (text.length > length && text.data[length] == end &&
            text_same((struct text){text.data, length}, (struct text){weekdays[day], length}))
            return length;
    }
    return 0;
}

static bool read_rfc850(struct text text, int64_t now, struct calendar *date)
{
    size_t length = weekday_length(text, true, ',');
    int64_t year = date_calendar(now).year;

    if (length == 0)
        return false;
    text.data += length;
    text.length -= length;
    if (!match(", DD-mmm-YY HH:NN:SS GMT", text, date))
        return false;
    date->year += year - year % 100;
    if (date->year > year + 50)
        date->year -= 100;
    return true;
}

bool date_read(struct text text, int64_t now, int64_t *seconds)
{
    struct calendar date;
    bool read;

    if (weekday_length(text, false, ',') > 0)
        read = match("www, DD mmm YYYY HH:NN:SS GMT", text, &date);
    else if (weekday_length(text, false, ' ') > 0)
        read = match("www mmm _D HH:NN:SS YYYY", text, &date);
    else
        read = read_rfc850(text, now, &date);
    if (!read || !is_possible(&date))
        return false;
    *seconds = to_seconds(&date);
    return true;
}
