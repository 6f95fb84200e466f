#!/usr/bin/perl
# One case for each fault that a review found and the other tests did not.
use v5.36;
use Fcntl qw(F_SETLEASE F_WRLCK F_UNLCK);
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

each_server(sub ($model) {
    my $root = tree('small.txt' => 'small', 'leased.txt' => 'leased');

    # What is sent between two requests must not prolong the time for the second one
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
        like $connection->pending, qr{HTTP/1\.1 408 }, "$what: 408, by the request's deadline and not the writer's";
    }
    $server->stop;
    $server = start_server(root => $root);

    # A response is not lost to what comes behind a request that says close
    my $head = request(GET => '/small.txt', Connection => 'close', 'X-Fill' => '');
    $head =~ s/X-Fill: /'X-Fill: ' . 'f' x (1024 - length $head)/e;
    is length $head, 1024, 'a head that fills the input';
    for (1 .. 5) {
        my $response = $server->connect->ask($head . 'z' x 5000);
        is $response->{body}, 'small', 'a full input with more behind it: the response comes';
    }

    # An address without a host, and the longest request line
    is $server->get('http://:80/small.txt')->{status}, 400, 'an empty host: 400';
    for ([8192, 200], [8193, 414]) {
        my ($length, $status) = @$_;
        my $query = 'q' x ($length - length 'GET /small.txt? HTTP/1.1');
        is $server->get("/small.txt?$query")->{status}, $status, "a request line of $length bytes: $status";
    }

    # A document of the future is not sent with a date that has not come
    spit("$root/future.txt", 'future');
    utime time, time + 86_400, "$root/future.txt" or die "utime: $!";
    my $future = $server->get('/future.txt');
    is $future->field('Last-Modified'), $future->field('Date'), 'a file of tomorrow was modified now';

    # 100 Continue behind a response that nearly fills the output
    for my $size (map { 1150 + 8 * $_ } 0 .. 24) {
        spit("$root/filler.txt", 'f' x $size);
        my $connection = $server->connect;
        $connection->send(request(GET => '/filler.txt') . request(GET => '/small.txt', 'Content-Length' => 5, Expect => '100-continue'));
        ok until_true(sub { $connection->fill(1); $connection->pending =~ /100 Continue\r\n\r\n\z/ }), "100 Continue behind $size bytes";
        $connection->close;
    }

    # A file under a lease of somebody else
    open my $file, '+<', "$root/leased.txt" or die "leased.txt: $!";
    local $SIG{IO} = 'IGNORE';
    SKIP: {
        skip_case('no leases here'), last unless fcntl $file, F_SETLEASE, F_WRLCK;
        my $begun = cpu_seconds($server->pid);
        is $server->get('/leased.txt')->{status}, 503, 'a file under a lease: 503';
        is $server->get('/small.txt')->{status}, 200, 'and the next is served';
        fcntl $file, F_SETLEASE, F_UNLCK or die "lease: $!";
        is $server->get('/leased.txt')->{body}, 'leased', 'without the lease it is served';
    }
    $server->stop;
});
done_testing();
