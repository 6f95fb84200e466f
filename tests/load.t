#!/usr/bin/perl
# Real clients and much work: ab, httperf, curl, wget; no failed request, no zombie, no growth.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $data  = "$FindBin::Bin/../data";
my $share = sanitized() ? 10 : 1;    # sanitized servers are slow: a part of the work does

# Kilobytes that the server's processes take up, what they share counted once; without pages of files, whose share changes when
# another test runs the same program.
sub proportional ($server) {
    my $sum = 0;
    for my $process (group_processes($server->pid)) {
        my $rollup = eval { slurp("/proc/$process->[0]/smaps_rollup") } // next;
        my %kilobytes = $rollup =~ /^(Pss\w*): +(\d+) kB/mg;
        $sum += $kilobytes{Pss} - $kilobytes{Pss_File};
    }
    return $sum;
}

# Runs ab and tells what it says of failures.
sub ab ($server, $name, $file, @options) {
    my $run = run_command('ab', '-q', @options, $server->url . $file);
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

# Kilobytes of memory that the server's processes have of their own: not what is mapped from files.
sub memory ($server) {
    my $sum = 0;
    for my $process (group_processes($server->pid)) {
        my $rollup = eval { slurp("/proc/$process->[0]/smaps_rollup") } // next;
        $sum += $1 if $rollup =~ /^Anonymous: +(\d+) kB/m;
    }
    return $sum;
}

each_way_to_accept(sub ($model) {
    my $server = start_server(options => [qw(--idle-timeout 20)]);
    my $alone = () = group_processes($server->pid);    # it, and the processes of its crew
    for my $file ('small.txt', 'big.txt') {
        my $content = slurp("$data/$file");
        my $scratch = scratch();
        ok run_command('curl', '-sS', '-f', $server->url . $file)->{out} eq $content, "curl gets $file";
        ok run_command('curl', '-sS', '-f', '--http1.0', $server->url . $file)->{out} eq $content, "curl gets $file by HTTP/1.0";
        ok run_command('wget', '-q', '-O', '-', $server->url . $file)->{out} eq $content, "wget gets $file";
        run_command('wget', '-q', '-P', "$scratch", $server->url . $file);
        is((stat "$scratch/$file")[9], (stat "$data/$file")[9], "wget takes over the time of $file");
        for my $concurrency (1, 10, 30) {
            my @load = ('-n', 2000 / $share, '-c', $concurrency);
            ab($server, "ab $file, $concurrency at once", $file, @load);
            my @keep = $model->{single} && $concurrency > 1 ? () : ('-k');
            ab($server, "ab $file, $concurrency at once, keep-alive", $file, @load, @keep) if @keep;
        }
    }
    skip_case('ab -k with several at once: it serves one connection at a time') if $model->{single};
    my $both = run_command('curl', '-sS', '-w', '%{num_connects}', '-o', '/dev/null', '-o', '/dev/null', $server->url . 'small.txt',
        $server->url . 'big.txt');
    is $both->{out}, '10', 'curl uses one connection for both files';
    my $range = run_command('curl', '-sS', '-f', '-r', '100-199', $server->url . 'big.txt');
    ok $range->{out} eq substr(slurp("$data/big.txt"), 100, 100), 'curl -r gets a part';
    my $resumed = run_command('bash', '-c', 'head -c 5000 data/big.txt | { cat; curl -sS -f -C 5000 ' . $server->url . 'big.txt; }');
    ok $resumed->{out} eq slurp("$data/big.txt"), 'curl -C goes on where it was';

    my $calls = 200 / $share;
    my $httperf = run_command('httperf', '--server', '127.0.0.1', '--port', $server->port, '--uri', '/small.txt',
        '--num-conns', $calls, '--num-calls', 5);
    like $httperf->{out}, qr/^Total: connections $calls requests @{[ 5 * $calls ]} replies @{[ 5 * $calls ]} /m,
        "httperf, $calls connections of 5 calls: all are answered";
    like $httperf->{out}, qr/^Errors: total 0 /m, 'httperf: no error';
    like $httperf->{out}, qr/^Reply status: 1xx=0 2xx=@{[ 5 * $calls ]} /m, 'httperf: all 200';

    ok until_true(sub { !grep { $_->[1] eq 'Z' } group_processes($server->pid) }), 'no zombie stays after that';
    ok until_true(sub { group_processes($server->pid) == $alone }), 'and no process but those it began with';
    $server->stop;

    if (sanitized()) {
        skip_case('memory under a sanitizer says nothing');
        return;
    }
    $server = start_server();
    my @after;
    for my $requests (2_000, 20_000) {
        ab($server, "ab, $requests requests on their way to measure memory", 'small.txt', '-n', $requests, '-c', 10);
        until_true(sub { group_processes($server->pid) == $alone });
        push @after, memory($server);
    }
    cmp_ok $after[1], '<=', $after[0] + 300, "memory: $after[0] KiB after 2,000 requests, $after[1] KiB after 20,000";
    $server->stop;

    # The same within one connection, with replies of all kinds.
    my $root = tree('small.txt' => 'small', 'big.bin' => 'b' x 50_000, map { ("folder/$_.txt" => $_) } 1 .. 20);
    $server = start_server(root => $root, options => ['--list', '--idle-timeout', 60]);
    my $mix = request(GET => '/small.txt') . request(GET => '/none') . request(GET => '/folder/') . request(GET => '/folder')
        . request(GET => '/big.bin', Range => 'bytes=0-0,9000-9000') . request(GET => '/small.txt', Range => 'bytes=99-')
        . request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "3\r\nabc\r\n0\r\n\r\n")
        . request(HEAD => '/big.bin') . request(OPTIONS => '*') . request(GET => '/small.txt', 'X-Long' => 'x' x 9000)
        . request(GET => '/small.txt', 'If-None-Match' => '*');
    my @methods = (('GET') x 7, 'HEAD', 'OPTIONS', 'GET', 'GET');
    my $connection = $server->connect;
    my $wrong = 0;
    @after = ();
    for my $rounds (200, 2_000) {
        for (1 .. $rounds) {
            $connection->send($mix);
            my $got = join ' ', map { $connection->reply($_)->{status} } @methods;
            $wrong++ if $got ne '200 404 200 301 206 416 405 200 204 200 304';
        }
        push @after, memory($server);
    }
    is $wrong, 0, '24,200 replies of all kinds on one connection';
    cmp_ok $after[1], '<=', $after[0] + 300, "memory: $after[0] KiB after 2,200 replies of all kinds, $after[1] KiB after 24,200";
    $connection->close;
    $server->stop;

    # Where a connection has neither a process nor a thread, an idle one holds next to nothing.
    if ($model->{crew} && !$model->{limited} && !sanitized()) {
        $server = start_server(root => $root, options => ['--idle-timeout', 600]);
        my @before = map { $server->connect } 1 .. 20;
        $_->ask(request(GET => '/small.txt')) for @before;
        my $empty = proportional($server);
        my @idle  = map { $server->connect } 1 .. 800;
        my $good  = grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @idle;
        my $each  = (proportional($server) - $empty) * 1024 / @idle;
        is $good, 800, '800 connections are served, and stay';
        cmp_ok $each, '<', 1024, sprintf 'each holds less than 1 KiB: %d bytes', $each;
        $_->close for @before, @idle;
        $server->stop;
    }
});

done_testing;
