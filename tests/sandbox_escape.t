#!/usr/bin/perl
# Escapes from the sandbox: a worker attempts each action that would lead out of it, and is refused.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Select     ();
use IO::Socket::IP ();
use POSIX          ();

my $top  = "$FindBin::Bin/..";
my $made = make($top, 'escape');
is $made->{status}, 0, 'make escape: exit status 0' or diag($made->{err});

# Calls that no server needs, whatever their arguments, by their numbers on x86-64.
my %calls = (
    unshare => 272, setns => 308, mount => 165, umount2 => 166, pivot_root => 155, chroot => 161, open_tree => 428, fsopen => 430,
    move_mount => 429, mount_setattr => 442, io_uring_setup => 425, io_uring_enter => 426, io_uring_register => 427, bpf => 321,
    perf_event_open => 298, userfaultfd => 323, keyctl => 250, add_key => 248, request_key => 249, personality => 135, ptrace => 101,
    process_vm_readv => 310, process_vm_writev => 311, process_madvise => 440, kcmp => 312, pidfd_open => 434, pidfd_getfd => 438,
    pidfd_send_signal => 424, kill => 62, tkill => 200, tgkill => 234, rt_sigqueueinfo => 129, rt_tgsigqueueinfo => 297,
    timer_create => 222, setitimer => 38, alarm => 37, execve => 59, execveat => 322, vfork => 58, fork => 57, setuid => 105, setgid => 106,
    setresuid => 117, setgroups => 116, capset => 126, setsid => 112, setpgid => 109, setpriority => 141, ioprio_set => 251,
    sched_setscheduler => 144, sched_setaffinity => 203, init_module => 175, finit_module => 313, kexec_load => 246, reboot => 169,
    sethostname => 170, settimeofday => 164, adjtimex => 159, syslog => 103, acct => 163, swapon => 167, quotactl => 179, iopl => 172,
    ioperm => 173, modify_ldt => 154, arch_prctl => 158, name_to_handle_at => 303, open_by_handle_at => 304, fanotify_init => 300,
    inotify_init1 => 294, shmget => 29, semget => 64, msgget => 68, mq_open => 240, remap_file_pages => 216, memfd_secret => 447,
    pkey_alloc => 330, move_pages => 279, mbind => 237, splice => 275, vmsplice => 278, tee => 276, chmod => 90, fchmod => 91, chown => 92,
    fchown => 93, mknod => 133, mkdir => 83, rmdir => 84, setxattr => 188, truncate => 76, umask => 95, chdir => 80, fchdir => 81,
    bind => 49, listen => 50, ustat => 136, uselib => 134, vhangup => 153, lookup_dcookie => 212, landlock_create_ruleset => 444,
    landlock_add_rule => 445,
);

# The errors of refused attempts. A child that may not make processes gets EAGAIN. clone3 gets ENOSYS, so that the C library calls
# clone instead.
my $refused = qr/\A(?:EPERM|EACCES|EAGAIN|ENOSYS)\z/;

# Makes an attempt in a process of the server. Returns the name of its error, or "done".
sub attempt ($server, $name, $argument = '') {
    my $line = quotemeta "escape $name $argument";
    my $seen = () = $server->errors =~ /$line: /g;
    my $client = $server->connect;
    $client->send(request(GET => "/escape/$name/$argument", Connection => 'close'));
    $client->drain;
    return until_true(sub { my @results = $server->errors =~ /$line: (\w+)/g; @results > $seen ? $results[-1] : undef }) // 'no result';
}

# A file outside of the root that the user of the server may change.
my $user    = $> == 0 ? getpwnam 'nobody' : $>;
my $outside = tree('file' => "secret\n", 'folder/' => '');
chown $user, -1, "$outside", "$outside/file", "$outside/folder" if $> == 0;
chmod 0755, "$outside";
my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 4096) or die "listen: $@\n";
my $port     = $listener->sockport;
my $datagram = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Proto => 'udp') or die "bind: $@\n";
my $key      = "$outside/file";

sub starts ($model, @how) {
    return start_server(path => "$top/build/escape/$model->{name}_server", @how);
}

