#!/usr/bin/perl
# Signals other than SIGTERM and SIGINT end neither the server nor its workers.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use POSIX qw(sigprocmask SIGALRM SIG_BLOCK SIG_SETMASK);

my $root = tree('small.txt' => "small\n");

each_server(sub ($model) {
    my $server = start_server(root => $root);
    my $short  = $model->{each} && describe()->{makes} eq 'processes';
    is $server->get('/small.txt')->{status}, 200, 'the server serves before the signals';
    for my $signal (qw(HUP ALRM VTALRM PROF IO PWR PIPE XFSZ STKFLT RTMIN RTMAX)) {
        my @processes = map { $_->[0] } serving_processes($server->pid);
        kill $signal => @processes;
        ok until_true(sub { !$server->pending_signals }), "SIG$signal is delivered";
        is $server->get('/small.txt')->{status}, 200, "SIG$signal: the server serves afterwards";
        my %now = map { $_->[0] => 1 } serving_processes($server->pid);
        # A process that serves one connection may end by itself.
        is scalar(grep { !$now{$_} } @processes), 0, "SIG$signal ends no process" if !$short;
    }
    $server->stop;

    # SIGALRM ends a server that hangs when it stops.
    my ($alarm, $before) = (POSIX::SigSet->new(SIGALRM), POSIX::SigSet->new);
    sigprocmask(SIG_BLOCK, $alarm, $before);
    $server = start_server(root => $root);
    sigprocmask(SIG_SETMASK, $before);
    my ($blocked) = slurp('/proc/' . $server->pid . '/status') =~ /^SigBlk:\s+(\w+)$/m;
    is hex($blocked) >> (SIGALRM - 1) & 1, 0, 'SIGALRM is not blocked, even if the program that started the server has blocked it';
    $server->stop;
});

done_testing;
