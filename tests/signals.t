#!/usr/bin/perl
# Signals that mean nothing to a server end neither it nor its workers; SIGHUP never ends one.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $root = tree('small.txt' => "small\n");

each_server(sub ($model) {
    my $server = start_server(root => $root);
    is $server->get('/small.txt')->{status}, 200, 'a request';
    for my $signal (qw(HUP USR2 ALRM VTALRM PROF IO PWR PIPE XFSZ STKFLT RTMIN RTMAX)) {
        my @processes = map { $_->[0] } grep { $_->[1] ne 'Z' } group_processes($server->pid);
        kill $signal => @processes;
        ok until_true(sub { !$server->pending_signals }), "SIG$signal arrives";
        is $server->get('/small.txt')->{status}, 200, "SIG$signal: the server goes on";
        my %now = map { $_->[0] => 1 } grep { $_->[1] ne 'Z' } group_processes($server->pid);
        is scalar(grep { !$now{$_} } @processes), 0, "SIG$signal: no process has ended" if $model->{name} ne 'fork';
    }
    $server->stop;
});

done_testing;
