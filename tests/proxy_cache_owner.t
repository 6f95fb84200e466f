#!/usr/bin/perl
# The owner of the cache: the directory of a proxy that ran as root is given to the user that it runs as now, unless it has other
# files than those of a cache.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;

my $origin = Origin->new;

# Returns the names of the owners of a directory and of all files in it.
sub owners ($directory) { return map { (getpwuid((stat $_)[4]))[0] } $directory, glob "$directory/*" }

each_server(sub ($model) {
    return skip_case('only root can change owners') if $> != 0;
    my $place = scratch();
    my $cache = "$place/cache";
    my @proxy = ('--service', 'proxy', '--cache', $cache);
    my $path  = "/$model->{name}";
    $origin->play($path, response(200, 'stored', 'Cache-Control' => 'max-age=600'));
    for my $user (qw(root nobody)) {
        my $server   = start_server(options => [@proxy, '--user', $user]);
        my $response = scalar $server->exchange(request(GET => $origin->url($path), Connection => 'close'));
        is $response->{body}, 'stored', "a proxy that runs as $user serves";
        is join(' ', grep { $_ ne $user } owners($cache)), '', "all files of the cache belong to $user";
        $server->stop(warnings => qr/descriptors allows/);
    }
    is $origin->count($path), 1, 'a proxy that runs as nobody uses the entries of one that ran as root';

    # Other files than those of a cache keep their owner, and the server does not start.
    my %foreign = (
        'a file with another name' => sub { spit("$cache/letter", 'x') },
        'a symbolic link' => sub { symlink "$place/other", "$cache/account-2" },
        'a hard link' => sub { link "$place/other", "$cache/account-2" },
        'a directory' => sub { mkdir "$cache/account-2" },
    );
    spit("$place/other", 'x');
    for my $what (sort keys %foreign) {
        run_command('rm', '-rf', $cache);
        mkdir $cache, 0700;
        $foreign{$what}->();
        my $run = run_server(@proxy, qw(--user nobody 0));
        is $run->{status}, 1, "$what in a cache of root: the server does not start";
        like $run->{err}, qr/must belong to the user of the server.*chown/, "$what in a cache of root: the server says what to do";
        is((getpwuid((stat "$place/other")[4]))[0], 'root', "$what in a cache of root: no other file changes its owner");
        is((getpwuid((stat $cache)[4]))[0], 'root', "$what in a cache of root: the directory does not change its owner");
    }
});

done_testing;
