"""The service `work` by nginx: Perl inside its workers computes, blocks and writes to memory.

Its timers are of whole milliseconds: it is not set up to sleep for microseconds.
"""

from __future__ import annotations

MODULE = "/usr/lib/nginx/modules/ngx_http_perl_module.so"
PACKAGE = "libnginx-mod-http-perl"

# The code that does an amount of work, and the text of the response, which is that of our servers.
_KINDS = {
    "cpu": (
        """my $clock = Time::HiRes::CLOCK_THREAD_CPUTIME_ID();
                my $end = Time::HiRes::clock_gettime($clock) + $amount / 1e6;
                1 while Time::HiRes::clock_gettime($clock) < $end;""",
        "The server computed.",
    ),
    "block": ("Time::HiRes::usleep($amount);", "The thread was held."),
    "touch": (
        """my $memory = "x" x ($amount * 1024);
                undef $memory;""",
        "Pages were modified.",
    ),
}
KINDS = tuple(_KINDS)


def modules() -> str:
    """The first lines of the configuration."""
    return f"load_module {MODULE};"


def settings() -> str:
    """The lines before its server."""
    return "perl_require Time/HiRes.pm;"


def locations() -> str:
    """The lines in its server."""
    return "\n".join(_location(kind, *row) for kind, row in _KINDS.items())


def _location(kind: str, code: str, text: str) -> str:
    return f"""location /{kind}/ {{
            perl 'sub {{
                my $request = shift;
                my ($amount) = $request->uri =~ m{{/([0-9]+)$}} or return nginx::HTTP_BAD_REQUEST;
                {code}
                $request->header_out("Content-Length", {len(text) + 17});
                $request->send_http_header("text/plain");
                $request->print(sprintf("{text} Thread %07d.\\n", $$));
                return nginx::OK;
            }}';
        }}"""
