#!/usr/bin/perl
# The page of a report in headless Chromium: nothing in its console, nothing from the network, its figures to be seen.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Compress::Zlib qw(uncompress);

my $top     = "$FindBin::Bin/..";
my $scratch = scratch();

my ($chromium) = grep { command_exists($_) } qw(chromium chromium-browser google-chrome);
if (!$chromium) {
    skip_case('chromium is not installed');
    done_testing;
    exit;
}

# Opens a file; gives the document as it stands then, what the console said, and a picture where one is asked for.
my $number = 0;
sub opened ($path, $size, $picture = undef) {
    my $profile = "$scratch/profile" . ++$number;
    my $run = run_command($chromium, qw(--headless --no-sandbox --disable-gpu --disable-quic --no-first-run),
        qw(--disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage --enable-logging=stderr),
        "--user-data-dir=$profile", "--window-size=$size", $picture ? "--screenshot=$picture" : (), '--dump-dom', "file://$path");
    return ($run, $run->{out}, grep { /CONSOLE/ } split /\n/, $run->{err});
}

# The different rows of pixels of a PNG: one or two where nothing is drawn.
sub different_rows ($path) {
    my $png = eval { slurp($path) } // '';
    return 0 if substr($png, 0, 8) ne "\x89PNG\r\n\x1a\n";
    my ($width, $height, $depth, $colour) = unpack 'x16 N N C C', $png;
    my ($at, $packed) = (8, '');
    while ($at + 8 <= length $png) {
        my ($length, $type) = unpack "x$at N a4", $png;
        $packed .= substr $png, $at + 8, $length if $type eq 'IDAT';
        $at += $length + 12;
    }
    my $bytes = 1 + int(($width * $depth * { 0 => 1, 2 => 3, 3 => 1, 4 => 2, 6 => 4 }->{$colour} + 7) / 8);
    my $pixels = uncompress($packed) // '';
    my %rows;
    $rows{ substr $pixels, $_ * $bytes, $bytes } = 1 for 0 .. $height - 1;
    return scalar keys %rows;
}

