#!/usr/bin/perl
# Command lines: exit status 2 for wrong usage and 1 for what the machine refuses, one line that says why, --help,
# --version, --describe, the ready line, and the addresses that the server listens on.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Socket::IP;

# Runs a command line that the server must refuse: with this exit status, and with one line that matches $about.
sub refused ($status, $about, $name, @arguments) {
    my $run = run_server(@arguments);
    my @flaws;
    push @flaws, 'it did not end'                                   if $run->{hung};
    push @flaws, "status $run->{status}, signal $run->{signal}"     if $run->{status} != $status || $run->{signal};
    push @flaws, "standard error: '$run->{err}'"                    if $run->{err} !~ /\A[^\n]+\n\z/;
    push @flaws, "the line does not match $about: '$run->{err}'"     if $run->{err} !~ $about;
    push @flaws, "standard output: '$run->{out}'"                   if $run->{out} ne '';
    ok(!@flaws, "$name is refused with exit status $status and one line that names it") or diag(join "\n", @flaws);
}

each_server(sub ($model) {
    my $program = "$model->{name}_server";

    my $help = run_server('--help');
    is $help->{status}, 0,  '--help: status 0';
    is $help->{err},    '', '--help: nothing on standard error';
    like $help->{out}, qr/\A(?i:usage): \S*$program .*PORT/, '--help begins with the usage';
    for my $option (qw(root bind service protocol max-connections request-timeout idle-timeout write-timeout backlog list
        log stats user no-sandbox help version)) {
        like $help->{out}, qr/--$option\b/, "--help explains --$option";
    }
    is_deeply run_server('-h'), $help, '-h is --help';
    my $version = run_server('--version');
    is $version->{status}, 0, '--version: status 0';
    like $version->{out}, qr/\A$program .*\d+\.\d+.*\n/, '--version prints the name and the version';
    is $version->{err}, '', '--version: nothing on standard error';

    my $own = describe();
    is $own->{name}, $program, '--describe prints JSON with the name';
    is_deeply [sort keys %$own], [sort qw(name version summary advice makes needs available lasting defers workers_per_processor accept share template services defaults options)],
        '--describe has these members and no others';
    is_deeply [grep { !length $_ } $own->{summary}, @{ $own->{advice} }{qw(take avoid)}], [], '--describe gives a summary and advice';
    my @rows = grep { /^  --/ } split /\n/, $help->{out};
    is join("\n", grep { !/^  --\S+(?: \S+)?(?: {2,}\S.*)?$/ } @rows), '', '--help: what an option does is behind two blanks, or on the next line';
    like $help->{out} =~ s/\s+/ /gr, qr/\QTake it $own->{advice}{take}. Do not take it $own->{advice}{avoid}.\E/, '--help gives the advice of --describe';
    like $help->{out}, qr/^  --\Q$_->{name}\E\b/m, "--help lists --$_->{name} of --describe" for @{ $own->{options} };
    is $own->{defaults}{$_}, $own->{$_}[0], "--describe lists the default way to $_ first" for qw(accept share);
    is !$own->{workers_per_processor}, !$own->{defaults}{workers}, '--describe says whether the model has workers';

    refused(2, qr/PORT|port/,             'no port');
    refused(2, qr/no-such-option/,        'an unknown option', '--no-such-option', '0');
    refused(2, qr/\bZ\b/,                 'an unknown letter', '-Z', '0');
    refused(2, qr/--root|root/,           'an option without its value', '0', '--root');
    refused(2, qr/list/,                  'a value for an option that takes none', '--list=yes', '0');
    refused(2, qr/port/i,               'two ports', '0', '1');
    for my $port ('65536', '-1', '99999999999999999999', '80x', '', ' 80', '+80', '0x50', '1e3', 'http') {
        refused(2, qr/port/i, "port '$port'", '--', $port);
    }
    for my $option (qw(max-connections request-timeout idle-timeout write-timeout backlog)) {
        for my $value ('-1', 'x', '', '5x', ' 5', '0', '99999999999999999999') {
            refused(2, qr/$option/, "--$option '$value'", "--$option=$value", '0');
        }
    }
    my $services = join '.*', @{ $own->{services} };
    refused(2, qr/no-such-service' is not $services/, 'an unknown service',  '--service',  'no-such-service',  '0');
    refused(2, qr/no-such-protocol/, 'an unknown protocol', '--protocol', 'no-such-protocol', '0');

    my $scratch = scratch();
    spit("$scratch/file", 'a file');
    refused(1, qr{\Q$scratch\E/none}, 'a missing root',          '--root', "$scratch/none", '0');
    refused(1, qr{\Q$scratch\E/file}, 'a root that is a file',   '--root', "$scratch/file", '0');
    refused(1, qr/no-such-user-here/, 'an unknown user',         '--user', 'no-such-user-here', '0');
    refused(1, qr{\Q$scratch\E/none/log}, 'a log that cannot be opened', '--log', "$scratch/none/log", '0');
    refused(1, qr{\Q$scratch\E/none/stats}, 'a stats file that cannot be opened', '--stats', "$scratch/none/stats", '0');
    my $address = run_server('--bind', 'not an address', '0');
    ok $address->{status} == 1 || $address->{status} == 2, 'a bad address: exit status 1 or 2';
    like $address->{err}, qr/\A[^\n]*not an address[^\n]*\n\z/, 'a bad address: one line that names it';
    refused(1, qr/192\.0\.2\.1/, 'an address of another machine', '--bind', '192.0.2.1', '0');

    my $taken = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 1) or die "listen: $@";
    refused(1, qr/@{[ $taken->sockport ]}/, 'a port in use', $taken->sockport);

    my $server = start_server();
    like $server->{ready}, qr{\A$program: http://127\.0\.0\.1:\d+/ serves data/}, 'the ready line has the URL and the root';
    unlike $server->{ready}, qr{:0/}, 'port 0: the ready line has the port that the kernel chose';
    refused(1, qr/@{[ $server->port ]}/, 'the port of a running server', $server->port);
    is $server->get('/small.txt')->{status}, 200, 'the server listens on the IPv4 loopback address';
    my $six = eval { IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1) };
    if ($six) {
        my $connection = $server->connect(PeerHost => '::1');
        is $connection->ask(request(GET => '/small.txt', Connection => 'close'))->{status}, 200,
            'the server listens on the IPv6 loopback address, on the same port';
    } else {
        skip_case('this machine has no IPv6 loopback address');
    }
    my @listening = listening($server);
    is_deeply \@listening, [grep { $six || !/:/ } '127.0.0.1', '::1'], 'by default the server listens on loopback addresses only';
    $server->stop;

    $server = start_server(options => ['--bind', '127.0.0.2', '--bind', '127.0.0.3']);
    is_deeply [listening($server)], ['127.0.0.2', '127.0.0.3'], '--bind twice: the server listens on these addresses only';
    for my $host ('127.0.0.2', '127.0.0.3') {
        is $server->connect(PeerHost => $host)->ask(request(GET => '/small.txt', Connection => 'close'))->{status}, 200,
            "--bind: the server serves clients of $host";
    }
    $server->stop;

    my $again = start_server();
    my $port = $again->port;
    { my $client = $again->connect; $client->ask(request(GET => '/small.txt', Connection => 'close')) }
    $again->stop;
    $again = start_server(port => $port);
    is $again->get('/small.txt')->{status}, 200, 'after a stop, another server can take the port at once';
    $again->stop;

    my $root = tree('file.txt' => "here\n");
    $server = start_server(root => $root, options => ['--service', 'files', '--backlog', '16', '--idle-timeout=3']);
    is $server->get('/file.txt')->{body}, "here\n", '--root: the server serves another directory';
    like $server->{ready}, qr/\Q$root\E/, '--root: the ready line names the directory';
    $server->stop;

    $server = start_server(directory => "$root", options => ['--root', '.']);
    is $server->get('/file.txt')->{body}, "here\n", '--root: the directory may be relative';
    $server->stop(signal => 'INT');
});

# Returns the addresses that the server listens on, from the kernel's tables. Servers of other tests may have the same
# port at another address.
sub listening ($server) {
    my @found;
    my %its_own = map { $_ => 1 } map { (readlink // '') =~ /^socket:\[(\d+)\]\z/ } map { glob "/proc/$_->[0]/fd/*" } group_processes($server->pid);
    for my $table ('tcp', 'tcp6') {
        open my $file, '<', "/proc/net/$table" or next;
        while (<$file>) {
            my ($address, $port, $state, $inode) = /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]+ ([0-9A-F]{2})(?: +\S+){5} +(\d+)/ or next;
            next if $state ne '0A' || hex $port != $server->port || !$its_own{$inode};
            push @found, $table eq 'tcp' ? join '.', reverse map { hex } $address =~ /../g
                : $address eq '00000000000000000000000001000000' ? '::1' : $address;
        }
    }
    my %once = map { $_ => 1 } @found;    # worker processes may have several listeners for each address
    return sort keys %once;
}

done_testing;
