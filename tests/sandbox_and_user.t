#!/usr/bin/perl
# The sandbox, which is on by default, and the change to an unprivileged user.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

sub status_of ($pid, $name) {
    my ($value) = slurp("/proc/$pid/status") =~ /^\Q$name\E:\s*(.*?)\s*$/m;
    return $value;
}

# Returns all living processes of the server, without those beside it that keep its rights.
sub processes ($server) {
    return map { $_->[0] } serving_processes($server->pid);
}

each_server(sub ($model) {
    my $scratch = scratch();
    my $landlock = -e '/sys/kernel/security/lsm' ? slurp('/sys/kernel/security/lsm') =~ /landlock/ : undef;

    my $server = start_server(sandbox => 1, environment => no_leak_search(), options => ['--log', "$scratch/log", '--stats', "$scratch/stats"]);
    my $client = $server->connect;
    is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'the sandbox lets the server serve files';
    is status_of($_, 'NoNewPrivs'), 1, 'the sandbox sets no_new_privs' for processes($server);
    # An attacker who takes over a child gets the client of that child alone: a child can neither accept others nor end
    # the port.
    if ($model->{each} && describe()->{makes} eq 'processes' && $model->{label} !~ /files|all/) {
        my @children;
        ok until_true(sub { 1 == (@children = grep { $_ != $server->pid } processes($server)) }), 'there is one child for one connection';
        my @listen = grep { $_->[3] eq '0A' } map { [split ' '] } map { split /\n/, slurp($_) } '/proc/net/tcp', '/proc/net/tcp6';
        my %listens = map { ("socket:[$_->[9]]" => 1) } @listen;
        ok grep({ $listens{ readlink($_) // '' } } glob "/proc/@{[ $server->pid ]}/fd/*"), 'the server holds its port';
        ok !grep({ $listens{ readlink($_) // '' } } glob "/proc/$children[0]/fd/*"), 'a child for one connection holds no port';
        my %sockets = map { ($_ => 1) } grep { /^socket:/ } map { readlink($_) // '' } glob "/proc/@{[ $server->pid ]}/fd/*";
        my @shared  = grep { $sockets{ readlink($_) // '' } } glob "/proc/$children[0]/fd/*";
        is scalar @shared, 1, 'of the other sockets of the server it holds that to the process that opens the log' or diag("@shared");
    }
    $client->close;
    $server->get('/none');
    $server->signal('USR1');
    ok until_true(sub { -s "$scratch/stats" }), 'the sandbox lets the server write statistics';
    $server->stop(warnings => qr/sandbox|landlock/i);
    unlike $server->errors, qr/sandbox|landlock/i, 'on a kernel with Landlock the server does not warn' if $landlock;
    is scalar(() = slurp("$scratch/log") =~ /\n/g), 2, 'the sandbox lets the server write the log';

    my $root = tree('file.txt' => "one\n", 'link' => \'file.txt', 'site/index.html' => "index\n");
    $server = start_server(sandbox => 1, environment => no_leak_search(), root => $root, options => ['--list']);
    is $server->get('/file.txt')->{body}, "one\n", 'the sandbox lets the server serve another root';
    is $server->get('/link')->{body}, "one\n", 'the sandbox lets the server follow a link within the root';
    like $server->get('/')->{body}, qr/file\.txt/, 'the sandbox lets the server list a directory';
    spit("$root/new.txt", "new\n");
    is $server->get('/new.txt')->{body}, "new\n", 'the sandbox lets the server serve a file that is newer than the server';
    $server->stop(warnings => qr/sandbox|landlock/i);

    $server = start_server(options => ['--no-sandbox']);
    is status_of($server->pid, 'NoNewPrivs'), 0, '--no-sandbox does not set no_new_privs';
    is $server->get('/small.txt')->{status}, 200, '--no-sandbox: the server serves files';
    $server->stop;

    if ($> != 0 || !getpwnam 'nobody') {
        skip_case('only root has privileges to drop');
        return;
    }
    my (undef, undef, $uid, $gid) = getpwnam 'nobody';
    my $place = tree('file.txt' => "one\n");
    $server = start_server(sandbox => 1, environment => no_leak_search(), root => $place, options => [qw(--user nobody)]);
    $client = $server->connect;
    is $client->ask(request(GET => '/file.txt'))->{status}, 200, '--user: the server serves files';
    like $server->{ready}, qr/; as user nobody$/, '--user: the ready line has the user';
    for my $pid (processes($server)) {
        is status_of($pid, 'Uid'), join("\t", ($uid) x 4), '--user: all four user ids are those of the user';
        is status_of($pid, 'Gid'), join("\t", ($gid) x 4), '--user: all four group ids are those of the user';
        like status_of($pid, 'Groups') // '', qr/^(?:$gid)?$/, '--user: the process has no other group';
        is hex status_of($pid, $_), 0, "--user: $_ has no capability" for qw(CapInh CapPrm CapEff CapBnd CapAmb);
    }
    $client->close;
    $server->stop(warnings => qr/sandbox|landlock/i);

    # A server that root starts without --user changes to nobody.
    return if sanitized();
    for my $option ([], ['--no-sandbox']) {
        $server = start_server(root => $place, options => $option);
        $client = $server->connect;
        is $client->ask(request(GET => '/file.txt'))->{status}, 200, "started by root @$option: the server serves files";
        like $server->{ready}, qr/; as user nobody$/, 'started by root: the ready line says that the server runs as nobody';
        for my $pid (processes($server)) {
            is status_of($pid, 'Uid'), join("\t", ($uid) x 4), 'started by root: all four user ids are those of nobody';
            is hex status_of($pid, $_), 0, "started by root: $_ has no capability" for qw(CapInh CapPrm CapEff CapBnd CapAmb);
        }
        $client->close;
        $server->stop(warnings => qr/sandbox|landlock/i);
    }
    $server = start_server(root => $place, options => [qw(--user root)]);
    is status_of($server->pid, 'Uid'), join("\t", (0) x 4), '--user root: the server runs as root';
    $server->stop(warnings => qr/sandbox|landlock/i);

    my $closed = tree('file.txt' => "one\n", 'inner/file.txt' => "two\n");
    chmod 0700, "$closed";
    $server = start_server(root => "$closed/inner");
    is $server->get('/file.txt')->{status}, 200, 'started by root: the root may be in a folder that nobody may not enter';
    $server->stop(warnings => qr/sandbox|landlock/i);
    $server = start_server(root => $closed);
    like $server->errors, qr/may not enter the root '\Q$closed\E'/, 'started by root: the server says that nobody may not enter the root';
    is $server->get('/file.txt')->{status}, 403, 'started by root: a root that nobody may not enter gets 403';
    $server->stop(warnings => qr/sandbox|landlock|may not enter/i);

    mkdir "$closed/inner/private", 0700 or die "mkdir: $!";
    $server = start_server(options => ['--service', 'proxy', '--cache', "$closed/inner/private/cache"]);
    is((stat "$closed/inner/private/cache")[4], $uid, 'started by root: the proxy creates its cache for nobody where only root may');
    $server->stop(warnings => qr/sandbox|landlock|limit of \d+ descriptors/i);
    my $low = eval { start_server(root => $place, options => [qw(--user nobody)], port => 799) };
    if ($low) {
        is $low->get('/file.txt')->{status}, 200, '--user: the server binds a low port before it gives up its privileges';
        $low->stop;
    } else {
        skip_case('port 799 is not free here');
    }
});

done_testing;