# A fresh page, from invented runs; where figures cannot be drawn, one that was published.
my $folder = "$scratch/report";
if (command_exists('gnuplot') && command_exists('cmark-gfm')) {
    run_command("$FindBin::Bin/synthetic.pl", '--blocks', 6, '--concurrency', 6, $folder);
    for my $stage (qw(summary compare figures report)) {
        my $run = run_command("$top/collect/$stage.sh", $folder);
        is $run->{status}, 0, "$stage.sh" or diag($run->{err});
    }
}
else {
    $folder = "$top/report/table1";
}
my $page = slurp("$folder/index.html");
my @network = $page =~ m{((?:src|srcset|href|action|data)\s*=\s*["']?\s*(?:https?:)?//[^\s"'>]*|url\(\s*["']?(?:https?:)?//[^)]*|\@import[^;]*)}gi;
is "@network", '', 'the file fetches nothing from the network';

my ($run, $document, @console) = opened("$folder/index.html", '1200,4000', "$scratch/page.png");
is $run->{status}, 0, 'the browser opens it' or diag($run->{err});
is join("\n", @console), '', 'no word in the console';
my $figures = () = $document =~ /<svg\b/g;
cmp_ok $figures, '>', 0, 'figures stand in the page';
like $document, qr{</html>\s*\z}, 'the page is whole';
@network = $document =~ m{((?:src|srcset|action|data)\s*=\s*["']?\s*(?:https?:)?//[^\s"'>]*)}gi;
is "@network", '', 'nor do scripts fetch anything';
cmp_ok -s "$scratch/page.png" // 0, '>', 20_000, 'a picture of it';
cmp_ok different_rows("$scratch/page.png"), '>', 200, 'the picture is not blank';

# Again with a script that looks at the figures as they lie, on a window as narrow as a headless one can be; its own word
# shows that words in the console are seen.
my $look = <<'END';
<script>addEventListener("load", () => {
    const seen = [...document.querySelectorAll("svg")].map(s => s.getBoundingClientRect()).filter(r => r.width > 100 && r.height > 100);
    const root = document.documentElement;
    root.dataset.seen = seen.length;
    root.dataset.wide = root.scrollWidth - root.clientWidth;
    root.dataset.fetched = performance.getEntriesByType("resource").filter(e => /^http/.test(e.name)).map(e => e.name).join(" ");
    console.error("page.t was here");
})</script>
END
spit("$scratch/looked.html", $page =~ s{(?=</body>)}{$look}r);
($run, $document, @console) = opened("$scratch/looked.html", '500,900');
my %told = $document =~ /\sdata-(seen|wide|fetched)="([^"]*)"/g;
is $told{seen}, $figures, 'every figure is to be seen';
is $told{fetched}, '', 'nothing was fetched';
cmp_ok $told{wide} // 9999, '<=', 0, 'a narrow window needs no scrolling aside';
is scalar(@console), 1, 'a word in the console would have been seen';

# The texts of the figures, as they lie: none is cut off at an edge, none lies on another. Also with the longest names and
# the most panels of all studies.
my $lie = <<'END';
<script>addEventListener("load", () => {
    document.querySelectorAll("details").forEach(d => { d.open = true; });
    const flaws = [];
    document.querySelectorAll("figure svg").forEach(svg => {
        const edge = svg.getBoundingClientRect(), texts = [];
        svg.querySelectorAll("text").forEach(t => {
            const r = t.getBoundingClientRect(), words = t.textContent.trim();
            if (!words || r.width < 1) return;
            if (r.left < edge.left - 1 || r.right > edge.right + 1 || r.top < edge.top - 1 || r.bottom > edge.bottom + 1) flaws.push("cut: " + words);
            texts.forEach(([other, o]) => {
                if (Math.min(r.right, o.right) - Math.max(r.left, o.left) > 2 && Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top) > 4)
                    flaws.push(other + " / " + words);
            });
            texts.push([words, r]);
        });
    });
    document.documentElement.dataset.flaws = flaws.length + ": " + flaws.slice(0, 5).join("; ").replaceAll('"', "'");
})</script>
END
my @pages = (['the page', $page]);
if ($folder =~ /\A\Q$scratch/) {
    for my $kind (qw(mistakes processors table1 designs)) {
        run_command("$FindBin::Bin/synthetic.pl", '--kind', $kind, '--blocks', 3, "$scratch/$kind");
        for my $stage (qw(summary compare figures report)) {
            my $stages = run_command("$top/collect/$stage.sh", "$scratch/$kind");
            is $stages->{status}, 0, "$kind: $stage.sh" or diag($stages->{err});
        }
        push @pages, [$kind, slurp("$scratch/$kind/index.html")];
    }
}
for my $case (@pages) {
    spit("$scratch/lie.html", $case->[1] =~ s{(?=</body>)}{$lie}r);
    ($run, $document) = opened("$scratch/lie.html", '1200,900');
    my ($flaws) = $document =~ /\sdata-flaws="([^"]*)"/;
    is $flaws // 'not told', '0: ', "$case->[0]: no text of a figure is cut off or lies on another";
}
# The page of all claims, from the published runs: every drawing to be seen, nothing beyond the edge, no word in the console.
if (command_exists('cmark-gfm')) {
    my $reports = "$scratch/published";
    run_command('cp', '-r', "$top/report", $reports);
    is run_command("$top/collect/overview.sh", $reports)->{status}, 0, 'overview.sh';
    my $claims = slurp("$reports/claims.html");
    spit("$reports/looked.html", $claims =~ s{(?=</body>)}{$look}r);
    for my $size ('1200,900', '500,900') {
        ($run, $document, @console) = opened("$reports/looked.html", $size);
        %told = $document =~ /\sdata-(wide|fetched)="([^"]*)"/g;
        cmp_ok $told{wide} // 9999, '<=', 0, "claims, $size: no scrolling aside";
        is $told{fetched}, '', "claims, $size: nothing was fetched";
        is join("\n", grep { !/page\.t was here/ } @console), '', "claims, $size: no word in the console";
    }
    my @strips = $claims =~ /<svg class="strip" viewBox="0 0 150 18".*?<\/svg>/g;
    my @beyond = grep { grep { $_ < 0 || $_ > 151 } /(?:M|H| x=\"|cx=\")(-?[\d.]+)/g } @strips;
    is scalar(@beyond), 0, 'claims: every interval stays within its drawing';
    cmp_ok scalar(@strips), '>', 10, 'claims: intervals are drawn';
    opened("$reports/claims.html", '1200,3000', "$scratch/claims.png");
    cmp_ok different_rows("$scratch/claims.png"), '>', 200, 'claims: the picture is not blank';
}
done_testing;
