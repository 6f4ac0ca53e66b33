/** The signals that stop a daemon. It imports nothing, so that a process can catch them at once. */

/** Calls `handle` at each of them. */
export function onStopSignals(handle: () => void): void {
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, handle);
}