# Returns the process to attack: another worker, or the child of another client; else the server itself.
sub victim ($server) {
    my ($other) = grep { $_ != $server->pid } map { $_->[0] } grep { owner($_->[0]) == $user } group_processes($server->pid);
    return $other // $server->pid;
}
sub owner ($pid) { return (stat "/proc/$pid")[4] // -1 }

my @on_processes = qw(signal signal-thread signal-queued signal-by-descriptor signal-by-owner trace read-memory write-memory
    take-descriptor limit-process priority);
my @on_files = qw(read write openat2 chmod chown utimensat rename link symlink unlink);
my @plain    = (
    ['signal-parent'], ['fork'], ['clone', 0], ['clone', 0x10000000], ['clone', 0x20000], ['clone3'], ['vfork'], ['exec', '/bin/true'],
    ['exec-memory'], ['map-writable-code'], ['map-code'], ['map-file-code'], ['protect-code'], ['protect-code-by-key'],
    ['raise-limit'], ['fake-input'], ['tcp-listen'],
    (map { ['socket', $_] } '1/1', '1/2', '2/2', '2/3', '10/2', '16/3', '17/3', '40/1', '38/5'),
    ['socket-pair', 1], ['socket-pair', 2],
    (map { ['socket-option', $_] } '1/8', '1/25', '1/44', '6/9'),    # the buffer, the device, to lock the filter, to defer
    (map { ['prctl', $_] } '1/0', '1/17', '4/1', '15/0', '23/0', '28/0', '35/0', '53/1'),
);

# What fails without a sandbox, too, since the user lacks the right, the kernel lacks the protocol, or the arguments are
# nonsense; or leaves no process that could tell. Here --sandbox-kills shows that the filter refuses it.
my %hopeless = map { $_ => 1 } qw(trace read-memory write-memory take-descriptor vfork exec exec-memory fake-input), 'clone ' . 0x20000,
    'socket 2/3', 'socket 17/3', 'socket 38/5', (map { "socket-option $_" } '1/8', '1/25', '1/44', '6/9'),
    (map { "prctl $_" } '15/0', '28/0', '35/0', '53/1');

sub is_hopeless ($name, $argument = '') { return $hopeless{$name} || $hopeless{"$name $argument"} }

# Returns a process of the user that does nothing.
sub bystander () {
    my $process = fork // die "fork: $!\n";
    return $process if $process;
    $) = $( = (getpwuid $user)[3];
    $> = $< = $user;
    exec 'sleep', 3600 or POSIX::_exit(1);
}

# Tests that attempts succeed without a sandbox: these, and all that are possible at all. Each has a file of its own.
sub allows_all ($server, @attempts) {
    my $victim = bystander();
    my $place  = tree(map { $_ => "secret\n" } @on_files);
    chown $user, -1, "$place", map { "$place/$_" } @on_files;
    chmod 0755, "$place";
    until_true(sub { owner($victim) == $user });
    push @attempts,
        grep({ !is_hopeless(@$_) } map({ [$_, $victim] } @on_processes), @plain),
        (map { [$_, "$place/$_"] } @on_files),
        ['create', "$place/new"], ['mkdir', "$place/made"], ['read', '/etc/passwd'],
        (map { ["udp-$_", $datagram->sockport] } qw(send connect)), (map { ["tcp-$_", $port] } qw(connect fast-open message multipath));
    my %result = map { ("@$_" => attempt($server, @$_)) } @attempts;
    is join(', ', map { "$_: $result{$_}" } grep { $result{$_} ne 'done' } sort keys %result), '',
        '--no-sandbox: ' . keys(%result) . ' attempts succeed';
    kill KILL => $victim;
    waitpid $victim, 0;
}

sub refuses ($server, $name, @attempt) {
    like attempt($server, @attempt), $refused, "$name: @attempt is refused";
}

# Tries all attempts on another process. The server may have the kernel send a signal to itself, which it needs for upgrades.
sub refuses_on ($server, $name, $victim) {
    refuses($server, $name, $_, $victim) for grep { $_ ne 'signal-by-owner' || $victim != $server->pid } @on_processes;
    refuses($server, $name, 'read', "/proc/$victim/mem");
}

sub has_ring () { return (describe()->{needs} // '') eq 'io_uring' }

# The ring of a worker may poll and cancel (operations 6 and 14), and send and receive on plain streams except in the
# proxy. The kernel knows no more than 64 operations, and a ring has 64 registrations at most.
my ($SEND, $RECEIVE) = (26, 27);
sub ring_refuses ($server, $name) {
    my %may = map { $_ => 1 } 6, 14, $name =~ /\A(?:files|sized|work)/ ? ($SEND, $RECEIVE) : ();
    my %result = map { $_ => attempt($server, 'ring', $_) } 0 .. 63;
    is join(' ', map { "$_: $result{$_}" } grep { !$may{$_} && $result{$_} !~ /\A(?:EACCES|EINVAL)\z/ } 0 .. 63), '',
        "$name: the ring refuses " . (64 - keys %may) . ' operations';
    is join(' ', grep { $result{$_} eq 'EACCES' } sort keys %may), '', "$name: the ring takes " . keys(%may) . ' operations';
    # Flags: fixed descriptors, links, another thread.
    refuses($server, $name, 'ring-flags', $_) for 1, 4, 8, 16;
    refuses($server, $name, 'ring-change', $_) for 0 .. 35;
    refuses($server, $name, 'end-listener');
    unlike attempt($server, 'ring-fast-open', $port), qr/\A(?:done|EINPROGRESS|no result)\z/, "$name: a send by the ring opens no connection";
}

# Tries all attempts that do not depend on the version of the kernel.
sub refuses_all ($server, $name, %but) {
    my $other = model()->{single} ? undef : $server->connect;    # whose worker or child is the victim
    $other->ask(request(GET => '/small.txt')) if $other;
    my $victim = victim($server);
    refuses_on($server, $name, $victim);
    refuses($server, $name, $_, "$outside/file") for @on_files;
    refuses($server, $name, 'create', "$outside/new");
    refuses($server, $name, 'mkdir',  "$outside/made");
    refuses($server, $name, 'read',   '/etc/passwd');
    refuses($server, $name, @$_) for @plain;
    refuses($server, $name, "udp-$_", $datagram->sockport) for qw(send connect);
    refuses($server, $name, "tcp-$_", $port) for $but{connects} ? () : qw(connect fast-open message multipath);
    my @calls = grep { $_ ne 'io_uring_enter' || !has_ring() } sort keys %calls;
    my %result = map { $_ => attempt($server, 'call', $calls{$_}) } @calls;
    is join(' ', map { "$_: $result{$_}" } grep { $result{$_} ne 'EPERM' } sort keys %result), '',
        "$name: " . @calls . ' other system calls are refused';
    ring_refuses($server, $name) if has_ring();
    $other->close if $other;
}

# The options of a server with TLS. All have the same key.
my $keys = scratch();
sub tls_options () {
    my $made = -e "$keys/cert" ? { status => 0 } : run_command(qw(openssl req -x509 -days 2 -nodes -subj /CN=localhost -newkey ec
        -pkeyopt ec_paramgen_curve:P-256), '-keyout', "$keys/key", '-out', "$keys/cert");
    die "no certificate: $made->{err}\n" if $made->{status} != 0;
    return ('--tls', '--cert', "$keys/cert", '--key', "$keys/key");
}

# Sends the requests on one connection, which the server then ends.
sub ask_over_tls ($server, @targets) {
    spit("$keys/requests", join '', (map { request(GET => $_) } @targets), request(GET => '/small.txt', Connection => 'close'));
    run_command('sh', '-c', 'exec "$@" <"$0"', "$keys/requests", qw(timeout 60 openssl s_client -quiet -no-CAfile -no-CApath -no-CAstore
        -ign_eof), '-connect', "$server->{host}:$server->{port}");
}

# A worker with TLS asks other processes for signatures, and so may do more. All attempts are requests of one connection.
sub refuses_all_with_tls ($server) {
    my ($signer) = map { $_->[0] } grep { $_->[2] eq 'key_process' } group_processes($server->pid);
    my @attempts = (
        (map { [$_, $server->pid] } grep { $_ ne 'signal-by-owner' } @on_processes), @plain,
        (map { [$_, $signer] } @on_processes), ['read', "/proc/$signer/mem"], (map { [$_, "$outside/file"] } @on_files),
        ['create', "$outside/new"], ['mkdir', "$outside/made"], ['read', '/etc/passwd'], ['read', "$keys/key"],
        (map { ["udp-$_", $datagram->sockport] } qw(send connect)), (map { ["tcp-$_", $port] } qw(connect fast-open message multipath)),
        (map { ['call', $calls{$_}] } grep { $_ ne 'io_uring_enter' || !has_ring() } sort keys %calls),
    );
    my @targets = map { "/escape/$_->[0]/" . ($_->[1] // '') } @attempts;
    ask_over_tls($server, @targets);
    my %result = $server->errors =~ /escape (\S+ \S*): (\w+)/g;
    my @done   = grep { ($result{ "$_->[0] " . ($_->[1] // '') } // 'no result') !~ $refused } @attempts;
    is join(', ', map { my $name = "$_->[0] " . ($_->[1] // ''); "$name: " . ($result{$name} // 'no result') } @done), '',
        'with TLS: ' . @attempts . ' attempts are refused';
}

# Has a process that holds the TLS key make an attempt, by a key file that says so. Returns as attempt() does.
sub attempt_by_signer ($server, $key, $name, $argument = '') {
    my $bad  = qr/'\Q$key\E' holds no private key in PEM form: (\w+)/;
    my $seen = () = $server->errors =~ /$bad/g;
    spit($key, "escape $name/$argument\n");
    $server->signal('HUP');
    return until_true(sub { my @results = $server->errors =~ /$bad/g; @results > $seen ? $results[-1] : undef }) // 'no result';
}

# These processes may read files, as root. They are the same in all models.
my $signers_tried;
sub signers_refuse_all () {
    return if $signers_tried++;
    my @options = tls_options();
    my $good    = slurp("$keys/key");
    my $server  = starts(model(), forgiving => 1, options => \@options);
    my @signers = map { $_->[0] } grep { $_->[2] eq 'key_process' } group_processes($server->pid);
    is attempt_by_signer($server, "$keys/key", 'read', '/etc/passwd'), 'done', 'a signer may read files';
    my @attempts = (
        (map { my $victim = $_; map { [$_, $victim] } @on_processes } $server->pid, @signers), @plain,
        (map { [$_, "$outside/file"] } grep { $_ ne 'read' } @on_files), ['create', "$outside/new"], ['mkdir', "$outside/made"],
        (map { ["udp-$_", $datagram->sockport] } qw(send connect)), (map { ["tcp-$_", $port] } qw(connect fast-open message multipath)),
        (map { ['call', $calls{$_}] } sort keys %calls), ['call', 41], ['call', 53], ['call', 319],    # sockets, memory with a name
    );
    my @done = grep { attempt_by_signer($server, "$keys/key", @$_) !~ $refused } @attempts;
    is join(', ', map { "@$_" } @done), '', @attempts . ' attempts by a signer are refused';
    $server->stop(warnings => qr/key|certificate/);
    spit("$keys/key", $good);
}

each_server(sub ($model) {
    if ($> != 0) {
        skip_case('only root can start the server as another user');
        return;
    }
    if ($model->{label} =~ /share=(?:memory|all)/) {
        skip_case('a child that shares the memory of the server can do to it what it likes, and has the rights of the server');
        return;
    }

    # Without a sandbox the attempts succeed.
    my $store = scratch();
    my $server = starts($model, options => ['--no-sandbox', '--max-connections', 30, '--log', "$store/log"]);
    allows_all($server, ['empty-log'], ['write-log-anywhere']);
    $server->stop(warnings => qr/escape/);

    # As in production: a forbidden call fails, and the worker continues.
    my @proxy = ('proxy', '--origin', 'http://127.0.0.1:1');
    for my $service (['files'], ['sized'], ['work'], [@proxy, '--no-cache'], [@proxy, '--cache', "$store/cache"], ['files', '--udp', '--log', "$store/log"]) {
        my ($name, @options) = @$service;
        $server = starts($model, forgiving => 1, options => ['--service', $name, @options]);
        refuses_all($server, "@$service" =~ s{\Q$store\E/}{}r, connects => $name eq 'proxy');
        refuses($server, $name, "tcp-$_", $port) for $name eq 'proxy' ? qw(connect fast-open message multipath) : ();
        refuses($server, $name, $_) for grep({ $_ eq '--log' } @options) ? qw(empty-log write-log-anywhere) : ();
        $server->stop(warnings => qr/escape|limit of \d+ descriptors|cannot|worker/);
    }

    # An option of a listener holds for all who share it, but not longer than the worker that has set it.
    if ((describe()->{makes} // '') eq 'processes' && describe()->{workers_per_processor}) {
        $server = starts($model, forgiving => 1, options => ['--workers', 1]);
        my $worker = victim($server);
        is attempt($server, 'refuse-clients'), 'done', 'a worker can have the kernel refuse clients';
        kill KILL => $worker;
        ok until_true(sub { !grep { $_->[0] == $worker } group_processes($server->pid) }), 'the worker ends';
        is $server->get('/small.txt')->{status}, 200, 'the worker that replaces it has clients';
        $server->stop(warnings => qr/escape|worker/);
    }

    # What a child that serves one connection inherits of the process that accepts: two signals, which end nobody.
    if (!$model->{single} && (describe()->{makes} // '') eq 'processes') {
        $server = starts($model, forgiving => 1);
        my $other = $server->connect;
        $other->ask(request(GET => '/small.txt'));
        my @attempts = (['call-for-seat', victim($server)], ['call-for-seat', $server->pid], ['signal-news', $server->pid]);
        if (describe()->{workers_per_processor}) {
            refuses($server, 'a worker', @$_) for @attempts, ['signal-news', victim($server)];
        } else {
            is attempt($server, @$_), 'done', "a child may $_->[0]" for @attempts;
            refuses($server, 'a child', 'signal-news', victim($server));
        }
        is $other->ask(request(GET => '/small.txt'))->{status}, 200, 'the other connection goes on';
        is $server->get('/small.txt')->{status}, 200, 'the server goes on';
        $other->close;
        $server->stop(warnings => qr/escape/);
    }

    # A worker that writes nonsense to the memory that all processes share may end the server, or keep it from serving;
    # but it crashes no other process, and a signal ends the server. Nor can it hold up a stop by what it does to shared
    # descriptors.
    $server = starts($model, options => ['--stop-timeout', 1]);
    is attempt($server, 'make-wait'), 'done', 'a worker makes descriptors wait';
    $server->stop(warnings => qr/escape/, name => 'a signal ends the server all the same');
    if (!describe()->{workers_per_processor}) {
        $server = starts($model, options => ['--stop-timeout', 1]);
        is attempt($server, 'fill-events'), 'done', 'a worker makes descriptors wait, and full';
        $server->signal('TERM');
        ok until_true(sub { !$server->alive }), 'a server that is held up at a stop ends in time';
        $server->discard;
    }

    my $no_harm = qr/\A(?!.*(?:signal|crashed))/;
    for my $service ([qw(files --trace), "$store/trace"], ['sized', '--udp', '--log', "$store/log"], [@proxy, '--cache', "$store/cache"]) {
        my ($name, @options) = @$service;
        if ((describe()->{makes} // '') eq 'processes') {    # a thread could do that to its process without a system call
            $server = starts($model, options => ['--service', $name, @options, '--stop-timeout', 1]);
            $server->connect->send(request(GET => '/escape/erase/'));
            ok until_true(sub { $server->errors =~ /a worker erases/ }), "$name: a worker erases the shared memory, again and again";
            $server->stop(warnings => $no_harm, name => "$name: a signal ends the server all the same");
        }
        for my $every (1, 3, 30, 300) {
            $server = starts($model, options => ['--service', $name, @options, '--stop-timeout', 1]);
            is attempt($server, 'scribble', "$every/$every"), 'done', "$name: a worker changes one in $every words of the shared memory";
            for (1 .. 4) {
                my $client = IO::Socket::IP->new(PeerHost => $server->{host}, PeerPort => $server->port, Timeout => 1) or next;
                syswrite $client, request(GET => '/small.txt', Connection => 'close');
                IO::Select->new($client)->can_read(1);
            }
            $server->stop(warnings => $no_harm, name => "$name: no other process crashes, and a signal ends the server");
        }
    }
    for my $every (1, 3, 30, 300) {
        $server = starts($model, options => [tls_options(), '--stop-timeout', 1]);
        ask_over_tls($server, "/escape/scribble/$every/$every");
        like $server->errors, qr/scribble \S+: done/, "TLS: a worker changes one in $every words of the shared memory";
        $server->signal('HUP') if $every > 1;
        ask_over_tls($server);
        $server->stop(warnings => $no_harm, name => 'TLS: no other process crashes, and a signal ends the server');
    }

    $server = starts($model, options => ['--no-sandbox']);
    $server->connect->send(request(GET => '/escape/crash/'));
    ok until_true(sub { $server->errors =~ /a process has crashed/ }), 'a crash is seen';
    $server->discard;

    # A worker may get the log that is open. Only the server can have it opened again, even after a worker has asked for
    # that, and for an answer at a socket that takes none. (The worker asks at each of its sockets; where connections
    # are passed, another worker takes the question for a client.)
    if ((describe()->{makes} // '') eq 'processes' && $model->{label} !~ /accept=pass/) {
        my $logs = scratch();
        chown $user, -1, "$logs";
        $server = starts($model, forgiving => 1, options => ['--log', "$logs/log"]);
        $server->get('/small.txt');
        rename "$logs/log", "$logs/old" or die "rename: $!\n";
        is attempt($server, 'open-log-again'), 'done', 'a worker gets the log that is open';
        ok !-e "$logs/log", 'a worker cannot have the log opened again';
        $server->signal('HUP');
        ok until_true(sub { -e "$logs/log" }), 'the server has it opened again';
        $server->get('/small.txt');
        ok until_true(sub { -s "$logs/log" }), 'the next line goes to the new log';
        $server->stop(warnings => qr/escape|worker/);
    }

    $server = starts($model, forgiving => 1, options => [tls_options()]);
    refuses_all_with_tls($server);
    $server->stop(warnings => qr/escape|worker/);

    signers_refuse_all();

    # Older kernels have fewer features of Landlock. The filter of system calls is the same: it alone keeps a child of the server,
    # which has no domain of its own, from its siblings.
    for my $version (2 .. 7) {
        $server = starts($model, forgiving => 1, environment => { LANDLOCK_VERSION => $version });
        my $name = "Landlock $version";
        my $other = $model->{single} ? undef : $server->connect;    # whose worker or child is the victim
        $other->ask(request(GET => '/small.txt')) if $other;
        my $victim = victim($server);
        isnt $victim, $server->pid, "$name: the victim is a sibling" if (describe()->{makes} // '') eq 'processes';
        refuses_on($server, $name, $victim);
        $other->close if $other;
        refuses($server, $name, $_, "$outside/file") for @on_files;
        refuses($server, $name, 'create', "$outside/new");
        refuses($server, $name, 'tcp-connect', $port);
        $server->stop(warnings => qr/escape/);
    }

    # --sandbox-kills: a forbidden call ends the process.
    $server = starts($model);
    my $client = $server->connect;
    $client->send(request(GET => '/escape/socket/16/3'));
    $client->drain;
    ok $client->{ended} && $server->errors !~ /escape/, '--sandbox-kills: the process ends at the call';

    # The user lacks the right to some of the calls, and they would fail without a filter, too: it is the filter that kills.
    if ((describe()->{makes} // '') eq 'processes' && !describe()->{workers_per_processor}) {
        # A vfork only gets an error: a child's clone that is no thread may fail, as it does where there are too many processes.
        my @hopeless = grep { $_->[0] ne 'vfork' && is_hopeless(@$_) } (map { [$_, $server->pid] } @on_processes), @plain;
        my @attempts = ((map { ['call', $calls{$_}] } sort keys %calls), @hopeless);
        my @survived;
        for my $attempt (@attempts) {
            my ($name, $argument) = (@$attempt, '');
            my $child = $server->connect;
            $child->send(request(GET => "/escape/$name/$argument", Connection => 'close'));
            $child->drain;
            push @survived, "$name $argument" if !$child->{ended} || $server->errors =~ /escape $name \Q$argument\E:/;
        }
        is join(', ', @survived), '', '--sandbox-kills: each of ' . @attempts . ' attempts ends the process';
    }
});

done_testing;
