# tsv.awk: reads the tables of a results folder. Functions only.

# Reads a table with a header: table[name, i, column], table_rows[name].
function table_load(name, path,    line, names, fields, columns, i, n) {
    n = 0
    if ((getline line < path) > 0) {
        columns = split(line, names, "\t")
        while ((getline line < path) > 0) {
            split(line, fields, "\t")
            n++
            for (i = 1; i <= columns; i++) table[name, n, names[i]] = fields[i]
        }
    }
    close(path)
    table_rows[name] = n
}

function machine_load(path,    line, at, n) {
    n = 0
    while ((getline line < path) > 0) {
        at = index(line, "\t")
        if (!at) continue
        machine_key[++n] = substr(line, 1, at - 1)
        machine[machine_key[n]] = substr(line, at + 1)
    }
    close(path)
    machine_rows = n
    if (machine_key[1] == "key" && machine["key"] == "value") machine_first = 2
    else machine_first = 1
}
