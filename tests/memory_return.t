#!/usr/bin/perl
# Memory after many slow clients: when they have left, the server gives back what it needed for them.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $CLIENTS = 600;
# KiB that a server may keep: it reads the certificate and the code of TLS at its first connections.
my $SPARE = 512;

my $place = scratch();
my $made  = run_command("$FindBin::Bin/../collect/certificate.sh", "$place/tls");
die "no certificate: $made->{err}\n" if $made->{status} != 0;
my @tls = ('--tls', '--cert', "$place/tls/cert.pem", '--key', "$place/tls/key.pem");

# The beginning of a request with a body that does not come.
my $body = "POST /small.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx";

# The first message of a client of TLS 1.3, which the server answers with all of its own.
sub extension ($number, $data) { return pack 'n n/a*', $number, $data }
my $extensions = extension(43, "\2\3\4") . extension(10, pack 'n/a*', "\0\x1d") . extension(13, pack 'n/a*', "\4\3\x08\4\4\1")
    . extension(51, pack 'n/a*', pack 'n n/a*', 0x1d, 'k' x 32);
my $message = pack 'n a32 C/a* n/a* C/a* n/a*', 0x0303, 'r' x 32, '', "\x13\1", "\0", $extensions;
my $hello = pack 'C n n/a*', 22, 0x0301, pack 'C C n/a*', 1, 0, $message;

each_server(sub ($model) {
    if ($model->{limited} || $model->{single} || sanitized()) {
        skip_case('the model serves few connections at once, or the build keeps freed memory');
        return;
    }
    for my $case (['slow bodies', $body], ['half handshakes', $hello, @tls]) {
        my ($name, $bytes, @options) = @$case;
        my $server = start_server(options => ['--max-connections', $CLIENTS + 100, @options]);
        my $at_rest = () = serving_processes($server->pid);
        my @few = map { my $one = $server->connect; $one->send($bytes); $one } 1 .. 20;
        # A server that has read a body, or answered half a handshake, has all the memory that it keeps for good.
        for my $one (@few) {
            until_true(sub { @options ? IO::Select->new($one->{socket})->can_read(0) : $server->has_read($one) })
                or die "$name: the server does nothing\n";
        }
        $_->close for @few;
        # Processes share memory: the part of one process cannot be told while others end.
        until_true(sub { $at_rest == (() = serving_processes($server->pid)) }) or die "$name: processes do not end\n";
        my $before = anonymous_memory($server);
        my @held   = map { my $one = $server->connect; $one->send($bytes); $one } 1 .. $CLIENTS;
        my $with   = 0;
        until_true(sub { $with = anonymous_memory($server); $with > $before + 2 * $SPARE }, 60);
        cmp_ok $with, '>', $before + 2 * $SPARE, "$name: $CLIENTS clients need memory";
        $_->close for @held;
        my $after;
        ok until_true(sub { $after = anonymous_memory($server); $after < 1.1 * $before + $SPARE }, 60),
            "$name: when they have left, the memory is as before"
            or diag("$before KiB before, $with with them, $after after");
        $server->stop;
    }
});

done_testing;
