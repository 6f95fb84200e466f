#!/usr/bin/perl
# Models that need rings (io_uring): a server says in one line that it may not have one, tests skip it by name, and a ring that
# is full of completions, or has no buffer left, loses nothing.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# A command that starts another one without the right to make a ring, as in a container.
my $FORBID = <<'END';
my ($error, @command) = @ARGV;
my $filter = pack 'SCCL' x 4, 0x20, 0, 0, 0, 0x15, 0, 1, 425, 0x06, 0, 0, 0x50000 | $error, 0x06, 0, 0, 0x7fff0000;
syscall(157, 38, 1, 0, 0, 0) == 0 && syscall(157, 22, 2, pack('Sx6P', 4, $filter)) == 0 or die "no filter: $!\n";
exec @command or die "$command[0]: $!\n";
END

each_server(sub ($model) {
    if (!$model->{needs}) {
        pass('the model needs nothing of the kernel that some lack');
        return;
    }
    my @forbid = ($^X, '-e', $FORBID);
    my $program = "$model->{name}_server";
    my $refused = run_command(@forbid, 1, $model->{path}, 0);
    is $refused->{status}, 1, 'io_uring is forbidden: exit status 1';
    like $refused->{err}, qr/\A$program: cannot use io_uring, which .*kernel\.io_uring_disabled.*: Operation not permitted\n\z/,
        'io_uring is forbidden: one line says why';
    $refused = run_command(@forbid, 38, $model->{path}, 0);
    is $refused->{status}, 1, 'a kernel without io_uring: exit status 1';
    like $refused->{err}, qr/\A$program: this kernel has no io_uring, or one that is too old: Linux 6\.1 .*\n\z/,
        'a kernel without io_uring: one line says why';
    # A user who may not raise the limit of locked memory: the server tests the limit as the user who makes the rings.
    my @as_user = ($> == 0 ? qw(setpriv --reuid=65534 --regid=65534 --clear-groups) : (), qw(prlimit --memlock=0));
    if (run_command(@as_user, program_copy(), '--version')->{status} == 0) {
        # The second limit is enough for the ring of one worker, but not for those of four.
        for my $case (['no locked memory', 0], ['locked memory for one ring', 40_960]) {
            my ($what, $limit) = @$case;
            $as_user[-1] = "--memlock=$limit";
            $refused = run_command(@as_user, program_copy(), qw(--workers 4 0));
            is $refused->{status}, 1, "$what: exit status 1";
            like $refused->{err}, qr/\A$program: cannot make a ring for each worker within the limit of locked memory .*\n\z/, "$what: one line says why";
        }
    } else {
        skip_case('no locked memory: another user cannot run the server here');
    }
    for my $option (qw(--help --version --describe)) {
        is run_command(@forbid, 1, $model->{path}, $option)->{status}, 0, "io_uring is forbidden: $option works";
    }
    my $told = JSON::PP::decode_json(run_command(@forbid, 1, $model->{path}, '--describe')->{out});
    is_deeply [@$told{qw(needs available)}], ['io_uring', JSON::PP::false], 'io_uring is forbidden: --describe says so';
    is describe()->{available}, JSON::PP::true, '--describe says that io_uring is there';

    # More clients at once than a ring has buffers and completions: all of them are idle, and then all of them ask.
    my $server = start_server(options => ['--workers', 1, '--max-connections', 3000], root => "$FindBin::Bin/../data");
    my @clients = map { $server->connect } 1 .. 1500;
    for my $what ('first', 'again') {
        $server->paused(sub { $_->send(request(GET => '/small.txt')) for @clients });
        my $good = grep { (($_->response // {})->{status} // 0) == 200 } @clients;
        is $good, scalar @clients, "1500 clients that ask at once get their responses, $what";
    }
    $server->stop;
});

done_testing;
