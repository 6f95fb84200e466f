#!/usr/bin/perl
# The process that keeps the cache below its limit: no other process looks at all entries, another one takes its place if it dies,
# and it has the directory made again if that is deleted.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use File::Path qw(remove_tree);
use Origin;
use ProxyFields;

my $origin = Origin->new;
my $limit  = 1024 * 1024;

sub start_proxy ($cache, %how) {
    return start_server(%how, options => ['--service', 'proxy', '--cache', $cache, '--cache-size', $limit, '--stop-timeout', 3600]);
}

sub keepers ($proxy) { return map { $_->[0] } grep { $_->[2] eq 'cache_keeper' } group_processes($proxy->pid) }

sub size_of ($cache) {
    my $size = 0;
    $size += -s $_ // 0 for glob "$cache/e*";
    return $size;
}

# Asks for documents that have not been asked for. Returns their number, and that of those that were stored.
my $asked = 0;
sub ask_for_more ($proxy, $count) {
    my $stored = 0;
    for (1 .. $count) {
        my $path = '/more' . ++$asked;
        $origin->play($path, response(200, 'x' x 100_000, %fresh));
        my $response = $proxy->get($origin->url($path));
        is length $response->{body}, 100_000, "$path: the response is whole";
        $stored++ if cache_status($response) =~ /stored/;
    }
    return $stored;
}

# Returns the process that has taken over last.
sub newest ($proxy) { return ($proxy->errors =~ /process (\d+) has taken over/g)[-1] // $proxy->pid }

each_server(sub ($model) {
    my $place = scratch();
    my $cache = "$place/cache";
    my $proxy = start_proxy($cache);
    my @keepers;
    ok until_true(sub { @keepers = keepers($proxy); @keepers == 2 }), 'a process keeps the cache below its limit, and another one supervises it';

    # --- what happens while it does nothing ---
    kill STOP => @keepers;
    is ask_for_more($proxy, 14), 14, 'a keeper that is stopped: responses are stored beyond the limit';
    my $full = size_of($cache);
    cmp_ok $full, '>', $limit, 'a keeper that is stopped: nobody else trims the cache';
    ask_for_more($proxy, 6);
    cmp_ok size_of($cache), '<=', $limit * 3 / 2 + 110_000, 'a keeper that is stopped: half as much again is the end';
    kill CONT => @keepers;
    ok until_true(sub { size_of($cache) <= $limit }), 'a keeper that goes on trims the cache';
    ok until_true(sub { ask_for_more($proxy, 1) == 1 }), 'a cache that was trimmed stores again';

    # --- its death ---
    my ($worker) = helper_workers($proxy->pid, 'cache_keeper');
    ok $worker && kill(KILL => $worker), 'the keeper is killed';
    ok until_true(sub { my ($next) = helper_workers($proxy->pid, 'cache_keeper'); $next && $next != $worker }), 'another one takes its place';
    ask_for_more($proxy, 14);
    ok until_true(sub { size_of($cache) <= $limit }), 'it trims the cache';

    # --- a directory that is deleted ---
    # A response that is still being stored may keep it from being empty.
    my $inode = (stat $cache)[1];
    until_true(sub { remove_tree($cache, { error => \my $left }); ((stat $cache)[1] // 0) != $inode });
    my $found;
    ok until_true(sub { -d $cache }), 'a directory that is deleted is made again';
    ok until_true(sub { newest($proxy) != $proxy->pid }), 'a new server makes it';
    like $proxy->errors, qr/the cache directory '\Q$cache\E' was deleted/, 'the server says that it was deleted';
    $origin->play('/again', response(200, 'again', %fresh));
    ok until_true(sub { $found = cache_status($proxy->get($origin->url('/again'))); $found eq 'hit' }), 'it stores responses' or diag($found);
    kill TERM => newest($proxy);
    $proxy->ended(name => 'both servers end', warnings => qr/$few{warnings}|was deleted|has taken over|connections?.*requests?.*CPU/);
});

done_testing;
