/** Waiting for the person who ends a command. */

/** Resolves at SIGTERM or SIGINT. */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
