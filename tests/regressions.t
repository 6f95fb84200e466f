#!/usr/bin/perl
# Regressions: one case for each fault that a review has found and the other tests had not.
use v5.36;
use Fcntl qw(F_SETLEASE F_WRLCK F_UNLCK);
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

each_server(sub ($model) {
    my $root = tree('small.txt' => 'small', 'leased.txt' => 'leased');

    # Sending a response must not extend the deadline of the next request.
    my $server = start_server(root => $root, options => [qw(--request-timeout 1 --write-timeout 3600)]);
    my %late = (
        'a pipelined request that stops in its head' => request(GET => '/small.txt') . 'GET /sm',
        'a body that never comes after 100 Continue' =>
            request(GET => '/small.txt', 'Content-Length' => 5, Expect => '100-continue'),
        'a pipelined request whose body never comes' =>
            request(GET => '/small.txt') . request(GET => '/small.txt', 'Content-Length' => 5),
    );
    for my $what (sort keys %late) {
        my $connection = $server->connect;
        $connection->send($late{$what});
        $connection->drain;
        like $connection->pending, qr{HTTP/1\.1 408 }, "$what: 408 comes by the request timeout, not the write timeout";
    }
    $server->stop;
    $server = start_server(root => $root);

    # A response is not lost when bytes follow a request that has Connection: close.
    my $head = request(GET => '/small.txt', Connection => 'close', 'X-Fill' => '');
    $head =~ s/X-Fill: /'X-Fill: ' . 'f' x (1024 - length $head)/e;
    is length $head, 1024, 'the head has as many bytes as the input buffer';
    for (1 .. 5) {
        my $response = $server->connect->ask($head . 'z' x 5000);
        is $response->{body}, 'small', 'bytes that follow a head of 1,024 bytes with Connection: close: the response comes';
    }

    # A target without a host, and the longest request line
    is $server->get('http://:80/small.txt')->{status}, 400, 'a target with an empty host is refused with 400';
    for ([8192, 200], [8193, 414]) {
        my ($length, $status) = @$_;
        my $query = 'q' x ($length - length 'GET /small.txt? HTTP/1.1');
        is $server->get("/small.txt?$query")->{status}, $status, "a request line of $length bytes gets $status";
    }

    # Last-Modified may not be later than Date (RFC 9110, section 8.8.2.1).
    spit("$root/future.txt", 'future');
    utime time, time + 86_400, "$root/future.txt" or die "utime: $!";
    my $future = $server->get('/future.txt');
    is $future->field('Last-Modified'), $future->field('Date'), 'a file with a modification time in the future: Last-Modified is Date';

    # 100 Continue after a response that nearly fills the output buffer
    for my $size (map { 1150 + 8 * $_ } 0 .. 24) {
        spit("$root/filler.txt", 'f' x $size);
        my $connection = $server->connect;
        $connection->send(request(GET => '/filler.txt') . request(GET => '/small.txt', 'Content-Length' => 5, Expect => '100-continue'));
        ok until_true(sub { $connection->fill(1); $connection->pending =~ /100 Continue\r\n\r\n\z/ }), "100 Continue follows a response with a body of $size bytes";
        $connection->close;
    }

    # A file on which another process has a lease
    open my $file, '+<', "$root/leased.txt" or die "leased.txt: $!";
    local $SIG{IO} = 'IGNORE';
    SKIP: {
        skip_case('the file system has no leases'), last unless fcntl $file, F_SETLEASE, F_WRLCK;
        my $begun = cpu_seconds($server->pid);
        is $server->get('/leased.txt')->{status}, 503, 'a file under a lease gets 503';
        is $server->get('/small.txt')->{status}, 200, 'a file under a lease does not stop the server: another file is served';
        fcntl $file, F_SETLEASE, F_UNLCK or die "lease: $!";
        is $server->get('/leased.txt')->{body}, 'leased', 'the file is served when the lease has ended';
    }
    $server->stop;
});
done_testing();
