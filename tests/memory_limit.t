#!/usr/bin/perl
# A server in a control group takes only as many connections as fit into its memory, whatever its limit is, and the kernel
# ends its children before the server.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use File::Temp;
use IO::Socket::INET;
use JSON::PP qw(decode_json);
use POSIX    ();

# Makes a control group below that of this test, with this limit of memory. Returns its folder; nothing if that is not possible.
my @made;
sub group ($limit) {
    my $groups = slurp('/proc/self/cgroup');
    my ($one, $two) = ($groups =~ /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$/m, $groups =~ /^0::(.*)$/m);
    my ($mount, $file) = $groups =~ /^\d+:(?:[^:\n]*,)?memory[,:]/m ? ("/sys/fs/cgroup/memory$one", 'memory.limit_in_bytes')
        : ("/sys/fs/cgroup$two", 'memory.max');
    my $group = "$mount/server-test-$$";
    mkdir $group or return;
    push @made, $group;
    return eval { -e "$group/$file" && spit("$group/$file", $limit); 1 } && -e "$group/$file" ? $group : undef;
}

END { rmdir for @made }

# The score by which the kernel chooses the process to end when memory runs out.
sub score ($process) { return eval { slurp("/proc/$process/oom_score_adj") } // -1001 }

# Returns true if the kernel would end any of the children before the server.
sub is_protected ($server) {
    my $own = score($server->pid);
    return grep { $_->[0] != $server->pid && score($_->[0]) > $own } serving_processes($server->pid);
}

my $group = group(32 * 1024 * 1024);
my @through = ('sh', '-c', 'echo $$ >"$0/cgroup.procs" && exec "$@"', $group // '');

# Clients hold far more connections than there is memory for: the server serves others, and is there when they have left.
sub outlives ($model) {
    for my $round (1 .. 5) {
        my $server = start_server(through => \@through, options => ['--max-connections', 2000]);
        my @held = map { $server->connect } 1 .. 2000;
        $_->send("GET /small.txt HTTP/1.1\r\n") for @held;
        is $held[-1]->ask("Host: localhost\r\n\r\n")->{status}, 200, "round $round: the server serves where 2,000 clients hold connections";
        ok until_true(sub { is_protected($server) }), "round $round: the kernel would end children first"
            if serving_processes($server->pid) > 1;
        $_->close for @held;
        is $server->get('/small.txt')->{status}, 200, "round $round: the server serves when they have left";
        $server->stop;
    }
}

# Returns true if less than an eighth of the group's memory is left, without what it caches of files.
sub is_low () {
    my $used = slurp(-e "$group/memory.current" ? "$group/memory.current" : "$group/memory.usage_in_bytes");
    my %bytes = slurp("$group/memory.stat") =~ /^(\w+) (\d+)$/mg;
    return $used - $bytes{inactive_file} - $bytes{active_file} > 29 * 1024 * 1024;
}

# Another process of the group takes the memory that a crowd has left: the server serves again, once the crowd has passed.
sub serves_beside_a_neighbour () {
    my $server = start_server(through => \@through, options => ['--max-connections', 2000]);
    my @held = map { $server->connect } 1 .. 150;
    $_->send("GET /small.txt HTTP/1.1\r\n") for @held;
    $held[-1]->ask("Host: localhost\r\n\r\n");
    $_->close for @held;
    pipe my $says, my $tells or die "pipe: $!\n";
    my $neighbour = fork // die "fork: $!\n";
    if ($neighbour == 0) {
        POSIX::_exit(1) if !eval { spit("$group/cgroup.procs", $$); 1 };
        my @taken;
        for (;;) {
            push @taken, 'x' x 2**18 until is_low();
            syswrite $tells, 'low';
            select undef, undef, undef, 0.02;
        }
    }
    sysread $says, my $word, 3;
    is $word, 'low', 'a neighbour has taken the memory that a crowd has left';
    is $server->get('/small.txt')->{status}, 200, 'the server serves beside the neighbour';
    kill KILL => $neighbour;
    waitpid $neighbour, 0;
    $server->stop;
}

# Returns how many processes of the group the kernel has ended because its memory ran out.
sub ended_by_kernel () {
    return (map { /^oom_kill (\d+)$/m } slurp(-e "$group/memory.events" ? "$group/memory.events" : "$group/memory.oom_control"))[0];
}

# The memory does run out while each of many clients has a process: the kernel ends some of these, and not the server. What
# takes the memory is a file in memory, which is no process that the kernel could end.
sub survives_the_kernel () {
    my $server = start_server(through => \@through, options => ['--max-connections', 2000]);
    my @held = map { $server->connect } 1 .. 150;
    $_->send("GET /small.txt HTTP/1.1\r\n") for @held;
    $held[-1]->ask("Host: localhost\r\n\r\n");
    ok until_true(sub { is_protected($server) }), 'the kernel is told whom to end first';
    my $before = ended_by_kernel();
    my $file   = File::Temp->new(DIR => '/dev/shm');
    for (1 .. 32 * 16) {
        run_command(@through, 'dd', "of=$file", qw(if=/dev/zero bs=64K count=1 oflag=append conv=notrunc));
        last if ended_by_kernel() > $before;
    }
    undef $file;
    cmp_ok ended_by_kernel(), '>', $before, 'the memory runs out: the kernel ends a process';
    is $server->get('/small.txt')->{status}, 200, 'the server serves after that';
    $_->close for @held;
    $server->stop(name => 'the process that the kernel ended was not the server');
}

# The number of connections that a server of these options takes by default.
sub default_connections ($server) { return ($server->errors =~ /enough for (\d+) connections at once/)[0] // 0 }

# With TLS a connection takes more memory; so does that of a proxy.
sub counts_more ($fewer) {
    my $place = scratch();
    my $made  = run_command("$FindBin::Bin/../collect/certificate.sh", "$place/tls");
    my $tls   = start_server(through => \@through, options => ['--tls', '--cert', "$place/tls/cert.pem", '--key', "$place/tls/key.pem"]);
    my $fits  = default_connections($tls);
    ok $fits > 0 && $fits < $fewer, "with TLS there is room for fewer connections ($fits, not $fewer)";
    my $load = run_command("$FindBin::Bin/../collect/clients/open_loop", qw(--rate 100 --seconds 1 --timeout 240000 --tls new --keep-alive --hold),
        '--connections', $fits, $tls->port, '/small.txt');
    my $told = eval { decode_json($load->{out}) } // {};
    ok $told->{due}, 'requests are due while all of them are held' or diag $load->{err};
    is $told->{answered}, $told->{due}, 'the server serves while all of them are held';
    $tls->stop;

    my $origin = IO::Socket::INET->new(Listen => 4096, LocalAddr => '127.0.0.1', Timeout => $PATIENCE) or die "cannot listen: $!\n";
    my $proxy  = start_server(through => \@through, options => [qw(--service proxy --no-cache --origin), 'http://127.0.0.1:' . $origin->sockport]);
    $fits = default_connections($proxy);
    ok $fits > 0 && $fits < $fewer, "a proxy has room for fewer connections ($fits, not $fewer)";
    my @held = map { $proxy->connect } 1 .. $fits;
    $held[$_]->send("GET /$_ HTTP/1.1\r\nHost: localhost\r\nX-Long: " . 'x' x 30_000 . "\r\n\r\n") for 0 .. $#held;
    my @asked = grep { defined } map { scalar $origin->accept } @held;
    is scalar @asked, $fits, 'it asks the origin for all of them';
    syswrite $_, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" . 'y' x 40_000 for @asked;
    like $held[-1]->read_until(qr{\r\n\r\n}), qr{^HTTP/1\.1 200 }, 'and sends its response';
    close $_ for @asked;
    $_->close for @held;
    $proxy->stop;

    my $forward = start_server(through => \@through, options => [qw(--service proxy --no-cache)]);
    is default_connections($forward), $fits, 'a proxy to all origins has room for as many as one to a single origin';
    $forward->stop;
}

# A server that is the first process of a container is the parent of its helper processes, too.
sub stops_in_container () {
    my @container = qw(unshare --pid --fork --kill-child);
    return skip_case('this user may not make a container') if run_command(@container, 'true')->{status} != 0;
    my $server = start_server(through => [@through, @container]);
    ok until_true(sub { grep { $_->[2] eq 'oom_guard' } group_processes($server->pid) }), 'in a container the kernel is told whom to end first';
    kill TERM => grep { (eval { slurp("/proc/$_/status") } // '') =~ /^NSpid:.*\t1$/m } map { $_->[0] } group_processes($server->pid);
    $server->ended(name => 'a server that is the first process of a container with a limit of memory stops');
}

each_server(sub ($model) {
    my $limit = describe()->{defaults}{max_connections};
    if (!$group || sanitized()) {
        skip_case('no control group can be made here, or the build takes more memory');
    } elsif (($limit // 1) == 1) {
        my $server = start_server(through => \@through);
        is $server->get('/small.txt')->{status}, 200, 'a server with few connections serves within 32 MiB';
        ok until_true(sub { is_protected($server) }), 'the kernel would end its workers first' if serving_processes($server->pid) > 1;
        $server->stop;
    } else {
        my $server = start_server(through => \@through);
        my ($fewer) = $server->errors =~ /enough for (\d+) connections at once, not $limit$/m;
        ok $fewer && $fewer < $limit, 'the server says that 32 MiB are enough for fewer connections than its default';
        my @held = map { $server->connect } 1 .. $fewer + 200;
        $_->send("GET /small.txt HTTP/1.1\r\n") for @held;
        is $held[-1]->ask("Host: localhost\r\n\r\n")->{status}, 200, 'the server serves while more clients hold connections than its memory allows';
        $_->close for @held;
        is $server->get('/small.txt')->{status}, 200, 'the server serves others when these clients have left';
        @held = map { $server->connect } 1 .. $fewer;
        $_->send("GET /small.txt HTTP/1.1\r\nX-Long: " . 'x' x 30_000) for @held;
        is $server->get('/small.txt')->{status}, 200, 'the server serves while clients hold heads of 30 KB';
        $_->close for @held;
        $server->stop;    # it prints nothing but its summary: no process was killed
        counts_more($fewer);

        $server = start_server(through => \@through, options => ['--max-connections', $limit]);
        is $server->errors, '', '--max-connections overrides the limit that comes from the memory';
        $server->stop;
        outlives($model);
        serves_beside_a_neighbour() if $model->{each};
        survives_the_kernel()       if $model->{each} && describe()->{makes} eq 'processes';
    }
    stops_in_container() if $group && !sanitized() && describe()->{makes} eq 'processes';
});

done_testing;
