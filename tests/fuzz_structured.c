/* Fuzzes dictionaries of structured fields: whatever the bytes are, each member has a key, and with
 * a further member a dictionary is still one, and anything else is still none. */
#include "common/http/structured.h"
#include "common/proxy/cache_control.h"
#include "tests/fuzz.h"

const char *const fuzz_seeds[] = {
    "max-age=60, no-store",
    "a=1.5;p;q=\"x\", b=(1 \"y\";z tok), c=:YQ==:",
    "a=?0, b=@1659578233, c=%\"b%c3%bcr\", d=\"\\\"\\\\\"",
    "*a.b_c-9*=T:/x;y=2, s-maxage=5, private=\"a\"",
    " \ta, b",
};
const size_t fuzz_seed_count = COUNT_OF(fuzz_seeds);
const char fuzz_subject[] = "dictionaries of structured fields";
const long fuzz_rounds = 25000;

/* Returns the number of members. */
static size_t count(struct text text)
{
    struct structured_member member;
    size_t members = 0;

    for (; structured_next(&text, &member); members++)
        require(member.key.length > 0, "a member has a key");
    return members;
}

static void try_longer(const char *bytes, size_t size, bool good)
{
    char *longer = malloc(size + 4);
    struct text text = {longer, size + 4};

    require(longer != NULL, "there is memory");
    memcpy(longer, "a, ", 3);
    memcpy(longer + 3, bytes, size);
    longer[size + 3] = ' ';
    text.length = size + 4;
    if (good && count((struct text){bytes, size}) > 0)
        require(count(text) == count((struct text){bytes, size}) + 1, "a member is added in front");
    else
        require(!structured_is_dictionary(text), "what is none, or empty, is none behind a member");
    free(longer);
}

/* Returns true if there is a tab before the first member: it may stand behind a comma only. */
static bool begins_with_tab(const char *bytes, size_t size)
{
    size_t blanks = 0;

    while (blanks < size && bytes[blanks] == ' ')
        blanks++;
    return blanks < size && bytes[blanks] == '\t';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = copy_of((const char *)data, size);
    struct text text = {bytes, size};
    bool good = structured_is_dictionary(text);
    struct cache_control control;

    count(text);
    if (size > 0 && !begins_with_tab(bytes, size))
        try_longer(bytes, size, good);
    cache_control_read_targeted(text, TEXT("a"), &control);
    free(bytes);
    return 0;
}
