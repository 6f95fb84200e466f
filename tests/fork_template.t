#!/usr/bin/perl
# fork_server --template: whose children the processes are, how large they are, and what happens if the template or a child dies.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Injection;

my $KIBIBYTES = 64 * 1024;

# Returns a field of /proc/PROCESS/status; nothing if the process is gone.
sub status ($process, $name) {
    my $text = eval { slurp("/proc/$process/status") } // '';
    return $text =~ /^$name:\s+(\d+)/m ? $1 : undef;
}

# Returns the numbers of the sockets that listen at the server's port.
sub listening ($server) {
    my $port = sprintf '%04X', $server->port;
    my @fields = map { [split ' '] } map { split /\n/, slurp($_) } '/proc/net/tcp', '/proc/net/tcp6';
    return map { $_->[9] } grep { $_->[3] eq '0A' && $_->[1] =~ /:$port\z/ } @fields;
}

# Returns the children that serve.
sub children ($server) { return grep { $_ != $server->pid } map { $_->[0] } serving_processes($server->pid) }

# Returns the templates.
sub templates ($server) { return map { $_->[0] } grep { $_->[2] eq 'template' && $_->[1] ne 'Z' } group_processes($server->pid) }

each_way_to_accept(sub ($model) {
    if ($model->{label} !~ /\+template\z/) {
        return if describe()->{template};
        my $refused = run_server('--template', '0');
        is $refused->{status}, 2, 'a model that does not fork has no --template';
        like $refused->{err}, qr/--template/, 'and says so';
        return;
    }
    my $server = start_server(options => ['--ballast', "${KIBIBYTES}K"]);
    my ($template, @surplus) = templates($server);
    ok defined $template && !@surplus && !children($server), 'there is one process beside the server: the template';
    my $client = $server->connect;
    is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'a request gets 200';
    my ($child, @more) = children($server);
    ok defined $child && !@more, 'one child serves one connection';
    is status($child, 'PPid'), $server->pid, 'it is a child of the server, not of the template';
    cmp_ok status($server->pid, 'VmRSS'), '>=', $KIBIBYTES, 'the server holds the ballast';
    cmp_ok status($_, 'VmSize'), '<', status($server->pid, 'VmSize') - $KIBIBYTES + 1024, 'template and child do not' for $template, $child;
    my %listens = map { ("socket:[$_]" => 1) } listening($server);
    ok %listens && !grep({ $listens{ readlink($_) // '' } } glob "/proc/$template/fd/*"), 'the template holds no port';

    # A child that dies takes its own connection with it.
    my $other = $server->connect;
    is $other->ask(request(GET => '/small.txt'))->{status}, 200, 'a second client gets 200';
    kill KILL => grep { $_ != $child } children($server);
    $other->drain;
    ok $other->{ended}, 'the connection of a child that was killed ends';
    is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'the other one goes on';

    # The template dies.
    kill KILL => $template;
    ok until_true(sub { !defined status($template, 'VmRSS') }), 'the template is gone';
    is $server->get('/small.txt')->{status}, 200, 'without the template, a new client is served' for 1 .. 3;
    is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'and a connection that it made goes on';
    $client->close;
    ok until_true(sub { !children($server) && !templates($server) }), 'no process is left beside the server';
    my $errors = $server->errors;
    is scalar(() = $errors =~ /the template has died/g), 1, 'the server says once that the template has died';
    $server->stop(warnings => qr/signal 9|template has died/);

    # The template dies when it has made a child, before it says so: nobody else serves the same client.
    $server = start_server();
    ($template) = templates($server);
    my $tracer = command_exists('strace') && !sanitized() ? inject('sendto:signal=KILL:when=1', [$template]) : undef;
    if ($tracer) {
        $client = $server->connect;
        is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'the template dies with an answer on its lips: the client gets 200';
        ok until_true(sub { !templates($server) }), 'and the template is gone';
        is scalar(() = children($server)), 1, 'one child serves the client';
        is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'its next request gets 200';
        $client->close;
        is $server->get('/small.txt')->{status}, 200, 'and so does the next client';
        waitpid $tracer, 0;
    } else {
        skip_case('a template that dies between two system calls: without strace, or with a sanitizer');
    }
    $server->stop(warnings => qr/signal 9|template has died/);

    # The kernel has no memory for a message to the template, once: the client waits, and the template stays.
    $server = start_server(options => ['--no-sandbox']);
    $tracer = command_exists('strace') && !sanitized() ? inject('sendmsg:error=ENOBUFS:when=1', [$server->pid]) : undef;
    if ($tracer) {
        is $server->get('/small.txt')->{status}, 200, 'a message that the kernel refuses once: the client is served' for 1, 2;
        is scalar(() = templates($server)), 1, 'and the template stays';
        kill INT => $tracer;
        waitpid $tracer, 0;
    } else {
        skip_case('a message that the kernel refuses: without strace, or with a sanitizer');
    }
    $server->stop(warnings => qr/cannot make|connections wait/);

    # The server dies: nobody is left.
    $server = start_server();
    $client = $server->connect;
    $client->ask(request(GET => '/small.txt'));
    my @family = ($server->pid, templates($server), children($server));
    is scalar @family, 3, 'server, template and child';
    $server->signal('KILL');
    ok until_true(sub { !grep { defined status($_, 'VmRSS') } @family }), 'when the server is killed, template and child end';

    # A log that was opened again.
    my $folder = File::Temp->newdir;
    $server = start_server(options => ['--log', "$folder/log"]);
    $server->get('/small.txt');
    rename "$folder/log", "$folder/old" or die "rename: $!\n";
    $server->deliver('HUP');
    ok until_true(sub { -e "$folder/log" }), 'SIGHUP: there is a new log';
    $server->get('/big.txt') for 1 .. 3;
    ok until_true(sub { 3 == (() = slurp("$folder/log") =~ m{/big\.txt}g) }), 'the children of the template write to it';
    unlike slurp("$folder/old"), qr{/big\.txt}, 'and no longer to the old one';
    $server->stop;
});

done_testing;
