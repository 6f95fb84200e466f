#!/usr/bin/perl
# Hardening: the sections and segments of the programs, and the mappings of their processes.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

sub readelf ($path, @options) { return run_command('readelf', '-W', @options, $path)->{out} }

# Returns the sections and the segments of a program, by their names, with their addresses, and the flags of what is loaded.
sub layout ($path) {
    my (%section, %segment, @loads);
    for (split /\n/, readelf($path, '-S')) {
        $section{$1} = [hex $2, hex($2) + hex($3)] if /^\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)/;
    }
    for (split /\n/, readelf($path, '-l')) {
        my ($name, $address, $size, $flags) = /^\s+([A-Z_]+)\s+0x\w+\s+0x(\w+)\s+0x\w+\s+0x\w+\s+0x(\w+)\s+([RWE ]+?)\s+0x/ or next;
        $segment{$name} = { start => hex $address, end => hex($address) + hex($size), flags => $flags =~ s/ //gr };
        push @loads, $segment{$name}{flags} if $name eq 'LOAD';
    }
    return (\%section, \%segment, @loads);
}

# Tests the mappings of all processes of a running server: no memory is writable and executable, and so many parts of the
# program's data are read-only.
sub maps_are_safe ($server, $name, $parts) {
    my (@unsafe, @unlike);
    for my $process (grep { $_->[1] ne 'Z' } group_processes($server->pid)) {
        my $who  = "$process->[2] $process->[0]";
        my @maps = split /\n/, eval { slurp("/proc/$process->[0]/maps") } // next;
        push @unsafe, map { "$who: $_" } grep { /^\S+ .wx/ } @maps;
        my $constant = grep { /^\S+ r--p .*_server$/ } @maps;
        push @unlike, "$who: $constant" if $constant != ($process->[2] eq 'handover' ? 1 : $parts);    # it uses no TLS
    }
    is join("\n", @unsafe), '', "$name: no memory of any process is writable and executable";
    is join("\n", @unlike), '', "$name: in each process so many parts of the data are read-only: $parts";
}

each_server(sub ($model) {
    my $path = $model->{path};
    my ($section, $segment, @loads) = layout($path);

    like readelf($path, '-h'), qr/Type:\s+DYN/, 'the program can be loaded at any address';
    is join(' ', grep { /W/ && /E/ } @loads), '', 'no segment is writable and executable';
    is $segment->{GNU_STACK}{flags}, 'RW', 'the stack is not executable';
    my $relro = $segment->{GNU_RELRO};
    ok $relro, 'some data is read-only after the relocations';
    for my $name (grep { $section->{$_} } qw(.init_array .fini_array .data.rel.ro .dynamic .got .got.plt)) {
        ok $relro && $section->{$name}[0] >= $relro->{start} && $section->{$name}[1] <= $relro->{end}, "$name is read-only after the relocations";
    }
    like readelf($path, '-d'), qr/BIND_NOW|\bNOW\b/, 'functions are bound at the start';
    unlike readelf($path, '-d'), qr/TEXTREL/, 'no relocation changes code';
    my $symbols = readelf($path, '-s');
    like $symbols, qr/ __stack_chk_fail\b/, 'the stack is protected by canaries';
    like $symbols, qr/ __\w+_chk\b/,         'library functions check the sizes of buffers';
    my $main = run_command('objdump', '-d', '--disassemble=main', '--no-show-raw-insn', $path)->{out};
    like $main, qr/<main>:\n\s*\w+:\s+endbr64/, 'indirect branches have marked targets';

    my $server = start_server();
    maps_are_safe($server, 'HTTP', 1);    # what the relocations have written
    $server->stop;
    my $place = scratch();
    run_command("$FindBin::Bin/../collect/certificate.sh", "$place/tls");
    $server = start_server(options => ['--tls', '--cert', "$place/tls/cert.pem", '--key', "$place/tls/key.pem"]);
    ok scalar(grep { $_->[2] eq 'key_process' } group_processes($server->pid)), 'HTTPS: a process has the key';
    maps_are_safe($server, 'HTTPS', 2);    # and the tables of OpenSSL
    $server->stop;
});

done_testing;
