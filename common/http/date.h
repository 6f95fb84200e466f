/* Dates as HTTP writes and reads them (RFC 9110, section 5.6.7). */
#ifndef COMMON_HTTP_DATE_H
#define COMMON_HTTP_DATE_H

#include "common/base/text.h"

#include <stdint.h>

/* Writes "Sun, 06 Nov 1994 08:49:37 GMT". Dates outside the years 1 to 9999 are moved to their
 * edge. */
#define DATE_LENGTH 29
void date_write(struct buffer *buffer, int64_t seconds);

/* Reads any of the three formats; a two-digit year over 50 years after `now` is of the past
 * century. */
bool date_read(struct text text, int64_t now, int64_t *seconds);

struct calendar {
    int64_t year;
    unsigned month, day; /* from 1 */
    unsigned hour, minute, second;
    unsigned weekday; /* 0 is Sunday */
};

struct calendar date_calendar(int64_t seconds);
extern const char date_months[12][4];

#endif
