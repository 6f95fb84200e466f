/* Slices of text, which the caller owns, and a bounded buffer to write text into. */
#ifndef COMMON_BASE_TEXT_H
#define COMMON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    const char *data;
    size_t length;
};

/* A literal, as a value and as an initializer. */
#define TEXT(literal) ((struct text)TEXT_IS(literal))
#define TEXT_IS(literal)                                                                           \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

struct text text_of(const char *string);
bool text_equal(struct text a, struct text b);
/* As text_equal(), but ASCII letters match in either case. */
bool text_same(struct text a, struct text b);
/* Removes blanks and tabs at both ends. */
struct text text_trim(struct text text);
/* Returns false for a quoted string without an end: what follows would be part of it. */
bool text_ends_quotes(struct text value);
/* Takes the next element off a comma-separated list, which may have quoted strings; false at its
 * end. */
bool text_next(struct text *list, struct text *element);
/* Takes the first line off the text, without its line end; false if no line ends there. */
bool text_line(struct text *text, struct text *line);
/* Reads one or more digits; false if there is anything else or the number is over UINT64_MAX. */
bool text_number(struct text digits, uint64_t *number);
/* Returns the first position of the character, or the length of the text. */
size_t text_find(struct text text, char character);
/* Returns the value of a hexadecimal digit, or -1. */
int text_hex(char digit);

/* A write that does not fit sets `overflow`, and it and all further writes are dropped. */
struct buffer {
    char *data;
    size_t capacity;
    size_t length;
    bool overflow;
};

void buffer_add(struct buffer *buffer, struct text text);
void buffer_string(struct buffer *buffer, const char *string);
void buffer_character(struct buffer *buffer, char character);
void buffer_number(struct buffer *buffer, uint64_t number);
void buffer_hex(struct buffer *buffer, uint64_t number);
/* Adds text with & < > " ' as character references. */
void buffer_html(struct buffer *buffer, struct text text);
/* Adds a path; characters that are illegal in it are percent-encoded. */
void buffer_path(struct buffer *buffer, struct text path);

#endif
