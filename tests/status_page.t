#!/usr/bin/perl
# The page / of data/, and the counters of --status that it shows.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use JSON::PP ();

each_server(sub ($model) {
    my $plain = start_server();
    my $index = $plain->get('/');
    is $index->{status}, 200, 'the printed address leads to a page';
    like $index->field('Content-Type'), qr{^text/html}, 'it is HTML';
    my @links = grep { !m{^/\.|^data:} } $index->{body} =~ /href="([^"]+)"/g;
    cmp_ok scalar(@links), '>=', 2, 'it names documents';
    is $plain->get("/$_")->{status}, 200, "$_, which it links to, is there" for @links;
    is $plain->get('/.status')->{status}, 404, 'without --status nobody can ask for the counters';
    $plain->stop;

    my $server = start_server(options => ['--status']);
    $server->get('/small.txt') for 1 .. 4;
    $server->get('/none');
    my $counted = until_true(sub {    # the end of a connection is counted a moment after the client sees it
        my $response = $server->get('/.status');
        my $told     = JSON::PP::decode_json($response->{body});
        return $told->{requests} >= 5 && $told->{errors} == 1 ? [$response, $told] : undef;
    });
    ok $counted, '/.status counts the requests' or return;
    my ($response, $told) = @$counted;
    is $response->{status}, 200, '/.status: 200';
    is $response->field('Content-Type'), 'application/json', '/.status: Content-Type';
    is $response->field('Cache-Control'), 'no-cache', '/.status: no cache may keep it';
    is $told->{server}, "$model->{name}_server", '/.status names the server';
    cmp_ok $told->{$_}, '>=', 1, "/.status: $_" for qw(connections peak bytes);
    is ref($told->{workers}), $model->{workers} && $model->{workers} > 1 ? 'ARRAY' : '', '/.status lists the workers of a server that has some';
    is $server->head('/.status')->{status}, 200, '/.status: HEAD gets 200';
    is $server->get('/.status?x')->{status}, 200, '/.status with a query: 200';
    is $server->exchange(request(POST => '/.status', 'Content-Length' => 0, Connection => 'close'))->{status}, 405, '/.status: POST gets 405';
    is $server->get('/.stat')->{status}, 404, 'another hidden path: 404';
    $server->stop;
});

done_testing;
