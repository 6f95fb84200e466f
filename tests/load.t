#!/usr/bin/perl
# Load of real clients (ab, httperf, curl, wget): no request fails, no zombie remains, memory does not grow.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $data  = "$FindBin::Bin/../data";
my $share = sanitized() ? 10 : 1;    # a sanitized server is slow: a tenth of the work is enough

# Runs ab, which must report no failure.
sub ab ($server, $name, $file, @options) {
    my $run = run_command('ab', '-q', '-s', $PATIENCE, @options, $server->url . $file);
    my ($requests) = "@options" =~ /-n (\d+)/;
    my $length = -s "$data/$file";
    my @flaws;
    push @flaws, "status $run->{status}: $run->{err}" if $run->{status};
    push @flaws, 'not all complete' if $run->{out} !~ /^Complete requests: +$requests$/m;
    push @flaws, 'failed requests'  if $run->{out} !~ /^Failed requests: +0$/m;
    push @flaws, 'non-2xx'          if $run->{out} =~ /^Non-2xx/m;
    push @flaws, 'another length'   if $run->{out} !~ /^Document Length: +$length bytes$/m;
    push @flaws, 'no keep-alive'    if grep({ $_ eq '-k' } @options) && $run->{out} !~ /^Keep-Alive requests: +[1-9]/m;
    ok !@flaws, $name or diag(join "\n", @flaws, $run->{out});
}

# Counts the threads of all processes of the server that serve.
sub tasks ($server) {
    return scalar grep { -e } map { glob "/proc/$_->[0]/task/*" } serving_processes($server->pid);
}

