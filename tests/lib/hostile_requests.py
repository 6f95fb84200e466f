"""A grammar of requests, and the ways in which hostile ones break it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

SMUGGLED = b"GET /smuggled.txt HTTP/1.1\r\nHost: a\r\n\r\n"
MARKER = b"GET /marker.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@dataclass
class Draft:
    """A request before it is written: mutations change its parts."""

    method: bytes = b"GET"
    target: bytes = b"/small.txt"
    version: bytes = b"HTTP/1.1"
    line: bytes = b""  # the whole request line, where it is not made of these
    line_end: bytes = b"\r\n"
    prefix: bytes = b""
    fields: list[bytes] = field(default_factory=lambda: [b"Host: a"])
    head_end: bytes = b"\r\n"
    body: bytes = b""

    def write(self) -> bytes:
        """Returns the bytes of the request."""
        line = self.line or b" ".join((self.method, self.target, self.version))
        lines = b"".join(text + b"\r\n" for text in self.fields)
        return self.prefix + line + self.line_end + lines + self.head_end + self.body


Mutation = Callable[[Draft, random.Random], None]
MUTATIONS: dict[str, Mutation] = {}


def add(name: str, mutation: Mutation) -> None:
    """Enters a mutation by its name."""
    assert name not in MUTATIONS, name
    MUTATIONS[name] = mutation


def parts(name: str, **values: bytes) -> None:
    """A mutation that replaces parts of a request."""

    def mutation(draft: Draft, _: random.Random) -> None:
        for part, value in values.items():
            setattr(draft, part, value)

    add(name, mutation)


def line(name: str, *values: bytes) -> None:
    """A mutation that adds one of these fields, somewhere behind Host."""

    def mutation(draft: Draft, chance: random.Random) -> None:
        draft.fields.insert(chance.randint(min(1, len(draft.fields)), len(draft.fields)), chance.choice(values))

    add(name, mutation)


def first(name: str, value: bytes) -> None:
    """A mutation that puts a line before all fields."""
    add(name, lambda draft, _: draft.fields.insert(0, value))


def host(name: str, *lines: bytes) -> None:
    """A mutation that replaces Host."""

    def mutation(draft: Draft, _: random.Random) -> None:
        draft.fields = [text for text in draft.fields if not text.lower().startswith(b"host:")]
        draft.fields[0:0] = lines

    add(name, mutation)


def sized(name: str, *lines: bytes, body: bytes = SMUGGLED) -> None:
    """A mutation of the framing: these fields, and a body that looks like a request; LENGTH is its length."""

    def mutation(draft: Draft, chance: random.Random) -> None:
        length = str(len(body)).encode()
        new = [text.replace(b"LENGTH", length) for text in lines]
        at = chance.randint(min(1, len(draft.fields)), len(draft.fields))
        draft.fields[at:at] = new
        draft.body = body

    add(name, mutation)


def chunked(name: str, body: bytes) -> None:
    """A mutation of a chunked body; SIZE and DATA are those of a body that looks like a request."""
    text = body.replace(b"SIZE", b"%x" % len(SMUGGLED)).replace(b"DATA", SMUGGLED)
    sized(name, b"Transfer-Encoding: chunked", body=text)


CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)

# The request line.
add("none", lambda draft, chance: None)
parts("method-lower", method=b"get")
parts("method-unknown", method=b"BREW")
parts("method-long", method=b"A" * 100)
parts("method-invalid", method=b"GE(T")
parts("method-empty", line=b" /small.txt HTTP/1.1")
parts("line-two-spaces", line=b"GET  /small.txt HTTP/1.1")
parts("line-two-spaces-version", line=b"GET /small.txt  HTTP/1.1")
parts("line-tabs", line=b"GET\t/small.txt\tHTTP/1.1")
parts("line-space-before", prefix=b" ")
parts("line-space-after", line=b"GET /small.txt HTTP/1.1 ")
parts("line-three-words", line=b"GET /small.txt x HTTP/1.1")
parts("line-no-version", line=b"GET /small.txt")
parts("line-one-word", line=b"GET")
parts("line-lf", line_end=b"\n")
parts("line-cr", line_end=b"\r")
parts("line-crcrlf", line_end=b"\r\r\n")
parts("line-vertical-tab", line=b"GET\x0b/small.txt HTTP/1.1")
parts("line-empty-before", prefix=b"\r\n")
parts("line-empty-before-many", prefix=b"\r\n" * 5)
parts("line-lf-before", prefix=b"\n")
parts("line-nul-before", prefix=b"\0")
parts("version-1.0", version=b"HTTP/1.0")
parts("version-1.2", version=b"HTTP/1.2")
parts("version-1.10", version=b"HTTP/1.10")
parts("version-01.1", version=b"HTTP/01.1")
parts("version-2.0", version=b"HTTP/2.0")
parts("version-0.9", version=b"HTTP/0.9")
parts("version-lower", version=b"http/1.1")
parts("version-other", version=b"ICY/1.1")
parts("version-junk", version=b"HTTP/1.1x")
parts("target-absolute", target=b"http://a/small.txt")
parts("target-absolute-other", target=b"http://b/small.txt")
parts("target-absolute-upper", target=b"HTTP://a/small.txt")
parts("target-absolute-user", target=b"http://u@a/small.txt")
parts("target-absolute-ftp", target=b"ftp://a/small.txt")
parts("target-no-slash", target=b"small.txt")
parts("target-asterisk", target=b"*")
parts("target-fragment", target=b"/small.txt#x")
parts("target-query", target=b"/small.txt?x=y")
parts("target-control", target=b"/small.txt\x01")
parts("target-delete", target=b"/small.txt\x7f")
parts("target-nul", target=b"/small.txt\0")
parts("target-high", target=b"/small.txt\xff")
parts("target-percent-nul", target=b"/small.txt%00")
parts("target-percent-bad", target=b"/small.txt%zz")
parts("target-percent-letter", target=b"/%73mall.txt")
parts("target-dots", target=b"/../small.txt")
parts("target-percent-dots", target=b"/%2e%2e/small.txt")
parts("target-slashes", target=b"//small.txt")
parts("target-backslash", target=b"\\small.txt")
parts("target-long", target=b"/" + b"a" * 20000)
parts("target-quote", target=b'/small.txt"<>')

# Host.
host("host-missing")
host("host-empty", b"Host:")
host("host-twice", b"Host: a", b"Host: a")
host("host-two", b"Host: a", b"Host: b")
host("host-space", b"Host: a b")
host("host-path", b"Host: a/b")
host("host-user", b"Host: u@a")
host("host-comma", b"Host: a, b")
host("host-port-empty", b"Host: a:")
host("host-port-letters", b"Host: a:b")
host("host-port-large", b"Host: a:99999")
host("host-ipv6-bad", b"Host: [1:2]")
host("host-ipv6", b"Host: [::1]:80")
host("host-tab", b"Host:\ta")
host("host-control", b"Host: a\x01")

# Fields.
line("field-space-before-colon", b"X-A : b")
line("field-tab-before-colon", b"X-A\t: b")
line("field-fold", b"X-A: b\r\n c", b"X-A: b\r\n\tc")
first("field-fold-first", b" X-A: b")
line("field-no-colon", b"X-A b")
line("field-no-name", b": b")
line("field-name-space", b"X A: b")
line("field-name-invalid", b"X(A: b")
line("field-name-high", b"X\xe4: b")
line("field-name-nul", b"X\0A: b")
line("field-value-nul", b"X-A: b\0c")
line("field-value-cr", b"X-A: b\rc")
line("field-value-lf", b"X-A: b\nX-B: c")
line("field-value-control", b"X-A: b\x01c")
line("field-value-high", b"X-A: b\xffc")
line("field-value-cr-smuggled", b"X-A: b\r" + SMUGGLED)
line("field-long", b"X-A: " + b"b" * 30000)
add("field-many", lambda draft, _: draft.fields.extend([b"X-A: b"] * 300))
parts("head-end-lf", head_end=b"\n")
parts("head-end-cr", head_end=b"\r")
parts("head-end-space", head_end=b" \r\n\r\n")
line("connection-close", b"Connection: close")
line("connection-list", b"Connection: keep-alive, close")
line("connection-odd", b"Connection: close, x(")
line("expect-continue", b"Expect: 100-continue")
line("expect-unknown", b"Expect: the-best")
line("upgrade-h2c", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA")

# Content-Length.
sized("length", b"Content-Length: LENGTH")
sized("length-zero-body", b"Content-Length: 0")
sized("length-none-body")
sized("length-twice", b"Content-Length: LENGTH", b"Content-Length: LENGTH")
sized("length-two", b"Content-Length: 0", b"Content-Length: LENGTH")
sized("length-two-other", b"Content-Length: LENGTH", b"Content-Length: 0")
sized("length-list", b"Content-Length: LENGTH, LENGTH")
sized("length-list-two", b"Content-Length: 0, LENGTH")
sized("length-plus", b"Content-Length: +LENGTH")
sized("length-minus", b"Content-Length: -LENGTH")
sized("length-hex", b"Content-Length: 0x28")
sized("length-zeros", b"Content-Length: 000LENGTH")
sized("length-many-zeros", b"Content-Length: " + b"0" * 200 + b"LENGTH")
sized("length-space-inside", b"Content-Length: 3 LENGTH")
sized("length-space-behind", b"Content-Length: LENGTH \t")
sized("length-empty", b"Content-Length:")
sized("length-junk", b"Content-Length: LENGTHx")
sized("length-quoted", b'Content-Length: "LENGTH"')
sized("length-fraction", b"Content-Length: LENGTH.0")
sized("length-2-64", b"Content-Length: 18446744073709551616")
sized("length-2-64-plus", b"Content-Length: 18446744073709551656")
sized("length-2-32-plus", b"Content-Length: 4294967336")
sized("length-2-63", b"Content-Length: 9223372036854775808")
sized("length-space-colon", b"Content-Length : LENGTH")
sized("length-underscore", b"Content_Length: LENGTH")
sized("length-fold", b"Content-Length:\r\n LENGTH")
sized("length-vertical-tab", b"Content-Length:\x0bLENGTH")
sized("length-short", b"Content-Length: LENGTH", body=SMUGGLED + SMUGGLED)
sized("length-nul", b"Content-Length: LENGTH\0")

# Transfer-Encoding.
sized("chunked", b"Transfer-Encoding: chunked", body=CHUNKS)
sized("coding-upper", b"Transfer-Encoding: CHUNKED", body=CHUNKS)
sized("coding-list-twice", b"Transfer-Encoding: chunked, chunked", body=CHUNKS)
sized("coding-two-fields", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=CHUNKS)
sized("coding-identity", b"Transfer-Encoding: identity", body=CHUNKS)
sized("coding-identity-length", b"Transfer-Encoding: identity", b"Content-Length: LENGTH")
sized("coding-chunked-identity", b"Transfer-Encoding: chunked, identity", body=CHUNKS)
sized("coding-identity-chunked", b"Transfer-Encoding: identity, chunked", body=CHUNKS)
sized("coding-gzip-chunked", b"Transfer-Encoding: gzip, chunked", body=CHUNKS)
sized("coding-chunked-gzip", b"Transfer-Encoding: chunked, gzip", body=CHUNKS)
sized("coding-gzip", b"Transfer-Encoding: gzip", body=CHUNKS)
sized("coding-unknown", b"Transfer-Encoding: xchunked", body=CHUNKS)
sized("coding-empty", b"Transfer-Encoding:", body=CHUNKS)
sized("coding-empty-elements", b"Transfer-Encoding: , chunked", body=CHUNKS)
sized("coding-parameter", b"Transfer-Encoding: chunked;x=y", body=CHUNKS)
sized("coding-quoted", b'Transfer-Encoding: "chunked"', body=CHUNKS)
sized("coding-tab", b"Transfer-Encoding:\tchunked", body=CHUNKS)
sized("coding-vertical-tab", b"Transfer-Encoding:\x0bchunked", body=CHUNKS)
sized("coding-nul", b"Transfer-Encoding: chunked\0", body=CHUNKS)
sized("coding-cr", b"Transfer-Encoding: chunked\r", body=CHUNKS)
sized("coding-space-colon", b"Transfer-Encoding : chunked", body=CHUNKS)
sized("coding-underscore", b"Transfer_Encoding: chunked", body=CHUNKS)
sized("coding-fold", b"Transfer-Encoding:\r\n chunked", body=CHUNKS)
sized("coding-behind-fold", b"X-A: b\r\n Transfer-Encoding: chunked", body=CHUNKS)
sized("coding-behind-lf", b"X-A: b\nTransfer-Encoding: chunked", body=CHUNKS)
sized("coding-behind-cr", b"X-A: b\rTransfer-Encoding: chunked", body=CHUNKS)
sized("coding-length", b"Transfer-Encoding: chunked", b"Content-Length: LENGTH", body=CHUNKS)
sized("coding-length-other", b"Content-Length: 4", b"Transfer-Encoding: chunked", body=CHUNKS)
sized("coding-length-short", b"Content-Length: 6", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SMUGGLED)


def chunked_in_1_0(draft: Draft, _: random.Random) -> None:
    """A request of HTTP/1.0 with a chunked body."""
    draft.version = b"HTTP/1.0"
    draft.fields += [b"Transfer-Encoding: chunked", b"Connection: keep-alive"]
    draft.body = CHUNKS


add("coding-1.0", chunked_in_1_0)

# Chunks.
chunked("chunk-two", b"5\r\nhello\r\nSIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-zeros", b"0000SIZE\r\nDATA\r\n000\r\n\r\n")
chunked("chunk-many-zeros", b"0" * 100 + b"SIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-extension", b"SIZE;a=b\r\nDATA\r\n0;c\r\n\r\n")
chunked("chunk-extension-quoted", b'SIZE;a="b;c\\""\r\nDATA\r\n0\r\n\r\n')
chunked("chunk-extension-space", b"SIZE ; a = b\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-extension-lf", b"SIZE;a\nb\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-extension-cr", b"SIZE;a\rb\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-extension-bad", b"SIZE;=\x01\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-extension-long", b"SIZE;a=" + b"b" * 20000 + b"\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-space-behind", b"SIZE \r\nDATA\r\n0\r\n\r\n")
chunked("chunk-space-before", b" SIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-0x", b"0xSIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-plus", b"+SIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-minus", b"-SIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-underscore", b"2_8\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-junk", b"SIZEx\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-empty", b"\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-2-64", b"10000000000000000\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-2-64-plus", b"100000000000000SIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-2-32-plus", b"1000000SIZE\r\nDATA\r\n0\r\n\r\n")
chunked("chunk-size-lf", b"SIZE\nDATA\r\n0\r\n\r\n")
chunked("chunk-size-cr", b"SIZE\rDATA\r\n0\r\n\r\n")
chunked("chunk-data-lf", b"SIZE\r\nDATA\n0\r\n\r\n")
chunked("chunk-data-none", b"SIZE\r\nDATA0\r\n\r\n")
chunked("chunk-data-longer", b"5\r\nhelloxx\r\n0\r\n\r\n")
chunked("chunk-last-lf", b"SIZE\r\nDATA\r\n0\n\n")
chunked("chunk-last-cr", b"SIZE\r\nDATA\r\n0\r\n\r")
chunked("chunk-trailer", b"SIZE\r\nDATA\r\n0\r\nX-A: b\r\n\r\n")
chunked("chunk-trailer-length", b"SIZE\r\nDATA\r\n0\r\nContent-Length: 5\r\n\r\n")
chunked("chunk-trailer-bad", b"SIZE\r\nDATA\r\n0\r\nX A\r\n\r\n")
chunked("chunk-trailer-fold", b"SIZE\r\nDATA\r\n0\r\nX-A: b\r\n c\r\n\r\n")
chunked("chunk-trailer-lf", b"SIZE\r\nDATA\r\n0\r\nX-A: b\n\r\n")
chunked("chunk-no-end", b"SIZE\r\nDATA\r\n0\r\n")


# Two mutations of the framing together do what these others do.
LENGTHS, CODINGS = (
    {name for name in MUTATIONS if name.startswith(prefixes)} - {"length-none-body", "coding-identity-length"}
    for prefixes in (("length",), ("chunk", "coding"))
)
HARDER = {
    (True, False): ("length-two", "length-two-other", "length-twice"),
    (False, True): ("coding-two-fields", "coding-list-twice"),
    (True, True): ("coding-length", "coding-length-other", "coding-length-short"),
}


def implied(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the mutations, and those that two of them make together."""
    if len(names) < 2:
        return names
    lengths, codings = LENGTHS.intersection(names), CODINGS.intersection(names)
    if len(lengths) + len(codings) < 2:
        return names
    return names + HARDER[bool(lengths), bool(codings)]


def add_noise(draft: Draft, chance: random.Random) -> None:
    """Changes what must not matter: other fields, the case of names, white space, order."""
    harmless = [b"Accept: */*", b"User-Agent: x", b"X-Odd: value \t", b"Accept-Language: de, en;q=0.5", b"Cookie: a=b"]
    draft.fields += chance.sample(harmless, chance.randint(0, 3))
    for i, text in enumerate(draft.fields):
        name, colon, value = text.partition(b":")
        name = chance.choice((name.lower(), name.upper(), name))
        draft.fields[i] = name + colon + chance.choice((b"", b" ", b"  ")) + value.strip(b" ")
    chance.shuffle(draft.fields)


def make(names: list[str], chance: random.Random) -> bytes:
    """Returns the bytes of a connection: a request with these mutations, and a plain one that shows where it ended."""
    draft = Draft()
    add_noise(draft, chance)
    for name in names:
        MUTATIONS[name](draft, chance)
    return draft.write() + MARKER
