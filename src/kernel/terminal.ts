/** What people read on a terminal: results on standard output. The log goes to standard error. */

/** Writes one line. */
export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`);
}