# Waits until the server has only its first process and its workers. Returns true if that happens. ThreadSanitizer adds a
# thread.
sub is_at_rest ($server, $model) {
    my $rest = 1 + ($model->{workers} // 0) + (build() eq 'tsan');
    return until_true(sub { tasks($server) == $rest });
}

# Returns the sum of a measure of memory over the processes of the server, in KiB.
sub memory ($server, $measure) {
    my $sum = 0;
    for my $process (group_processes($server->pid)) {
        my $rollup = eval { slurp("/proc/$process->[0]/smaps_rollup") } // next;
        $sum += $measure->({ $rollup =~ /^(\w+): +(\d+) kB/mg });
    }
    return $sum;
}

# The measure of memory that no file backs.
sub anonymous ($memory) { return $memory->{Anonymous} }

# The measure of memory that no file backs, where processes that share a page have a part of it each.
sub proportional ($memory) { return $memory->{Pss} - $memory->{Pss_File} }

# Tests that the memory of the server stops growing. Memory may grow for some rounds of work, because the first request of each
# worker takes some; a leak grows in every round. Two rounds in a row must add less than 12 KiB to the maximum so far: the
# smallest block that malloc gives, lost in each of 700 requests, is nearly twice as much.
sub stops_growing ($server, $name, $work) {
    my @seen;
    my ($most, $flat) = (0, 0);
    while ($flat < 2 && @seen < 36) {
        $work->();
        push @seen, memory($server, \&anonymous);
        $flat = $seen[-1] < $most + 12 ? $flat + 1 : 0;
        $most = $seen[-1] if $seen[-1] > $most;
    }
    cmp_ok $flat, '==', 2, "$name: memory stops growing" or diag("KiB after each round: @seen");
}

# Real clients
each_server(sub ($model) {
    my $server = start_server();
    for my $file ('small.txt', 'big.txt') {
        my $content = slurp("$data/$file");
        my $scratch = scratch();
        ok run_command('curl', '-sS', '-f', $server->url . $file)->{out} eq $content, "curl gets $file";
        ok run_command('curl', '-sS', '-f', '--http1.0', $server->url . $file)->{out} eq $content, "curl gets $file over HTTP/1.0";
        ok run_command('wget', '-q', '-O', '-', $server->url . $file)->{out} eq $content, "wget gets $file";
        run_command('wget', '-q', '-P', "$scratch", $server->url . $file);
        is((stat "$scratch/$file")[9], (stat "$data/$file")[9], "wget sets the modification time of $file from Last-Modified");
    }
    my $both = run_command('curl', '-sS', '-w', '%{num_connects}', '-o', '/dev/null', '-o', '/dev/null', $server->url . 'small.txt',
        $server->url . 'big.txt');
    is $both->{out}, '10', 'curl gets two files over one connection';
    my $range = run_command('curl', '-sS', '-f', '-r', '100-199', $server->url . 'big.txt');
    ok $range->{out} eq substr(slurp("$data/big.txt"), 100, 100), 'curl -r gets a range';
    my $resumed = run_command('bash', '-c', 'head -c 5000 data/big.txt | { cat; curl -sS -f -C 5000 ' . $server->url . 'big.txt; }');
    ok $resumed->{out} eq slurp("$data/big.txt"), 'curl -C resumes a download';

    my $calls = 200 / $share;
    my $httperf = run_command('httperf', '--server', '127.0.0.1', '--port', $server->port, '--uri', '/small.txt',
        '--num-conns', $calls, '--num-calls', 5);
    like $httperf->{out}, qr/^Total: connections $calls requests @{[ 5 * $calls ]} replies @{[ 5 * $calls ]} /m,
        "httperf, $calls connections of 5 calls: each call gets a response";
    like $httperf->{out}, qr/^Errors: total 0 /m, 'httperf: no call fails';
    like $httperf->{out}, qr/^Reply status: 1xx=0 2xx=@{[ 5 * $calls ]} /m, 'httperf: each response is a 200';
    $server->stop;
});

# Many requests
each_way_to_accept(sub ($model) {
    my $server = start_server();
    # How a connection is accepted does not matter to what is sent on it: one way of a model sends the large document.
    my @files = ('small.txt', $model->{label} eq $model->{name} ? 'big.txt' : ());
    for my $file (@files) {
        for my $concurrency (1, 10, 30) {
            my @load = ('-n', 300 / $share, '-c', $concurrency);
            # The rounds below ask in this way more often.
            ab($server, "ab $file, $concurrency at once: no request fails", $file, @load)
                if sanitized() || $file ne 'small.txt' || $concurrency != 10;
            my @keep = $model->{single} && $concurrency > 1 ? () : ('-k');
            ab($server, "ab $file, $concurrency at once, keep-alive: no request fails", $file, @load, @keep) if @keep;
        }
    }
    skip_case('ab -k with several at once: it serves one connection at a time') if $model->{single};
    ok until_true(sub { !grep { $_->[1] eq 'Z' } group_processes($server->pid) }), 'after the load no zombie remains';
    ok is_at_rest($server, $model), 'after the load no process or thread remains except the workers';
    if (sanitized()) {
        skip_case('the memory of a sanitized server does not show leaks');
    } else {
        stops_growing($server, 'rounds of 700 requests', sub {
            ab($server, 'ab, 700 requests in a round: no request fails', 'small.txt', '-n', 700, '-c', 10);
            is_at_rest($server, $model);
        });
    }
    $server->stop;
});

# Memory of one connection with many requests, and of idle connections
each_server(sub ($model) {
    my $root = tree('small.txt' => 'small', 'big.bin' => 'b' x 50_000, map { ("folder/$_.txt" => $_) } 1 .. 20);
    my $server = start_server(root => $root, options => ['--list']);
    my $mix = request(GET => '/small.txt') . request(GET => '/none') . request(GET => '/folder/') . request(GET => '/folder')
        . request(GET => '/big.bin', Range => 'bytes=0-0,9000-9000') . request(GET => '/small.txt', Range => 'bytes=99-')
        . request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "3\r\nabc\r\n0\r\n\r\n")
        . request(HEAD => '/big.bin') . request(OPTIONS => '*') . request(GET => '/small.txt', 'X-Long' => 'x' x 9000)
        . request(GET => '/small.txt', 'If-None-Match' => '*');
    my @methods = (('GET') x 7, 'HEAD', 'OPTIONS', 'GET', 'GET');
    my $right = '200 404 200 301 206 416 405 200 204 200 304';
    my $connection = $server->connect;
    $connection->send($mix);
    my @first = map { $connection->response($_) } @methods;
    is join(' ', map { $_->{status} } @first), $right, 'requests of all kinds on one connection get the right statuses';
    # Later answers to the mix differ in dates and boundary alone: each other text that comes is parsed once.
    my $last = qr{HTTP/1\.1 304 [^\r]*\r\n(?:[^\r]+\r\n)*\r\n\z};
    my %answers;
    my $round = sub {
        for (1 .. 160 / $share) {
            $connection->send($mix);
            my $answer = $connection->read_until($last);
            my $same = $answer =~ s/^Date: [^\r]*\r\n//gmr;
            $same =~ s/\Q$1\E//g if $same =~ /boundary=(\w+)/;
            $answers{$same} //= $answer;
        }
    };
    if (sanitized()) { $round->() }
    else             { stops_growing($server, 'rounds of 1,760 responses of all kinds on one connection', $round) }
    my @wrong;
    for my $answer (values %answers) {
        my @parsed = Harness::parse_responses($answer, @methods);
        my $told   = join ' ', (map { $_->{status} } @parsed), map { @{ $_->{flaws} } } @parsed;
        push @wrong, $told if $told ne $right;
    }
    ok %answers && !@wrong, 'later answers have the right statuses, too, and are well-formed' or diag(join "\n", @wrong);
    $connection->close;
    $server->stop;

    # In an event loop an idle connection has neither a process nor a thread.
    if ($model->{workers} && !$model->{limited} && !sanitized()) {
        $server = start_server(root => $root);
        my @before = map { $server->connect } 1 .. 20;
        $_->ask(request(GET => '/small.txt')) for @before;
        my $empty = memory($server, \&proportional);
        my @idle  = map { $server->connect } 1 .. 800;
        my $good  = grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @idle;
        my $each  = (memory($server, \&proportional) - $empty) * 1024 / @idle;
        is $good, 800, '800 connections are served and stay open';
        cmp_ok $each, '<', 1024, sprintf 'an idle connection takes less than 1 KiB: %d bytes', $each;
        $_->close for @before, @idle;
        $server->stop;
    }
});

done_testing;
