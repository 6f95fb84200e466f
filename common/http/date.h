/* The dates of HTTP (RFC 9110, section 5.6.7). */
#ifndef COMMON_HTTP_DATE_H
#define COMMON_HTTP_DATE_H

#include "common/base/text.h"

#include <stdint.h>

/* Writes "Sun, 06 Nov 1994 08:49:37 GMT". A date outside the years 1 to 9999 becomes the nearest
 * one inside. */
#define DATE_LENGTH 29
void date_write(struct buffer *buffer, int64_t seconds);

/* Reads any of the three formats. A year of two digits that would be over 50 years after `now` is
 * taken to be 100 years earlier. */
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
