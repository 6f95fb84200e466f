#!/usr/bin/perl
# A connection that was answered and is held takes little memory: its process or thread has touched few pages of its stack.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $CLIENTS = 100;
# KiB for each, by what the model makes for a connection, if anything.
my %most = (threads => 18, processes => 32, nothing => 8);

my $root = tree('small.txt' => 'x' x 100);

# Opens connections that ask for a document, and returns them when each has been answered.
sub answered ($server, $count) {
    my @clients = map { $server->connect } 1 .. $count;
    $_->send(request(GET => '/small.txt')) for @clients;
    $_->response->{status} == 200 or die "not answered\n" for @clients;
    return @clients;
}

each_server(sub ($model) {
    if ($model->{limited} || $model->{single} || sanitized()) {
        skip_case('the model serves few connections at once, or the build has memory of its own');
        return;
    }
    my $server = start_server(root => $root, options => ['--max-connections', 4 * $CLIENTS]);
    my @held   = answered($server, $CLIENTS);
    my $before = anonymous_memory($server);
    push @held, answered($server, $CLIENTS);
    my $each = (anonymous_memory($server) - $before) / $CLIENTS;
    cmp_ok $each, '<', $most{ $model->{each} ? describe()->{makes} : 'nothing' }, 'a held connection takes little memory' or diag("$each KiB");
    $_->close for @held;
    $server->stop;
});

done_testing;
