#!/usr/bin/perl
# Reports of a server: the access log in the combined format, the statistics in JSON, the summary at its end.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use POSIX qw(mkfifo setlocale LC_ALL);

each_way_to_accept(sub ($model) {
    my $scratch = scratch();
    my $server = start_server(options => ['--log', "$scratch/access.log"]);
    my $etag = $server->get('/small.txt')->field('ETag');
    $server->get('/big.txt', 'User-Agent' => 'test/1.0 (a comment)', Referer => 'http://localhost/from?here');
    $server->get('/none?a=b&c');
    $server->head('/small.txt');
    $server->get('/big.txt', Range => 'bytes=0-99');
    $server->get('/small.txt', 'If-None-Match' => $etag);
    $server->exchange(request(POST => '/small.txt', version => 'HTTP/1.0', 'Content-Length' => 3, body => 'abc'));
    $server->get('/none', 'User-Agent' => "a\"b\\c\x80\xff\td", Referer => '"- - [forged] "');
    $server->exchange("BAD\x01\"LINE\r\n\r\n");
    $server->exchange('GET /' . 'x' x 9000 . " HTTP/1.1\r\nHost: x\r\n\r\n");
    $server->exchange("GET /a\nHost: x\r\n\r\n");
    $server->exchange("GET /b HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n");
    $server->exchange("\r\nGET /c\0 HTTP/1.1\r\n\r\n");
    my @pair = $server->exchange(request(GET => '/small.txt') . request(GET => '/none', Connection => 'close'));
    $server->stop;

    my $log = slurp("$scratch/access.log");
    like $log, qr/\n\z/, 'log: the last line is complete';
    my @lines = split /\n/, $log;
    my $time = qr{\[\d\d/(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]};
    is scalar(@lines), 15, 'log: each response has a line';
    unlike $_, qr/[^\x20-\x7e]/, 'log: a line has printable ASCII only' for @lines;
    like $_, qr{\A127\.0\.0\.1 - - $time "(?:[^"\\]|\\.)*" \d{3} (?:\d+|-) "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*"\z}, 'log: a line has the combined format'
        for @lines;
    my @expected = (
        qr{"GET /small\.txt HTTP/1\.1" 200 1000 "-" "-"},
        qr{"GET /big\.txt HTTP/1\.1" 200 10000 "http://localhost/from\?here" "test/1\.0 \(a comment\)"},
        qr{"GET /none\?a=b&c HTTP/1\.1" 404 \d+ "-" "-"},
        qr{"HEAD /small\.txt HTTP/1\.1" 200 (?:0|-) "-" "-"},
        qr{"GET /big\.txt HTTP/1\.1" 206 100 "-" "-"},
        qr{"GET /small\.txt HTTP/1\.1" 304 (?:0|-) "-" "-"},
        qr{"POST /small\.txt HTTP/1\.0" 405 \d+ "-" "-"},
        qr{"GET /none HTTP/1\.1" 404 \d+ "(?:\\x22|\\")- - \[forged\] (?:\\x22|\\")" "a(?:\\x22|\\")b(?:\\x5c|\\\\)c\\x80\\xff(?:\\x09|\\t)d"},
        qr{"BAD\\x01(?:\\x22|\\")LINE" 400 \d+ "-" "-"},
        qr{"GET /x{1000,}" 414 \d+ "-" "-"},
        qr{"GET /a" 400 \d+ "-" "-"},
        qr{"GET /b HTTP/1\.1" 400 \d+ "-" "-"},
        qr{"GET /c\\x00 HTTP/1\.1" 400 \d+ "-" "-"},
        qr{"GET /small\.txt HTTP/1\.1" 200 1000 },
        qr{"GET /none HTTP/1\.1" 404 },
    );
    like $lines[$_] // '', $expected[$_], 'log: request ' . ($_ + 1) . ' has its line' for 0 .. $#expected;

    $server = start_server(options => ['--log', "$scratch/access.log"]);
    $server->get('/small.txt');
    $server->stop;
    is scalar(() = slurp("$scratch/access.log") =~ /\n/g), 16, 'log: a second server appends to the file';

    $server = start_server(options => ['--log', '-']);
    $server->get('/small.txt');
    $server->stop;
    like $server->{printed}, qr{\A[^\n]+\n127\.0\.0\.1 - - $time "GET /small\.txt HTTP/1\.1" 200 1000 "-" "-"\n\z},
        'log: with - the lines go to standard output, after the ready line';

    # SIGHUP reopens the log, also for workers that have connections. SIGUSR1 is handled after it and writes the statistics.
    my ($name, $counters) = ("$scratch/rotated.log", "$scratch/counters");
    my $place = tree('small.txt' => 's');
    my @user = $> == 0 && getpwnam 'nobody' ? qw(--user nobody) : ();
    $server = start_server(options => ['--log', $name, '--stats', $counters, @user], root => $place);
    my @clients = map { $server->connect } 1 .. ($model->{single} ? 1 : 8);
    is $_->ask(request(GET => '/small.txt?old'))->{status}, 200, 'log: a request before the log is renamed gets 200' for @clients;
    for my $round (1 .. 2) {
        my $text = slurp($name);
        rename $name, "$name.$round" or die "rename: $!";
        $server->deliver('HUP');
        truncate $counters, 0;
        $server->signal('USR1');
        ok until_true(sub { -s $counters }), "log, round $round: SIGHUP and SIGUSR1 are handled";
        is slurp($name), '', 'log: SIGHUP creates a new file';
        is $_->ask(request(GET => "/small.txt?$round"))->{status}, 200, 'log: a request after SIGHUP gets 200' for @clients;
        until_true(sub { (() = slurp($name) =~ /\n/g) >= @clients });
        is scalar(() = slurp($name) =~ m{ /small\.txt\?$round HTTP}g), scalar @clients, 'log: lines go to the new file after SIGHUP';
        is slurp("$name.$round"), $text, 'log: the renamed file gets no line after SIGHUP';
    }
    $_->close for @clients;
    rename $name, "$name.3" or die "rename: $!";
    mkdir $name;
    $server->signal('HUP');
    ok until_true(sub { $server->errors =~ /rotated\.log' cannot be opened again/ }), 'log: the server says that it cannot reopen the log';
    $server->get('/small.txt?still');
    $server->stop(warnings => qr/cannot be opened again/);
    like slurp("$name.3"), qr/\?still HTTP/, 'log: a server that cannot reopen the log continues in the old file';

    # A named pipe holds the lines until a reader opens it.
    mkfifo("$scratch/pipe", 0600) or die "mkfifo: $!";
    $server = start_server(options => ['--log', "$scratch/pipe"]);
    is $server->get('/small.txt')->{status}, 200, 'log: a named pipe without a reader does not stop the server';
    open my $reader, '<', "$scratch/pipe" or die "open: $!";
    like scalar <$reader>, qr{ "GET /small\.txt HTTP/1\.1" 200 }, 'log: a reader that opens the named pipe later gets the line';
    close $reader;
    is $server->get('/small.txt')->{status}, 200, 'log: a named pipe whose reader has left does not stop the server';
    $server->stop;

    my $full = start_server(options => ['--log', '/dev/full']);
    is $full->get('/small.txt')->{status}, 200, 'log: a full disk does not stop the server';
    $full->stop(warnings => qr/^$model->{name}_server: .*(?:log|space)/);

    # Statistics
    my $file = "$scratch/stats.json";
    $server = start_server(options => ['--stats', $file]);
    $server->get('/small.txt') for 1 .. 5;
    $server->get('/none') for 1 .. 2;
    $server->exchange(request(GET => '/small.txt') . request(GET => '/small.txt', Connection => 'close'));
    my $counted = sub ($requests) {    # the server counts the end of a connection a moment after the client sees it
        return sub {
            $server->signal('USR1');
            my $stats = json($file);
            return ($stats->{requests} // -1) == $requests && ($stats->{active} // 0) == 0 ? $stats : undef;
        };
    };
    my $stats = until_true($counted->(9));
    ok $stats, 'stats: SIGUSR1 writes one JSON object that counts 9 requests' or diag(eval { slurp($file) });
    is $stats->{connections}, 8, 'stats: the connections are counted';
    is $stats->{errors}, 2, 'stats: the error responses are counted';
    cmp_ok $stats->{bytes}, '>', 7000, 'stats: the bytes are counted';
    # A connection counts until the server sees its end, and the next one may begin before that.
    ok $stats->{peak} >= 1 && $stats->{peak} <= 8, 'stats: the maximum of connections at once is between 1 and 8';
    ok defined $stats->{cpu_seconds}, 'stats: the CPU time is given';
    ok defined $stats->{microseconds_per_request}, 'stats: the CPU time per request is given';
    cmp_ok $stats->{peak_memory_kib}, '>', 100, 'stats: the peak memory is given';
    is $stats->{made}, $model->{workers} // 8, 'stats: the processes or threads are counted' if !$model->{single};
    if ($model->{workers}) {
        my $workers = $stats->{workers} // [];
        is scalar @$workers, $model->{workers}, 'stats: each worker is listed';
        my @loops = grep { $_->{waits} } @$workers;
        ok !@loops || $loops[0]{events}, 'stats: event loops count their waits, and the events that these brought';
        is !@loops, !!$model->{limited}, 'stats: only event loops do';
        for my $what (qw(connections requests)) {
            my $sum = 0;
            $sum += $_->{$what} for @$workers;
            is $sum, $stats->{$what}, "stats: the sum of the ${what} of all workers is the total";
        }
    }
    $server->get('/small.txt');
    ok until_true($counted->(10)), 'stats: a second SIGUSR1 replaces the object';
    $server->get('/small.txt');
    my $summary = $server->stop;
    my $last = json($file);
    is $last->{requests}, 11, 'stats: the server also writes them at its end';
    is $last->{connections}, 10, 'stats: at the end all connections are counted';
    like $summary, qr/\b10 connections?\b.*\b11 requests?\b.*\b2 errors?\b/, 'the summary has the counts of the statistics';
    is $last->{errors}, 2, 'stats: at the end the error responses are counted';
    like $summary, qr/\b\Q$last->{bytes}\E bytes\b/, 'the summary has the bytes of the statistics';

    # The summary must include the CPU time of child processes.
    $server = start_server(options => ['--stats', $file]);
    run_command('ab', '-q', '-n', 300, '-c', 1, $server->url . 'small.txt');
    $summary = $server->stop;
    my ($cpu) = $summary =~ /([\d.]+) s CPU/;
    cmp_ok $cpu, '>', 0.0005, "the summary has the CPU time of 300 requests ($cpu s)";
    is json($file)->{requests}, 300, 'stats: 300 requests of ab are counted';

    # What cannot be written at the end is an error.
    for my $option (qw(--stats --trace)) {
        $server = start_server(options => [$option, '/dev/full']);
        is $server->get('/small.txt')->{status}, 200, "$option on a full disk: a client is served";
        $server->signal('TERM');
        is $server->wait_exit, 1 << 8, "$option on a full disk: exit status 1";
        like $server->errors, qr{^[^\n]*cannot write the file of \Q$option\E: No space left on device$}m, "$option on a full disk: a line that says so";
    }
});

done_testing;
