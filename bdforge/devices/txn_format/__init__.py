"""The format of instruction streams for the array's controller: operations, words, BDs, containers."""
