/** Standard output, for the results of commands. The log goes to standard error. */

export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`);
}
