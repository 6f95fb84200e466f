#!/usr/bin/perl
# The sandbox is on unless it is declined, and a server that drops its privileges does so for good.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

sub status_of ($pid, $name) {
    my ($value) = slurp("/proc/$pid/status") =~ /^\Q$name\E:\s*(.*?)\s*$/m;
    return $value;
}

# The server itself and, while a client is connected, every process of it.
sub each_process ($server) {
    return map { $_->[0] } grep { $_->[1] ne 'Z' } group_processes($server->pid);
}

each_server(sub ($model) {
    my $scratch = scratch();
    my $landlock = -e '/sys/kernel/security/lsm' ? slurp('/sys/kernel/security/lsm') =~ /landlock/ : undef;

    my $server = start_server(sandbox => 1, environment => no_leak_search(), options => ['--log', "$scratch/log", '--stats', "$scratch/stats"]);
    my $client = $server->connect;
    is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'in the sandbox files are served';
    is status_of($_, 'NoNewPrivs'), 1, 'in the sandbox: no_new_privs' for each_process($server);
    $client->close;
    $server->get('/none');
    $server->signal('USR1');
    ok until_true(sub { -s "$scratch/stats" }), 'in the sandbox statistics are written';
    $server->stop(warnings => qr/sandbox|landlock/i);
    unlike $server->errors, qr/sandbox|landlock/i, 'a kernel with Landlock: no warning' if $landlock;
    is scalar(() = slurp("$scratch/log") =~ /\n/g), 2, 'in the sandbox the log is written';

    my $root = tree('file.txt' => "one\n", 'link' => \'file.txt', 'site/index.html' => "index\n");
    $server = start_server(sandbox => 1, environment => no_leak_search(), root => $root, options => ['--list']);
    is $server->get('/file.txt')->{body}, "one\n", 'in the sandbox: another root';
    is $server->get('/link')->{body}, "one\n", 'in the sandbox: a link within';
    like $server->get('/')->{body}, qr/file\.txt/, 'in the sandbox: listings';
    spit("$root/new.txt", "new\n");
    is $server->get('/new.txt')->{body}, "new\n", 'in the sandbox: a file that came later';
    $server->stop(warnings => qr/sandbox|landlock/i);

    $server = start_server(options => ['--no-sandbox']);
    is status_of($server->pid, 'NoNewPrivs'), 0, '--no-sandbox: without no_new_privs';
    is $server->get('/small.txt')->{status}, 200, '--no-sandbox: files are served';
    $server->stop;

    if ($> != 0 || !getpwnam 'nobody') {
        skip_case('only root has privileges to drop');
        return;
    }
    my (undef, undef, $uid, $gid) = getpwnam 'nobody';
    my $place = tree('file.txt' => "one\n");
    $server = start_server(sandbox => 1, environment => no_leak_search(), root => $place, options => [qw(--user nobody)]);
    $client = $server->connect;
    is $client->ask(request(GET => '/file.txt'))->{status}, 200, '--user: files are served';
    like $server->{ready}, qr/; as user nobody$/, '--user: the ready line tells it';
    for my $pid (each_process($server)) {
        is status_of($pid, 'Uid'), join("\t", ($uid) x 4), '--user: all four user ids';
        is status_of($pid, 'Gid'), join("\t", ($gid) x 4), '--user: all four group ids';
        like status_of($pid, 'Groups') // '', qr/^(?:$gid)?$/, '--user: no other group';
        is hex status_of($pid, $_), 0, "--user: no capability in $_" for qw(CapInh CapPrm CapEff CapBnd CapAmb);
    }
    $client->close;
    $server->stop(warnings => qr/sandbox|landlock/i);

    # Root's server becomes nobody by itself.
    return if sanitized();
    for my $option ([], ['--no-sandbox']) {
        $server = start_server(root => $place, options => $option);
        $client = $server->connect;
        is $client->ask(request(GET => '/file.txt'))->{status}, 200, "started by root @$option: files are served";
        like $server->{ready}, qr/; as user nobody$/, 'the ready line tells as whom';
        for my $pid (each_process($server)) {
            is status_of($pid, 'Uid'), join("\t", ($uid) x 4), 'started by root: all four user ids are those of nobody';
            is hex status_of($pid, $_), 0, "started by root: no capability in $_" for qw(CapInh CapPrm CapEff CapBnd CapAmb);
        }
        $client->close;
        $server->stop(warnings => qr/sandbox|landlock/i);
    }
    $server = start_server(root => $place, options => [qw(--user root)]);
    is status_of($server->pid, 'Uid'), join("\t", (0) x 4), '--user root stays root';
    $server->stop(warnings => qr/sandbox|landlock/i);

    my $closed = tree('file.txt' => "one\n", 'inner/file.txt' => "two\n");
    chmod 0700, "$closed";
    $server = start_server(root => "$closed/inner");
    is $server->get('/file.txt')->{status}, 200, 'the root may be in a folder that the user may not enter';
    $server->stop(warnings => qr/sandbox|landlock/i);
    $server = start_server(root => $closed);
    like $server->errors, qr/may not enter the root '\Q$closed\E'/, 'a root that the user may not enter: it says so';
    is $server->get('/file.txt')->{status}, 403, 'and clients get 403';
    $server->stop(warnings => qr/sandbox|landlock|may not enter/i);

    mkdir "$closed/inner/private", 0700 or die "mkdir: $!";
    $server = start_server(options => ['--service', 'proxy', '--cache', "$closed/inner/private/cache"]);
    is((stat "$closed/inner/private/cache")[4], $uid, 'the proxy makes its cache for nobody, wherever root may');
    $server->stop(warnings => qr/sandbox|landlock|limit of \d+ descriptors/i);
    my $low = eval { start_server(root => $place, options => [qw(--user nobody)], port => 799) };
    if ($low) {
        is $low->get('/file.txt')->{status}, 200, '--user: a low port is taken before privileges are dropped';
        $low->stop;
    } else {
        skip_case('port 799 is not free here');
    }
});

done_testing;
