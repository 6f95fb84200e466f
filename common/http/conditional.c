/* Evaluates preconditions. */
#include "common/http/conditional.h"

#include "common/http/date.h"

bool conditional_is_weak(struct text tag)
{
    return tag.length >= 2 && tag.data[0] == 'W' && tag.data[1] == '/';
}

struct text conditional_opaque(struct text tag)
{
    return conditional_is_weak(tag) ? (struct text){tag.data + 2, tag.length - 2} : tag;
}

static bool tag_matches(struct text tag, struct text etag, bool weakly)
{
    if (!weakly && (conditional_is_weak(tag) || conditional_is_weak(etag)))
        return false;
    return etag.length > 0 && text_equal(conditional_opaque(tag), conditional_opaque(etag));
}

/* Returns true if a field of that name lists the tag or is "*". */
static bool is_listed(const struct request *request, enum field_name name, struct text etag,
                      bool weakly)
{
    size_t from = 0;
    struct text value, tag;

    while (request_field(request, name, &from, &value)) {
        if (text_equal(value, TEXT("*")))
            return true;
        while (text_next(&value, &tag))
            if (tag_matches(tag, etag, weakly))
                return true;
    }
    return false;
}

static bool is_present(const struct request *request, enum field_name name)
{
    size_t from = 0;
    struct text value;

    return request_field(request, name, &from, &value);
}

/* Reads the date of a field; false if the field must be ignored. */
static bool field_date(const struct request *request, enum field_name name, int64_t now,
                       int64_t *date)
{
    struct text value;

    return request_single(request, name, &value) && date_read(value, now, date);
}

enum verdict conditional_judge(const struct request *request, const struct validators *validators,
                               int64_t now)
{
    bool reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    int64_t date;

    if (is_present(request, FIELD_IF_MATCH)) {
        if (!is_listed(request, FIELD_IF_MATCH, validators->etag, false))
            return VERDICT_FAILED;
    } else if (field_date(request, FIELD_IF_UNMODIFIED_SINCE, now, &date)) {
        if (validators->modified > date)
            return VERDICT_FAILED;
    }
    if (is_present(request, FIELD_IF_NONE_MATCH)) {
        if (is_listed(request, FIELD_IF_NONE_MATCH, validators->etag, true))
            return reads ? VERDICT_NOT_MODIFIED : VERDICT_FAILED;
    } else if (reads && field_date(request, FIELD_IF_MODIFIED_SINCE, now, &date)) {
        if (validators->modified <= date)
            return VERDICT_NOT_MODIFIED;
    }
    return VERDICT_GO_ON;
}

bool conditional_range(const struct request *request, const struct validators *validators,
                       int64_t now)
{
    struct text value;
    int64_t date;

    if (!is_present(request, FIELD_IF_RANGE))
        return true;
    if (!request_single(request, FIELD_IF_RANGE, &value))
        return false;
    if (value.length > 0 && (value.data[0] == '"' || conditional_is_weak(value)))
        return tag_matches(value, validators->etag, false);
    return date_read(value, now, &date) && date == validators->modified && date < now;
}
